from __future__ import annotations

import pytest

from gateway.work.redaction import HIDDEN, Redaction, is_secret
from tests.cases import each_case


@each_case(
    "name",
    [
        "fs.s3a.bucket.lake.access.key",
        "fs.s3a.bucket.lake.secret.key",
        "fs.s3a.bucket.lake.session.token",
        "fs.azure.account.key.acct.dfs.core.windows.net",
        "fs.azure.sas.fixed.token",
        "spark.ssl.keyPassword",
    ],
)
def test_name_of_a_secret_is_known(name):
    assert is_secret(name)


@pytest.mark.parametrize(
    "name", ["fs.s3a.bucket.lake.endpoint", "fs.s3a.bucket.lake.path.style.access", "spark.driver.memory"]
)
def test_other_names_are_no_secrets(name):
    assert not is_secret(name)


def test_secrets_are_hidden_and_other_settings_are_not():
    hide = Redaction({"a.secret.key": "abcdef", "a.endpoint": "http://store"}, {"b.token": "abcdefgh"})

    assert hide("http://store abcdefgh abcdef") == f"http://store {HIDDEN} {HIDDEN}"
