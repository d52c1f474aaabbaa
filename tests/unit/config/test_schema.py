from __future__ import annotations

from datetime import timedelta

import pytest
from pydantic import ValidationError

from gateway.config.schema import Config, ServiceName, StorageConfig


def test_the_defaults_are_one_process_on_loopback():
    config = Config()
    assert (config.host, config.port, config.endpoint) == ("127.0.0.1", 8080, "/delta-sharing")
    assert config.services.run == tuple(ServiceName)
    assert config.storages is None
    assert config.grace == timedelta(seconds=30)


def test_the_tree_is_frozen():
    with pytest.raises(ValidationError, match="frozen"):
        Config().port = 1  # type: ignore[misc] # the case


def test_secrets_do_not_print():
    config = Config.model_validate(
        {
            "authorization": {"bearerToken": "hunter2"},
            "keys": {"current": {"secret": "hunter2", "grantPrivateKey": "hunter2"}},
        }
    )
    assert "hunter2" not in f"{config} {config!r}"


def test_keys_are_spelt_as_in_the_file():
    assert Config.model_validate({"publicUrl": "x"}).public_url == "x"
    with pytest.raises(ValidationError):
        Config.model_validate({"public_url": "x"})


def test_a_vendors_options_are_not_shown():
    storage = StorageConfig(name="a", prefix="s3://b", vendor="aws", options={"secretKey": "hunter2"})
    assert "hunter2" not in repr(storage)
