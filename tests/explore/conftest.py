"""The explorer on a free port of this machine, as users run it, and a real browser to look at it with."""

import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import uvicorn

from lspe import smiles_to_graphs
from lspe.explore import create_app
from lspe.predict import load
from lspe.predict.known import KNOWN, KnownMolecules, fingerprints_of
from lspe.predict.member import GraphsWithEncodings
from tests.members import OGB, save

KNOWN_SMILES = ["CC(C)Cc1ccccc1", "CC(C(=O)O)c1ccccc1", "CCO", "C[C@H](N)C(=O)O", "c1ccccc1", "CCCCCC", "Cc1ccccc1O"]

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextmanager
def running(app: Any) -> Iterator[str]:
    """The address of a server that runs `app` for a while."""
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        deadline = time.monotonic() + 30
        while not server.started and time.monotonic() < deadline:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join(timeout=30)


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """An explorer without a run."""
    with running(create_app()) as url:
        yield url


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network with random weights as a run, and some molecules that it knows."""
    folder = save(tmp_path_factory.mktemp("runs") / "logS", tasks=("logS",), fragments="largest")
    network = load(folder, device="cpu").members[0]
    graphs = smiles_to_graphs(KNOWN_SMILES, OGB).graphs
    _, vectors = network.apply(GraphsWithEncodings(graphs))
    labels = np.linspace(-4, 0, len(KNOWN_SMILES)).reshape(-1, 1)
    bits = fingerprints_of(KNOWN_SMILES, "largest")
    KnownMolecules(KNOWN_SMILES, [], labels, vectors.graph, bits).save(folder / KNOWN)
    return folder


@pytest.fixture(scope="session")
def address_with_run(run_folder: Path) -> Iterator[str]:
    """An explorer of a run."""
    with running(create_app(run_folder)) as url:
        yield url


@pytest.fixture(scope="session")
def client(address: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=address, timeout=60) as made:
        yield made


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    executable = next((path for name in CHROMIUM if (path := shutil.which(name))), None)
    if executable is None:
        pytest.skip(f"there is no browser: none of {', '.join(CHROMIUM)} is installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=executable, args=CHROMIUM_FLAGS)
        yield launched
        launched.close()
