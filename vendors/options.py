"""The options of a storage entry: one model for each vendor, and its faults in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator
from pydantic.alias_generators import to_camel

Text = Annotated[str, Field(min_length=1)]


class Options(BaseModel):
    """A mapping of the file: camelCase keys, no others, immutable. A vendor's models derive from it."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        validate_by_name=False,
        validate_by_alias=True,
        hide_input_in_errors=True,
    )


class SecretOptions(Options):
    """A secret in the file, or the path of a file that holds it and may be replaced while we run."""

    value: SecretStr | None = None
    file: Text | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.value is None) == (self.file is None):
            raise ValueError("give either value or file")
        return self

    def read(self) -> str:
        """Return the secret as it is now; raise ``OSError`` when its file cannot be read."""
        if self.value is not None:
            return self.value.get_secret_value()
        return Path(self.file or "").read_text(encoding="utf-8").rstrip("\r\n")


Model = TypeVar("Model", bound=Options)


def check_options(model: type[Options], options: Mapping[str, object]) -> Sequence[str]:
    """Return what is wrong with the options, in words; never a value, which may be a secret."""
    try:
        model.model_validate(options)
    except ValidationError as exc:
        found = exc.errors(include_url=False, include_input=False, include_context=False)
        return [_words(model, dict(error)) for error in found]
    return []


def parse_options(model: type[Model], options: Mapping[str, object]) -> Model:
    """Return options that were checked before."""
    return model.model_validate(options)


def _words(model: type[Options], error: Mapping[str, Any]) -> str:
    path = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        return f"unknown option {path!r}{_suggestion(model, error['loc'])}"
    if error["type"] == "missing":
        return f"the option {path!r} is missing"
    message = str(error["msg"]).removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    return f"{path}: {message}" if path else message


def _suggestion(model: type[Options], path: Sequence[str | int]) -> str:
    if len(path) > 1:
        return ""
    known = [field.alias or name for name, field in model.model_fields.items()]
    near = get_close_matches(str(path[0]), known, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(known)}"
