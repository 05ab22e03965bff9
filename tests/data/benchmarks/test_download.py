import io
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lspe.data import DataError, load_benchmark
from lspe.data.benchmarks.download import Source, find, obtain
from lspe.locations import cache_root, data_root


def archive() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("a.txt", "content " * 1000)
    return buffer.getvalue()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = archive()
        if self.path == "/missing.zip":
            self.send_error(404)
            return
        if self.path == "/moved.zip":
            body = b"<html>this page has moved</html>"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body) + (10 if self.path == "/short.zip" else 0)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_address[1]}"
        httpd.shutdown()
        thread.join()


def test_a_file_is_downloaded_once_under_its_own_name(server: str, tmp_path: Path) -> None:
    source = Source("sub/good.zip", f"{server}/good.zip")
    path = obtain(source, tmp_path)
    assert path == tmp_path / "sub" / "good.zip"
    assert path.read_bytes() == archive()
    path.write_bytes(b"mine now")
    assert obtain(source, tmp_path).read_bytes() == b"mine now"
    assert [one.name for one in path.parent.iterdir()] == ["good.zip"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing.zip", "404"),
        ("short.zip", "only .* bytes came|IncompleteRead"),
        ("moved.zip", "damaged or no zip archive"),
    ],
)
def test_a_failed_download_leaves_nothing_and_says_what_to_do(
    server: str, tmp_path: Path, name: str, reason: str
) -> None:
    with pytest.raises(DataError, match=reason) as caught:
        obtain(Source(name, f"{server}/{name}"), tmp_path)
    assert f"{server}/{name}" in str(caught.value)
    assert str(tmp_path / name) in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_offline_the_message_names_the_file_and_the_place(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        obtain(Source("tox21.zip", "http://127.0.0.1:1/tox21.zip"), tmp_path)
    message = str(caught.value)
    assert "tox21.zip could not be downloaded" in message
    assert f"put it there: {tmp_path / 'tox21.zip'}" in message


def test_a_read_only_data_root_stays_as_it_is(server: str, tmp_path: Path, cache: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    root.chmod(0o555)
    source = Source("good.zip", f"{server}/good.zip")
    try:
        path = obtain(source, root)
    finally:
        root.chmod(0o755)
    assert path == cache / "data" / "good.zip"
    assert find("good.zip", root) == path
    assert list(root.iterdir()) == []


def test_the_data_root_comes_first_then_the_variable_then_the_cache(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LSPE_DATA", raising=False)
    assert data_root() == cache / "data"
    monkeypatch.setenv("LSPE_DATA", str(tmp_path / "variable"))
    assert data_root() == tmp_path / "variable"
    assert data_root(tmp_path / "given") == tmp_path / "given"
    monkeypatch.delenv("LSPE_CACHE")
    assert cache_root().name == "lspe"


@pytest.mark.parametrize("name", ["zinc", "zinc-full", "moltox21", "molpcba", "imdb-binary", "imdb-multi", "cifar10"])
def test_every_benchmark_that_is_not_there_says_where_to_put_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from urllib.error import URLError

    def offline(*_: object, **__: object) -> None:
        raise URLError("no connection")

    monkeypatch.setattr("urllib.request.urlopen", offline)
    with pytest.raises(DataError, match=r"no connection.*put it there: " + str(tmp_path)):
        load_benchmark(name, tmp_path)
