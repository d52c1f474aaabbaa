from __future__ import annotations

import re
from importlib.metadata import entry_points

from helm.options import MODELS, definitions, only_known_vendors
from tests.problems import assert_none


def test_every_vendor_of_ours_is_known():
    ours = {each.name for each in entry_points(group="gateway.vendors") if each.module.startswith("vendors.")}
    known = only_known_vendors()["properties"]["config"]["properties"]["storages"]["items"]["properties"]
    assert set(known["vendor"]["enum"]) == ours
    # Files of this machine need no options.
    assert set(MODELS) == ours - {"local"}


def test_options_have_the_names_of_the_vendors_model_and_no_others():
    found = definitions()
    problems = []
    for vendor, model in MODELS.items():
        names = {field.alias or name for name, field in model.model_fields.items()}
        options = found[vendor]
        if different := names ^ set(options["properties"]):
            problems.append(f"{vendor}: in its model or in the schema only: {sorted(different)}")
        if options["additionalProperties"] is not False:
            problems.append(f"{vendor}: the schema allows names that are not in the model")
    assert_none(problems)


def test_nothing_is_required_and_everything_that_is_referred_to_is_there():
    found = definitions()
    text = str(found)
    assert not re.search(r"'required': \[", text)
    assert set(re.findall(r"'#/\$defs/([^']+)'", text)) <= set(found)
