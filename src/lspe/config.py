"""What all configuration models share: strict, frozen, and helpful about misspelt keys."""

from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from lspe.errors import UserError

Model = TypeVar("Model", bound=BaseModel)


class Strict(BaseModel):
    """A frozen model that refuses unknown keys and suggests the right one."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    @model_validator(mode="before")
    @classmethod
    def _no_unknown_key(cls, values: Any) -> Any:
        if isinstance(values, dict):
            for key in values:
                if key not in cls.model_fields:
                    raise ValueError(unknown_name("key", str(key), cls.model_fields))
        return values


def unknown_name(what: str, name: str, known: Any) -> str:
    """A message for a name that is not among the known ones."""
    close = get_close_matches(name, list(known), n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
    return f"unknown {what} {name!r}: {hint}"


class ConfigError(UserError):
    """A configuration that cannot be used, with the place and the reason in words."""


def validate(model: type[Model], values: Any, source: str) -> Model:
    """``values`` as ``model``; what is wrong with them is said in lines ``source: place: reason``."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        lines = [
            f"{source}: {'.'.join(map(str, problem['loc'])) or 'top level'}: {_reason(problem)}"
            for problem in error.errors()
        ]
        raise ConfigError("\n".join(lines)) from None


def read_yaml_file(path: Path) -> dict[str, Any]:
    """The keys and values of a YAML file."""
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not YAML: {error}") from None
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: expected keys and values, got {type(values).__name__}")
    return values


def _reason(problem: Any) -> str:
    message: str = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "missing" or isinstance(problem["input"], dict | list):
        return message
    return f"{message} (got {problem['input']!r})"
