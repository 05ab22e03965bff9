"""What keeps the local server to this machine and to small questions."""

from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY = 16 * 1024
LOCAL_HOSTS = frozenset({"127.0.0.1", "localhost"})

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """Refuses requests that name another host (a page elsewhere that points its name to this machine), cuts off
    bodies of more than 16 KiB, and tells the browser to load nothing from anywhere else.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, if it may pass."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        if headers.get(b"host", b"").decode("latin-1").rsplit(":", 1)[0] not in LOCAL_HOSTS:
            await _refuse(400, "this page is served to this machine only, as 127.0.0.1 or localhost")(
                scope, receive, send_with_headers
            )
            return
        body = await _read_body(receive)
        if body is None:
            await _refuse(413, f"the question is too long: at most {MAX_BODY:,} bytes")(
                scope, receive, send_with_headers
            )
            return

        async def receive_body() -> Message:
            nonlocal body
            if body is None:
                return await receive()
            whole, body = body, None
            return {"type": "http.request", "body": whole, "more_body": False}

        await self.app(scope, receive_body, send_with_headers)


async def _read_body(receive: Receive) -> bytes | None:
    """The whole body, or nothing if it is too long."""
    body = b""
    while True:
        message: dict[str, Any] = dict(await receive())
        if message["type"] != "http.request":
            return body
        body += message.get("body", b"")
        if len(body) > MAX_BODY:
            return None
        if not message.get("more_body"):
            return body


def _refuse(status: int, error: str) -> JSONResponse:
    return JSONResponse({"error": error}, status_code=status)
