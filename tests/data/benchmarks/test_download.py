import hashlib
import io
import re
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import requests

from lspe.data import DataError, load_benchmark
from lspe.data.benchmarks import cifar10, download, imdb, ogb, zinc
from lspe.data.benchmarks.download import Source, find, obtain
from lspe.locations import cache_root, data_root


def archive(word: str = "content") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(zipfile.ZipInfo("a.txt"), f"{word} " * 1000, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def damaged_archive() -> bytes:
    content = bytearray(archive())
    content[40:60] = bytes(20)
    return bytes(content)


SHA256 = hashlib.sha256(archive()).hexdigest()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = archive()
        if self.path == "/missing.zip":
            self.send_error(404)
            return
        if self.path == "/elsewhere.zip":
            self.send_response(302)
            self.send_header("Location", f"http://localhost:{self.server.server_address[1]}/good.zip")
            self.end_headers()
            return
        if self.path == "/moved.zip":
            body = b"<html>this page has moved</html>"
        if self.path == "/damaged.zip":
            body = damaged_archive()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body) + (10 if self.path == "/short.zip" else 0)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_address[1]}"
        httpd.shutdown()
        thread.join()


@pytest.fixture
def server(address: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A server of this machine, which is believed although it has no certificate."""
    monkeypatch.setattr(download, "_TRUSTED", (address,))
    return address


def test_a_file_is_downloaded_once_under_its_own_name(
    server: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source = Source("sub/good.zip", f"{server}/good.zip", SHA256)
    path = obtain(source, tmp_path)
    assert path == tmp_path / "sub" / "good.zip"
    assert path.read_bytes() == archive()
    path.write_bytes(b"mine now")
    assert obtain(source, tmp_path).read_bytes() == b"mine now"
    assert [one.name for one in path.parent.iterdir()] == ["good.zip"]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing.zip", "404 Not Found"),
        ("short.zip", "only .* bytes came|IncompleteRead"),
        ("moved.zip", "damaged or no zip archive: the archive"),
        ("damaged.zip", "damaged or no zip archive"),
        ("elsewhere.zip", r"http://localhost:\d+/good.zip is no https address"),
    ],
)
def test_a_failed_download_leaves_nothing_and_says_what_to_do(
    server: str, tmp_path: Path, name: str, reason: str
) -> None:
    with pytest.raises(DataError, match=reason) as caught:
        obtain(Source(name, f"{server}/{name}", None), tmp_path)
    assert f"{server}/{name}" in str(caught.value)
    assert str(tmp_path / name) in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_only_https_is_believed(address: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"{address}/good.zip is no https address"):
        obtain(Source("good.zip", f"{address}/good.zip", SHA256), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_another_content_than_the_published_one_is_refused(server: str, tmp_path: Path) -> None:
    other = hashlib.sha256(archive("other")).hexdigest()
    with pytest.raises(DataError, match=f"not the published file.*{other}.*{SHA256}"):
        obtain(Source("good.zip", f"{server}/good.zip", other), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_without_a_published_digest_the_first_download_counts(server: str, tmp_path: Path) -> None:
    source = Source("good.zip", f"{server}/good.zip", None)
    path = obtain(source, tmp_path)
    record = tmp_path / "good.zip.sha256"
    assert record.read_text() == f"{SHA256}  good.zip\n"
    path.unlink()
    obtain(source, tmp_path)
    path.unlink()
    record.write_text(f"{hashlib.sha256(archive('first')).hexdigest()}  good.zip\n")
    with pytest.raises(DataError, match=f"not what came the first time, whose SHA-256 is in {record}"):
        obtain(source, tmp_path)
    assert not path.exists()
    record.unlink()
    assert obtain(source, tmp_path).read_bytes() == archive()


def test_the_bar_counts_what_came(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    amounts: list[int] = []
    totals: list[int | None] = []

    class Shown:
        def __init__(self, what: str, total: int | None, *, bytes_: bool) -> None:
            assert (what, bytes_) == ("good.zip", True)
            totals.append(total)

        def __enter__(self) -> object:
            return amounts.append

        def __exit__(self, *_: object) -> None:
            totals.append(None)

    monkeypatch.setattr(download, "progress_bar", Shown)
    obtain(Source("good.zip", f"{server}/good.zip?dl=1", SHA256), tmp_path)
    assert totals == [len(archive()), None]
    assert sum(amounts) == len(archive())


def test_offline_the_message_names_the_file_and_the_place(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        obtain(Source("tox21.zip", "https://127.0.0.1:1/tox21.zip", None), tmp_path)
    message = str(caught.value)
    assert re.match(r"tox21\.zip could not be downloaded \(\[Errno \d+\] Connection refused\)", message)
    assert f"put it there: {tmp_path / 'tox21.zip'}" in message


def test_a_read_only_data_root_stays_as_it_is(server: str, tmp_path: Path, cache: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    root.chmod(0o555)
    source = Source("good.zip", f"{server}/good.zip", SHA256)
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
    def offline(*_: object, **__: object) -> None:
        raise requests.ConnectionError("no connection")

    monkeypatch.setattr(requests, "get", offline)
    with pytest.raises(DataError, match=r"no connection.*put it there: " + str(tmp_path)):
        load_benchmark(name, tmp_path)


def test_every_official_file_comes_over_https_and_its_digest_is_one() -> None:
    sources = [
        zinc._ARCHIVE,
        *zinc._INDICES.values(),
        ogb._TOX21,
        ogb._PCBA,
        cifar10._OFFICIAL,
        *imdb._SOURCES.values(),
    ]
    assert len(sources) == 9
    for source in sources:
        assert source.url.startswith("https://")
        assert source.sha256 is None or len(bytes.fromhex(source.sha256)) == 32
