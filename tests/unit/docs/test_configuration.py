from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from gateway.config.schema import NOT_APPLICABLE, Config
from gateway.config.section import Section

PAGE = (Path(__file__).parents[3] / "docs" / "configuration.md").read_text()


def keys_of(section: type[Section]) -> set[str]:
    keys = set()
    for name, field in section.model_fields.items():
        keys.add(field.alias or name)
        for inner in sections_in(field.annotation):
            keys |= keys_of(inner)
    return keys


def sections_in(annotation) -> set[type[Section]]:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return {annotation}
    return {section for argument in get_args(annotation) for section in sections_in(argument)}


@pytest.mark.parametrize("key", sorted(keys_of(Config) | set(NOT_APPLICABLE)))
def test_every_key_is_on_the_page(key):
    assert key in PAGE
