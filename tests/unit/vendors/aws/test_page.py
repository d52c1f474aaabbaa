from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path

import yaml

from gateway.domain.location import parse_location
from tests.cases import each_case
from vendors.aws.config import AwsOptions, RoleOptions, check, check_dir
from vendors.boto_options import AssumeRoleOptions, KeysOptions, ProfileOptions, WebIdentityOptions
from vendors.iam_policy import PolicyTerms, session_policy

HOUR = timedelta(hours=1)

PAGE = (Path(__file__).parents[4] / "docs" / "vendors" / "aws.md").read_text(encoding="utf-8")
MODELS = (AwsOptions, RoleOptions, AssumeRoleOptions, KeysOptions, ProfileOptions, WebIdentityOptions)
DOCUMENTS = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)


@each_case(
    "name", sorted({field.alias or name for model in MODELS for name, field in model.model_fields.items()})
)
def test_every_option_is_on_the_page(name):
    assert name in PAGE


@each_case("document", DOCUMENTS)
def test_every_policy_on_the_page_is_one(document):
    policy = json.loads(document)

    assert policy["Version"] == "2012-10-17"
    assert all(statement["Effect"] == "Allow" for statement in policy["Statement"])


def test_the_page_shows_the_policy_that_is_made():
    made = json.loads(session_policy(parse_location("s3://lake/shared/orders"), PolicyTerms()))

    assert made in [json.loads(document) for document in DOCUMENTS]


def test_the_storage_on_the_page_is_one():
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (storage,) = yaml.safe_load(example)["storages"]

    assert check(storage["options"]) == []
    assert check_dir(storage["options"], parse_location(f"{storage['prefix']}/orders")) == []
