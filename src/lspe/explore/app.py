"""The web application: static files of our own, and a small JSON API."""

import os
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from lspe._version import __version__
from lspe.errors import UserError
from lspe.explore import answers
from lspe.explore.guard import Guard
from lspe.explore.schema import (
    About,
    ComparedGraphs,
    CompareQuery,
    EncodedGraph,
    EncodeQuery,
    ExampleGraph,
    Explained,
    Kind,
    MoleculeQuery,
    Positions,
    Prediction,
    Problem,
)

if TYPE_CHECKING:
    from lspe.explore.trained import Trained

_STATIC = Path(str(files("lspe.explore"))) / "static"
_PROBLEMS: dict[int | str, dict[str, Any]] = {422: {"model": Problem, "description": "What is wrong, in words"}}


def create_app(run: str | os.PathLike[str] | None = None) -> FastAPI:
    """The explorer as an ASGI application; with a run folder it also shows what its network predicts."""
    trained = None if run is None else _load(run)
    app = FastAPI(
        title="lspe explorer",
        version=__version__,
        description="Positional encodings of small graphs, and what tells two graphs apart.",
        docs_url=None,
        redoc_url=None,
        responses=_PROBLEMS,
    )
    app.add_middleware(Guard)
    _add_error_handlers(app)

    @app.get("/api/examples", tags=["graphs"])
    def examples() -> list[ExampleGraph]:
        """Graphs to try."""
        return answers.SHOWN_EXAMPLES

    @app.get("/api/kinds", tags=["graphs"])
    def kinds() -> list[Kind]:
        """The kinds of encoding."""
        return answers.kinds()

    @app.post("/api/encode", tags=["graphs"])
    def encode(query: EncodeQuery) -> EncodedGraph:
        """Encode a graph: places to draw it, its encoding, and which nodes it tells apart."""
        return answers.encode_graph(query)

    @app.post("/api/compare", tags=["graphs"])
    def compare(query: CompareQuery) -> ComparedGraphs:
        """Encode two graphs and try to tell them apart: by random walks, by 1-WL, and by each encoding."""
        return answers.compare_graphs(query)

    @app.get("/api/about", tags=["run"])
    def about() -> About:
        """The version, and the run behind this page."""
        return About(version=__version__, run=None if trained is None else trained.about())

    @app.post("/api/predict", tags=["run"])
    def predict(query: MoleculeQuery) -> Prediction:
        """Predict a molecule with the run that the explorer was started with."""
        return _there(trained).predict(query.smiles.strip())

    @app.post("/api/explain", tags=["run"])
    def explain(query: MoleculeQuery) -> Explained:
        """What each atom and bond adds to the prediction of a molecule, and which training molecules are like it."""
        return _there(trained).explain(query.smiles.strip())

    @app.post("/api/positions", tags=["run"])
    def positions(query: MoleculeQuery) -> Positions:
        """How the learned positions of the atoms change from layer to layer."""
        return _there(trained).positions(query.smiles.strip())

    @app.get("/", include_in_schema=False)
    def page() -> FileResponse:
        return FileResponse(_STATIC / "index.html")

    @app.get("/docs", include_in_schema=False)
    def docs() -> FileResponse:
        return FileResponse(_STATIC / "docs.html")

    app.mount("/static", StaticFiles(directory=_STATIC), name="static")
    return app


def _load(run: str | os.PathLike[str]) -> "Trained":
    from lspe.explore.trained import Trained

    return Trained(run)


def _there(trained: "Trained | None") -> "Trained":
    if trained is None:
        raise UserError("the explorer was started without a run: lspe explore RUN")
    return trained


def _add_error_handlers(app: FastAPI) -> None:
    @app.exception_handler(UserError)
    def user_error(_: Request, error: UserError) -> JSONResponse:
        return JSONResponse({"error": str(error)}, status_code=422)

    @app.exception_handler(RequestValidationError)
    def bad_request(_: Request, error: RequestValidationError) -> JSONResponse:
        return JSONResponse({"error": "; ".join(map(_in_words, error.errors()))}, status_code=422)

    @app.exception_handler(HTTPException)
    def http_error(_: Request, error: HTTPException) -> JSONResponse:
        return JSONResponse({"error": str(error.detail)}, status_code=error.status_code)


def _in_words(problem: Any) -> str:
    place = ".".join(str(part) for part in problem["loc"][1:] if isinstance(part, str))
    match problem["type"]:
        case "json_invalid" | "model_attributes_type" | "model_type":
            return "the question is not a JSON object"
        case "string_pattern_mismatch":
            return f"{place}: only letters, digits and signs of the keyboard belong into a SMILES"
        case "string_too_short":
            return f"{place}: type a SMILES first"
        case "string_too_long":
            return f"{place}: at most {problem['ctx']['max_length']:,} characters"
        case "missing":
            return f"{place or 'the question'}: is missing"
        case "extra_forbidden":
            return f"{place}: there is no such key"
    return f"{place}: {problem['msg']}"
