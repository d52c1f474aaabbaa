from __future__ import annotations

import re
from importlib.metadata import entry_points

import pytest

from helm.options import MODELS, definitions, only_known_vendors


def test_every_vendor_of_ours_is_known():
    ours = {each.name for each in entry_points(group="gateway.vendors") if each.module.startswith("vendors.")}
    known = only_known_vendors()["properties"]["config"]["properties"]["storages"]["items"]["properties"]
    assert set(known["vendor"]["enum"]) == ours
    # Files of this machine need no options.
    assert set(MODELS) == ours - {"local"}


@pytest.mark.parametrize("vendor", MODELS)
def test_options_have_the_names_of_the_vendors_model_and_no_others(vendor):
    model = MODELS[vendor]
    names = {field.alias or name for name, field in model.model_fields.items()}
    options = definitions()[vendor]
    assert set(options["properties"]) == names
    assert options["additionalProperties"] is False


def test_nothing_is_required_and_everything_that_is_referred_to_is_there():
    found = definitions()
    text = str(found)
    assert not re.search(r"'required': \[", text)
    assert set(re.findall(r"'#/\$defs/([^']+)'", text)) <= set(found)
