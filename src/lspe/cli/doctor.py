"""``lspe doctor``."""

import importlib.util
from importlib.metadata import PackageNotFoundError, version
from typing import Any

PACKAGES = ("torch", "torch_geometric", "lightning", "torchmetrics", "rdkit", "numpy", "scipy", "pandas", "pyarrow")
OPTIONAL = {
    "tensorboard": "lspe train --tensorboard; install lspe[tensorboard]",
    "fastapi": "lspe explore; install lspe[explore]",
    "uvicorn": "lspe explore; install lspe[explore]",
}


def doctor() -> None:
    """Show versions, device, operators and data root, and what is missing.

    Example: lspe doctor
    """
    import platform

    import torch
    from rich.table import Table

    from lspe import __version__
    from lspe.cli.console import console
    from lspe.locations import cache_root, data_root
    from lspe.ops import status

    table = Table(box=None, show_header=False)
    table.add_row("lspe", __version__)
    table.add_row("python", platform.python_version())
    for package in PACKAGES:
        table.add_row(package, _version(package))
    table.add_row("device", _device(torch))
    table.add_row("operators", status())
    table.add_row("data root", f"{data_root()}{'' if data_root().is_dir() else ' (not there yet)'}")
    table.add_row("cache", str(cache_root()))
    for package, needed_for in OPTIONAL.items():
        if importlib.util.find_spec(package) is None:
            table.add_row("missing", f"{package}, needed for {needed_for}")
    console().print(table, highlight=False)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed: pip install -c constraints.txt lspe"


def _device(torch: Any) -> str:
    if torch.cuda.is_available():
        return f"GPU: {torch.cuda.get_device_name()}"
    return f"CPU, {torch.get_num_threads()} threads"
