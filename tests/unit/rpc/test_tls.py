from __future__ import annotations

from pathlib import Path

import pytest

from gateway.errors import InvalidArgument
from gateway.rpc.tls import channel_credentials, server_credentials
from tests.certificates import new_authority

SIDES = [server_credentials, channel_credentials]


@pytest.mark.parametrize("credentials", SIDES)
def test_a_certificate_with_its_key_and_authority_will_do(tmp_path, credentials):
    credentials(new_authority(tmp_path).issue("edge"))


@pytest.mark.parametrize("credentials", SIDES)
@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("certificate", "cannot be used with the key"),
        ("key", "cannot be used with the key"),
        ("ca", "no cert"),
    ],
)
def test_what_is_not_pem_is_named(tmp_path, credentials, broken, message):
    tls = new_authority(tmp_path).issue("edge")
    Path(getattr(tls, broken)).write_text("junk")

    with pytest.raises(InvalidArgument, match=message):
        credentials(tls)


@pytest.mark.parametrize("credentials", SIDES)
def test_the_key_of_another_certificate_is_refused(tmp_path, credentials):
    authority = new_authority(tmp_path)
    one, other = authority.issue("one"), authority.issue("other")

    with pytest.raises(InvalidArgument, match="cannot be used with the key"):
        credentials(one.model_copy(update={"key": other.key}))
