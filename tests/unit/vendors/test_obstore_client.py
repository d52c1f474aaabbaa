from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from vendors.obstore_client import client_options, retry_config


@pytest.mark.parametrize("allowed", [True, False])
def test_plain_http_is_allowed_only_where_that_is_said(allowed):
    assert client_options(allow_http=allowed)["allow_http"] is allowed


def test_certificates_are_taken_from_the_file(tmp_path):
    file = tmp_path / "ca.pem"
    file.write_bytes(b"a certificate")
    assert client_options(allow_http=False, ca_file=str(file))["root_certificate"] == b"a certificate"
    assert "root_certificate" not in client_options(allow_http=False)


def test_silence_is_given_up_long_before_a_large_file_is():
    options: dict[str, Any] = dict(client_options(allow_http=False))
    assert options["connect_timeout"] < options["read_timeout"] < timedelta(seconds=30) < options["timeout"]


def test_tries_are_bounded_in_number_and_time():
    assert retry_config() == {"max_retries": 3, "retry_timeout": timedelta(seconds=10)}
