from __future__ import annotations

import logging

import pytest

from gateway.errors import Unavailable
from tests.unit.vendors.r2.cloudflare import PARENT, SECRET, options
from vendors.options import SecretOptions
from vendors.r2.identity import Identity, Parent, read_secret


def identity(file) -> Identity:
    keys = {"kind": "keys", "accessKeyId": PARENT, "secretAccessKey": {"file": str(file)}}
    return Identity(options(identity=keys).identity)


async def test_parent_is_the_one_that_is_named():
    parent = await Identity(options().identity).parent()

    assert parent == Parent(access_key_id=PARENT, secret_access_key=SECRET)
    assert SECRET not in repr(parent)


async def test_secret_is_read_again_from_a_file_that_was_replaced(tmp_path):
    file = tmp_path / "secret"
    file.write_text("one\n", encoding="utf-8")
    own = identity(file)
    first = await own.parent()
    file.write_text("two\n", encoding="utf-8")

    assert first.secret_access_key == "one"
    assert (await own.parent()).secret_access_key == "two"


@pytest.mark.parametrize("content", [None, b"", b"\n", b"\xff\xfe"], ids=["gone", "empty", "blank", "binary"])
async def test_file_without_a_secret_is_no_identity(tmp_path, caplog, content):
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)

    with caplog.at_level(logging.WARNING), pytest.raises(Unavailable) as raised:
        await identity(file).parent()

    # The operator learns which secret it is, the recipient not even that.
    assert "identity.secretAccessKey" in caplog.text
    assert "secretAccessKey" not in raised.value.message
    assert str(tmp_path) not in raised.value.message


async def test_secret_that_is_given_is_returned():
    assert await read_secret(SecretOptions.model_validate({"value": "hush"}), "apiToken") == "hush"
