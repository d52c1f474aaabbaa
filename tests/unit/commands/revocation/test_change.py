from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from gateway.adapters.config_edit import Changed, ConfigText, NotEditable
from gateway.commands.revocation.change import Change, with_changes
from gateway.commands.revocation.draft import check_text
from gateway.commands.revocation.plan import find_recipient

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
ENV = {"HOME": "/home/a"}
TEXT = """\
recipients:
- {name: other, identities: [{issuer: i, subject: o}]}
- {name: acme, identities: [{issuer: i, subject: a}]}
"""


def text_of(text: str) -> ConfigText:
    return ConfigText(Path("server.yaml"), text, text.encode())


def change_of(text: str, name: str = "acme") -> Change:
    return Change(entry=find_recipient(check_text(text, ENV), name), revoked_at=NOON, disables=True)


@pytest.mark.parametrize("before", ["", "- {name: first, identities: [{issuer: i, subject: f}]}\n"])
def test_entry_is_found_wherever_it_stands_now(before):
    now = TEXT.replace("recipients:\n", f"recipients:\n{before}")

    recipients = check_text(with_changes(text_of(now), [change_of(TEXT)], ENV), ENV).recipients

    assert [one.name for one in recipients if one.disabled] == ["acme"]
    assert [one.name for one in recipients if one.revoked_at] == ["acme"]


@pytest.mark.parametrize("new", ["name: acme-2", 'shares: "*", name: acme', "disabled: true, name: acme"])
def test_entry_that_says_something_else_now_is_not_changed(new):
    with pytest.raises(Changed, match=r"server\.yaml was changed by somebody else just now; try again"):
        with_changes(text_of(TEXT.replace("name: acme", new)), [change_of(TEXT)], ENV)


def test_entry_that_others_refer_to_is_not_changed():
    text = """\
recipients:
- &acme {name: acme, identities: [{issuer: i, subject: a}]}
- {<<: *acme, name: other, identities: [{issuer: i, subject: o}]}
"""
    with pytest.raises(NotEditable):
        with_changes(text_of(text), [change_of(text)], ENV)


def test_change_is_said_with_the_name_of_its_entry():
    assert str(change_of(TEXT)).startswith("  recipients, the entry named acme:\n    disabled: true\n")
