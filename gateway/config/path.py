"""Where something stands in a configuration, and how that and its value may be shown."""

from __future__ import annotations

import re
from typing import Final

Path = tuple[str | int, ...]

_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_LONGEST: Final = 80
# Names under which secrets stand, or would be looked for by whoever misplaced one.
_SECRET_NAME: Final = re.compile(
    r"secret|token|passw|credential|private|bearer|api_?key|access_?key|hash|\bsas\b|sealing|auth",
    re.IGNORECASE,
)
_SECRET_SECTIONS: Final = frozenset({"keys", "authorization", "options", "tokens"})
# Keys of our own that stand among secrets, or are called like some, and hold none.
_HARMLESS: Final = frozenset({"expires", "credentialLife", "life", "regionAndEndpoint", "r2Credentials"})
_LOOKS_RANDOM: Final = re.compile(
    r"(?=.*[a-z])(?=.*[A-Z])(?=.*[0-9].*[0-9])[A-Za-z0-9+_=-][A-Za-z0-9+/_=-]{23,}"
)
# Secret keys may hold slashes.
_USER_INFO: Final = re.compile(r"(//)[^@\s]*:[^@\s]*@")
# Of URLs, and of YAML lines that a slip of the indentation has made a part of another value.
_SECRET_PARAMETER: Final = re.compile(
    r"((?:sig|signature|token|secret|password|key)(?:=|:[\s?'\"]+))[^&\s'\"]+", re.IGNORECASE
)


def format_path(path: Path) -> str:
    """Return the path as in ``recipients[0].tokens[1].hash``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _WORD.fullmatch(step) and not looks_secret(step):
            text += f".{step}" if text else step
        else:
            text += f"[{quoted(step)}]"
    return text


def quoted(text: str) -> str:
    """Return a text from the file for a message: short, on one line, without anything that looks secret."""
    if looks_secret(text):
        return f"(a text of {len(text)} characters that looks like a secret)"
    text = redacted(text)
    return repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")


def redacted(text: str) -> str:
    """Return the text without the passwords and signatures that URLs in it carry."""
    return _SECRET_PARAMETER.sub(r"\1…", _USER_INFO.sub(r"\1…@", text))


def looks_secret(text: str) -> bool:
    return text.startswith("slc_") or "-----BEGIN" in text or _LOOKS_RANDOM.fullmatch(text) is not None


def is_secret(path: Path) -> bool:
    """Tell whether what stands at the path must not be shown."""
    names = [step for step in path if isinstance(step, str)]
    return _HARMLESS.isdisjoint(path[-1:]) and any(
        name in _SECRET_SECTIONS or _SECRET_NAME.search(name) for name in names
    )


def describe(value: object, path: Path) -> str:
    """Return a value for a message, or its kind and size where it is or may be a secret."""
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, str):
        return _describe_text(value, path)
    return "a number or boolean" if is_secret(path) else str(value).lower()


def _describe_text(text: str, path: Path) -> str:
    if not text:
        return "an empty text"
    if "\n" in text:
        return f"a text of {len(text.splitlines())} lines"
    return f"a text of {len(text)} characters" if is_secret(path) else quoted(text)
