"""The delta-sharing-capabilities header: what the client can do, and what the answer is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from gateway.v1 import catalog_pb2, snapshot_pb2

HEADER: Final = "delta-sharing-capabilities"

_FORMATS: Final = {
    "parquet": snapshot_pb2.RESPONSE_FORMAT_PARQUET,
    "delta": snapshot_pb2.RESPONSE_FORMAT_DELTA,
}
_FORMAT_NAMES: Final = {value: name for name, value in _FORMATS.items()}
# Two keys and two words for one thing: drafts of the protocol differ, and clients follow different drafts.
_ACCESS_KEYS: Final = ("accessmodes", "accessmode")
_ACCESS_WORDS: Final = {
    "url": catalog_pb2.ACCESS_MODE_URL,
    "dir": catalog_pb2.ACCESS_MODE_DIR,
    "prefix": catalog_pb2.ACCESS_MODE_DIR,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a client said that it can do. Nothing said: parquet by URLs."""

    response_formats: tuple[snapshot_pb2.ResponseFormat.ValueType, ...] = ()
    # Lower case.
    reader_features: tuple[str, ...] = ()
    include_end_stream_action: bool = False
    # Whether the client can wait for an answer that has to be made first.
    async_query: bool = False
    # By the client's own word; empty when it said nothing of them.
    access_modes: tuple[tuple[catalog_pb2.AccessMode.ValueType, str], ...] = ()
    # The key as the client spelled it.
    access_key: str = ""

    def to_proto(self) -> snapshot_pb2.ReaderCapabilities:
        return snapshot_pb2.ReaderCapabilities(
            response_formats=self.response_formats, reader_features=self.reader_features
        )


_NOTHING: Final = Capabilities()


def parse(headers: Sequence[str]) -> Capabilities:
    """Read the values of all such headers; what is unknown or malformed is left out."""
    if not headers:
        return _NOTHING
    values: dict[str, list[str]] = {}
    access_key = ""
    for part in ";".join(headers).split(";"):
        key, separator, text = part.partition("=")
        name = key.strip().lower()
        if not separator:
            continue
        values.setdefault(name, []).extend(_words(text))
        if name in _ACCESS_KEYS and not access_key:
            access_key = key.strip()
    modes = _access_modes([word for key in _ACCESS_KEYS for word in values.get(key, ())])
    return Capabilities(
        response_formats=tuple(
            _FORMATS[word] for word in _distinct(values.get("responseformat", ())) if word in _FORMATS
        ),
        reader_features=tuple(_distinct(values.get("readerfeatures", ()))),
        include_end_stream_action=values.get("includeendstreamaction") == ["true"],
        async_query=values.get("asyncquery") == ["true"],
        access_modes=modes,
        access_key=access_key if modes else "",
    )


def render(
    response_format: snapshot_pb2.ResponseFormat.ValueType,
    access_modes: str = "",
    *,
    end_stream_action: bool = False,
) -> str:
    """Return the header of an answer: keys and values in lower case, save what echoes the client's spelling.

    Some clients take any occurrence of "delta" for the format: it stands here in answers of that format only.
    """
    parts = [f"responseformat={_FORMAT_NAMES.get(response_format, 'parquet')}"]
    if end_stream_action:
        parts.append("includeendstreamaction=true")
    if access_modes:
        parts.append(access_modes)
    return ";".join(parts)


def render_pending(access_modes: str = "") -> str:
    """Return the header of an answer that is yet to be made, and has no format so far."""
    return ";".join(part for part in ("asyncquery=true", access_modes) if part)


def _words(text: str) -> list[str]:
    return [word for value in text.split(",") if (word := value.strip().lower())]


def _distinct(words: Iterable[str]) -> Iterable[str]:
    return dict.fromkeys(words)


def _access_modes(words: Sequence[str]) -> tuple[tuple[catalog_pb2.AccessMode.ValueType, str], ...]:
    modes: dict[catalog_pb2.AccessMode.ValueType, str] = {}
    for word in words:
        if (mode := _ACCESS_WORDS.get(word)) is not None:
            modes.setdefault(mode, word)
    return tuple(modes.items())
