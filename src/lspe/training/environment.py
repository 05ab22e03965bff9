"""What a run was made with: versions, hardware, threads."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

import torch

from lspe._version import __version__


def versions() -> dict[str, str]:
    """Of lspe and of all that a result may depend on."""
    import lightning
    import rdkit
    import torch_geometric

    return {
        "lspe": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_geometric": torch_geometric.__version__,
        "lightning": lightning.__version__,
        "rdkit": rdkit.__version__,
    }


def hardware(device: torch.device, devices: int) -> dict[str, Any]:
    """Where a run took place."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else _processor()
    return {"device": device.type, "name": name, "devices": devices, "threads": torch.get_num_threads()}


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def default_threads(devices: int = 1) -> int:
    """Threads of each of ``devices`` processes: all cores there are, fewer where OMP_NUM_THREADS says so."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(torch.get_num_threads(), allowed) // devices)
