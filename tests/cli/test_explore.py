"""``lspe explore`` as a command."""

import socket
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
import uvicorn
from typer.testing import CliRunner

from lspe.cli.explore import explore
from lspe.errors import UserError

app = typer.Typer()
app.command()(explore)


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments)
    if result.exception:
        raise result.exception
    return result.output


def test_it_listens_on_this_machine_only_and_opens_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    def serve(self: uvicorn.Server, sockets: list[socket.socket]) -> None:
        seen["socket"] = sockets[0].getsockname()

    monkeypatch.setattr(uvicorn.Server, "run", serve)
    monkeypatch.setattr("webbrowser.open", lambda url: seen.setdefault("page", url))
    output = run("--port", "0")
    host, port = seen["socket"]
    assert host == "127.0.0.1"
    assert seen["page"] == f"http://127.0.0.1:{port}/"
    assert seen["page"] in output
    assert output.index("Loading the explorer …") < output.index(seen["page"])
    seen.pop("page")
    run("--port", "0", "--no-browser")
    assert "page" not in seen


def test_a_port_in_use_is_named() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(UserError, match=f"port {port} is in use"):
            run("--port", str(port), "--no-browser")


def test_a_missing_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such run folder"):
        run(str(tmp_path / "missing"), "--no-browser")


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(UserError, match=r"pip install 'lspe\[explore\]'"):
        run("--no-browser")
