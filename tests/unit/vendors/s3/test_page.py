from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from gateway.domain.location import parse_location
from tests.cases import each_case
from vendors.s3.config import CapabilityOptions, RoleOptions, S3Options, check, check_dir
from vendors.s3.profile import PROFILES

PAGE = (Path(__file__).parents[4] / "docs" / "vendors" / "s3.md").read_text(encoding="utf-8")
MODELS = (S3Options, RoleOptions, CapabilityOptions)
STORAGES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


@each_case(
    "name", sorted({field.alias or name for model in MODELS for name, field in model.model_fields.items()})
)
def test_every_option_is_on_the_page(name):
    assert name in PAGE


@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_is_on_the_page(profile):
    assert f"`{profile}`" in PAGE


@pytest.mark.parametrize("document", re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL))
def test_every_document_on_the_page_is_json(document):
    assert json.loads(document)


@pytest.mark.parametrize("example", STORAGES)
def test_every_storage_on_the_page_vends(example):
    found = yaml.safe_load(example)
    options = found["storages"][0]["options"] if "storages" in found else found

    assert check(options) == []
    assert check_dir(options, parse_location("s3://lake/orders")) == []
