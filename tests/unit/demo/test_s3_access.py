from __future__ import annotations

import base64
import json

from gateway.demo.s3_access import BUCKET, ROLE_ARN, iam, identities, new_access


def test_every_start_has_keys_of_its_own():
    first, second = new_access(), new_access()
    assert first.gateway != second.gateway
    assert first.admin != second.admin
    assert first.signing_key != second.signing_key


def test_keys_do_not_show_their_secrets():
    access = new_access()
    shown = repr(access)
    assert access.gateway.secret_access_key not in shown
    assert repr(access.signing_key) not in shown


def test_only_the_administrator_may_do_everything():
    access = new_access()
    admin, gateway = identities(access)["identities"]
    assert "Admin" in admin["actions"]
    assert "actions" not in gateway
    assert gateway["policyNames"] == ["BeGateway"]


def test_only_the_gateway_may_assume_the_role():
    (role,) = iam(new_access())["roles"]
    (statement,) = role["trustPolicy"]["Statement"]
    assert role["roleArn"] == ROLE_ARN
    assert statement["Principal"] == {"AWS": "arn:aws:iam::000000000000:user/gateway"}


def test_neither_the_role_nor_the_gateway_may_write():
    text = json.dumps(iam(new_access())["policies"])
    assert "Put" not in text
    assert "Delete" not in text
    assert "s3:*" not in text


def test_gateway_itself_reads_what_its_urls_open_and_lists_logs_only():
    policies = {policy["name"]: policy["document"] for policy in iam(new_access())["policies"]}
    _, read, listing = policies["BeGateway"]["Statement"]
    assert read["Resource"] == [f"arn:aws:s3:::{BUCKET}/*"]
    assert listing["Condition"] == {"StringLike": {"s3:prefix": ["*/_delta_log/*"]}}


def test_signing_key_is_what_the_store_decodes():
    access = new_access()
    assert base64.b64decode(iam(access)["sts"]["signingKey"]) == access.signing_key
