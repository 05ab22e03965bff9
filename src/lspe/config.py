"""What all configuration models share: strict, frozen, and helpful about misspelt keys."""

import os
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from lspe.errors import UserError

Model = TypeVar("Model", bound=BaseModel)

_LONGEST_SHOWN = 100


class ConfigError(UserError):
    """A configuration that cannot be used, with the place and the reason in words."""


class Strict(BaseModel):
    """A frozen model that refuses unknown keys and suggests the right one."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise in_words(error, type(self).__name__) from None

    # a model inside another is not made by this __init__: the outer one knows the whole place of what is wrong
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

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
    return f"unknown {what} {_shown(name)}: {hint}"


def validate(model: type[Model], values: Any, source: str) -> Model:
    """``values`` as ``model``; what is wrong with them is said in lines ``source: place: reason``."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise in_words(error, source) from None


def in_words(error: ValidationError, source: str) -> ConfigError:
    """What is wrong with values, in lines ``source: place: reason``."""
    lines = [
        f"{source}: {'.'.join(map(str, problem['loc'])) or 'top level'}: {_reason(problem)}"
        for problem in error.errors()
    ]
    return ConfigError("\n".join(lines))


def read_yaml_file(path: Path) -> dict[str, Any]:
    """The keys and values of a YAML file."""
    if not os.path.isfile(path):
        raise ConfigError(f"{path}: there is no such file")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not YAML in UTF-8: {error}") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    values = read_yaml(text, str(path))
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: expected keys and values, got {type(values).__name__}")
    return values


def read_yaml(text: str, source: str) -> Any:
    """A YAML value; what is wrong with it is said of ``source``."""
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{source}: not YAML: {error}") from None
    except ValueError as error:  # 2024-13-01, which looks like a date
        raise ConfigError(f"{source}: a value cannot be read: {error}; put text into quotes") from None
    except RecursionError:
        raise ConfigError(f"{source}: not an experiment: lists in lists, or keys below keys, without end") from None


def _reason(problem: Any) -> str:
    if problem["type"] == "union_tag_invalid":
        about = problem["ctx"]
        known = [name.strip(" '") for name in about["expected_tags"].split(",")]
        return unknown_name(about["discriminator"].strip("'"), str(about["tag"]), known)
    message: str = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "missing" or isinstance(problem["input"], dict | list | BaseModel):
        return message
    return f"{message} (got {_shown(problem['input'])})"


def _shown(value: Any) -> str:
    """A value as Python writes it, cut off where it is long."""
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
