"""``lspe explore``."""

from pathlib import Path
from typing import Annotated

import typer

from lspe.errors import UserError


def explore(
    run: Annotated[
        Path | None, typer.Argument(metavar="[RUN]", help="A run folder: also show its predictions and positions.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on this machine; 0 takes any free one.")] = 8642,
    browser: Annotated[bool, typer.Option(help="Open the page in the web browser.")] = True,
) -> None:
    """Look at encodings, and at what a trained network makes of them, in the web browser; on this machine only.

    Example: lspe explore runs/logS
    """
    import errno
    import socket
    import webbrowser

    typer.echo(f"Loading {'the explorer' if run is None else run} …")
    try:
        import fastapi  # noqa: F401
        import uvicorn
    except ModuleNotFoundError as error:
        raise UserError(f"{error.name} is not installed; get it with: pip install 'lspe[explore]'") from None
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:  # named, so that asyncio sends answers without delay
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
            listener.listen()
        except OSError as error:
            reason = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be had ({error.strerror})"
            raise UserError(f"port {port} {reason}; choose another one: lspe explore --port 0") from None
        from lspe.explore import create_app

        app = create_app(run)
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        typer.echo(f"The explorer is at {address} (Ctrl+C ends it)")
        if browser:
            webbrowser.open(address)
        uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
