from __future__ import annotations

import pytest

from gateway.commands.revocation.draft import check_text
from gateway.config.faults import ConfigError


def test_good_text_is_taken():
    config = check_text(
        "recipients: [{name: a, identities: [{issuer: i, subject: s}]}]\n", {"HOME": "/home/a"}
    )
    assert [recipient.name for recipient in config.recipients] == ["a"]


def test_text_with_a_fault_is_refused():
    with pytest.raises(ConfigError, match="recipients"):
        check_text("recipients: [{nome: a}]\n", {"HOME": "/home/a"})
