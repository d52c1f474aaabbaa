from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from gateway.commands.demo import what_is_shared
from gateway.config.load import load
from gateway.demo.pipeline_sample import PROPERTIES, SCHEMA, VIEW, add_pipeline
from gateway.demo.sample import SampleCatalog


@pytest.fixture
def config(tmp_path):
    settings = {
        "stateDir": str(tmp_path / "state"),
        **what_is_shared(SampleCatalog(directory=tmp_path / "sample"), None),
        "recipients": [{"name": "demo", "shares": "*", "tokens": [{"hash": f"sha256:{'0' * 64}"}]}],
    }
    add_pipeline(settings, tmp_path)
    file = tmp_path / "server.yaml"
    file.write_text(yaml.safe_dump(settings))
    return load(file, {}).config


def test_a_view_of_the_recipients_own_rows_stands_beside_the_tables(config):
    (schema,) = [schema for schema in config.shares[0].schemas if schema.name == SCHEMA]
    assert [view.name for view in schema.views] == [VIEW]
    assert config.recipients[0].properties == PROPERTIES


def test_usage_is_counted_within_a_minute(config, tmp_path):
    assert config.usage.every is not None
    assert (config.usage.every + config.audit.segment_age).total_seconds() <= 60
    assert {Path(config.usage.landing).parent, Path(config.usage.location).parent} == {tmp_path / "usage"}
