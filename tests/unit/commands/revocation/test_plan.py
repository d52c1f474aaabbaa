from __future__ import annotations

import pytest

from gateway.commands.revocation.plan import find_recipient
from gateway.config.faults import ConfigError
from gateway.config.schema import Config


@pytest.fixture
def config() -> Config:
    return Config.model_validate({"recipients": [{"name": "Straße"}, {"name": "acme"}]})


def test_recipient_is_found_as_the_catalog_finds_it(config):
    assert find_recipient(config, "STRASSE").name == "Straße"


def test_everybody_is_cut_off_by_another_setting():
    with pytest.raises(ConfigError, match="allowAnonymous"):
        find_recipient(Config.model_validate({"allowAnonymous": True}), "anonymous")


def test_name_of_nobody_is_no_setting(config):
    with pytest.raises(ConfigError, match="there is no recipient 'anonymous'"):
        find_recipient(config, "anonymous")
