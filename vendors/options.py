"""The options of a storage entry: one model for each vendor."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from gateway.ports import OptionFault
from vendors.option_faults import Disagreement, to_faults

Text = Annotated[str, Field(min_length=1)]

_EITHER: Final = "give either {file: PATH} or {value: TEXT}"


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

    def disagreements(self) -> Iterator[OptionFault]:
        """Return what is wrong between values each of which is fine; paths begin at this mapping."""
        return iter(())

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if faults := tuple(self.disagreements()):
            raise Disagreement(faults)
        return self


class SecretOptions(Options):
    """A secret in the file, or the path of a file that holds it and may be replaced while we run."""

    value: SecretStr | None = None
    file: Text | None = None

    def disagreements(self) -> Iterator[OptionFault]:
        if (self.value is None) == (self.file is None):
            yield OptionFault(message=_EITHER)

    def read(self) -> str:
        """Return the secret as it is now; raise ``OSError`` when its file cannot be read."""
        if self.value is not None:
            return self.value.get_secret_value()
        return Path(self.file or "").read_text(encoding="utf-8").rstrip("\r\n")


Model = TypeVar("Model", bound=Options)


def matching(pattern: str, words: str) -> AfterValidator:
    """Return a check that a text is of a form, which is told by the words."""
    form = re.compile(pattern)

    def check(text: str) -> str:
        if not form.fullmatch(text):
            raise ValueError(words)
        return text

    return AfterValidator(check)


def check_options(model: type[Options], options: Mapping[str, object]) -> Sequence[OptionFault]:
    """Return everything that is wrong with the options; never a value, which may be a secret."""
    try:
        model.model_validate(options)
    except ValidationError as exc:
        return to_faults(model, exc, options)
    return []


def parse_options(model: type[Model], options: Mapping[str, object]) -> Model:
    """Return options that were checked before."""
    return model.model_validate(options)


def check_files(options: Options) -> Sequence[OptionFault]:
    """Return which of the files that the options name cannot be read."""
    return [
        OptionFault(path=path, message=f"names a file that cannot be read here: {file}: {reason}")
        for path, file in _files(options, ())
        if (reason := _unreadable(file))
    ]


def why_unreadable(exc: OSError) -> str:
    """Return for a log which file could not be read and why; empty when it is about no file."""
    reason = exc.strerror or type(exc).__name__
    return f"the file {exc.filename} cannot be read: {reason}" if isinstance(exc.filename, str) else ""


def _files(options: Options, above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    for name, field in type(options).model_fields.items():
        value: Any = getattr(options, name)
        path = (*above, field.alias or name)
        if isinstance(value, Options):
            yield from _files(value, path)
        elif isinstance(value, str) and (name == "file" or name.endswith("_file")):
            yield path, value


def _unreadable(file: str) -> str:
    try:
        with Path(file).open("rb"):
            return ""
    except OSError as exc:
        return exc.strerror or type(exc).__name__
    except ValueError:
        return "not a path"
