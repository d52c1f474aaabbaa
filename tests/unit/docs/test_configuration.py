from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from gateway.config.schema import NOT_APPLICABLE, Config
from gateway.config.section import Section
from tests.problems import assert_none
from tests.repository import ROOT

PAGE = (ROOT / "docs" / "configuration.md").read_text()


def keys_of(section: type[Section]) -> Iterator[tuple[str, str]]:
    """Yield each key of a section and of those inside it, with the name of its section's class."""
    for name, field in section.model_fields.items():
        yield field.alias or name, section.__name__
        for inner in sections_in(field.annotation):
            yield from keys_of(inner)


def sections_in(annotation) -> set[type[Section]]:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return {annotation}
    return {section for argument in get_args(annotation) for section in sections_in(argument)}


def test_configuration_page_names_every_key():
    keys = {**dict(keys_of(Config)), **dict.fromkeys(NOT_APPLICABLE, "NOT_APPLICABLE")}
    assert len(keys) > 100
    assert_none(
        f"docs/configuration.md: the key {key!r} of {origin} is not on the page"
        for key, origin in sorted(keys.items())
        if key not in PAGE
    )
