from __future__ import annotations

import pytest

from tests.cases import each_case
from tests.unit.vendors.words import told
from vendors.boto_options import AwsIdentity, Https, Url, is_clear
from vendors.options import Options, Text, check_options

ROLE = "arn:aws:iam::000000000000:role/x"
KEYS = {"kind": "keys", "accessKeyId": "AKIA1", "secretAccessKey": {"value": "hunter2"}}


class Entry(Options):
    region: Text
    identity: AwsIdentity
    endpoint: Url | None = None
    sts_endpoint: Https | None = None


def faults(**identity: object) -> list[str]:
    return told(check_options(Entry, {"region": "eu", "identity": identity}))


def test_every_kind_of_identity_is_taken():
    role = {"arn": ROLE, "externalId": "e", "sessionName": "s"}
    for identity in (
        KEYS,
        {**KEYS, "sessionToken": {"file": "/token"}, "accessKeyId": {"file": "/id"}},
        {"kind": "profile", "name": "lake", "file": "/credentials"},
        {"kind": "webIdentity", "roleArn": ROLE, "tokenFile": "/token", "sessionName": "s"},
        {"kind": "chain"},
    ):
        assert faults(**identity) == []
        assert faults(**identity, assumeRole=role) == []


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (
            {},
            "identity: is missing: it says who the gateway is; its kind is one of keys, profile, "
            "webIdentity, chain",
        ),
        (
            {"identity": None},
            "identity: must be a mapping that says who the gateway is; its kind is one of keys, profile, "
            "webIdentity, chain",
        ),
        ({"identity": {}}, "identity.kind: is missing: give one of keys, profile, webIdentity, chain"),
    ],
)
def test_an_entry_without_an_identity_is_told_which_kinds_there_are(options, fault):
    assert told(check_options(Entry, {"region": "eu", **options})) == [fault]


def test_other_faults_are_told_beside_it():
    assert "region: is missing" in told(check_options(Entry, {}))


def test_an_unknown_kind_names_the_known_ones_and_the_nearest():
    assert faults(kind="kyes") == [
        "identity.kind: must be one of keys, profile, webIdentity, chain; did you mean keys?"
    ]


def test_keys_need_their_secret():
    assert faults(kind="keys", accessKeyId="AKIA1") == [
        "identity.secretAccessKey: is missing: give {file: PATH} or {value: TEXT}"
    ]


def test_a_misspelt_option_is_one_fault_and_not_missing_too():
    assert faults(kind="keys", accesKeyId="AKIA1", secretAccessKey={"file": "/s"}) == [
        "identity.accesKeyId: unknown option; did you mean accessKeyId?"
    ]


def test_a_secret_in_the_wrong_place_is_told_where_it_belongs_and_not_repeated():
    assert faults(kind="keys", accessKeyId="AKIA1", secretAccessKey="hunter2") == [
        "identity.secretAccessKey: give {file: PATH} or {value: TEXT}"
    ]


@each_case(
    ("given", "fault"),
    [
        (5, "identity.accessKeyId: give a text, or {file: PATH}"),
        (["a"], "identity.accessKeyId: give a text, or {file: PATH}"),
        ({"fil": "/x"}, "identity.accessKeyId.fil: unknown option; did you mean file?"),
        ({}, "identity.accessKeyId: give either {file: PATH} or {value: TEXT}"),
    ],
)
def test_a_key_that_is_a_text_or_a_file_has_one_fault(given, fault):
    assert faults(**{**KEYS, "accessKeyId": given}) == [fault]


@each_case("arn", ["Vended", "arn:aws:iam::1:user/x", "arn:aws:iam::1:role/", "arn:aws:s3:::b"])
def test_a_role_is_named_by_its_arn(arn):
    for identity, path in (
        ({**KEYS, "assumeRole": {"arn": arn}}, "identity.assumeRole.arn"),
        ({"kind": "webIdentity", "roleArn": arn, "tokenFile": "/t"}, "identity.roleArn"),
    ):
        (fault,) = faults(**identity)
        assert fault.startswith(f"{path}: must be the ARN of a role")


@pytest.mark.parametrize("arn", [ROLE, "arn:aws:iam:::role/x", "arn:aws-cn:iam::RGW1:role/a/b"])
def test_the_roles_of_all_stores_are_taken(arn):
    assert faults(**KEYS, assumeRole={"arn": arn}) == []


@each_case("url", ["s3.example", "ftp://s3", "https://a/b", "https://u:hunter2@a", "https://a\n"])
def test_an_endpoint_begins_with_its_scheme_and_is_a_host(url):
    options = {"region": "eu", "identity": KEYS, "endpoint": url, "stsEndpoint": url}

    one, other = told(check_options(Entry, options))

    assert one.startswith("endpoint: must begin with https:// or http://, and be a host and port")
    assert other.startswith("stsEndpoint: must begin with https:// (http:// is for this machine only), and")
    assert "hunter2" not in one + other


@each_case(
    ("url", "clear"),
    [
        ("http://s3.example", True),
        ("http://localhost.example", True),
        ("http://127.0.0.1:9000", False),
        ("https://s3.example", False),
    ],
)
def test_only_this_machine_is_reached_in_the_clear_without_a_word(url, clear):
    assert is_clear(url) is clear


@each_case(
    ("identity", "is_temporary"),
    [
        (KEYS, False),
        ({**KEYS, "sessionToken": {"file": "/token"}}, False),
        ({**KEYS, "assumeRole": {"arn": ROLE}}, True),
        ({"kind": "profile", "name": "lake"}, True),
        ({"kind": "webIdentity", "roleArn": ROLE, "tokenFile": "/token"}, True),
        ({"kind": "chain"}, True),
    ],
)
def test_all_but_plain_keys_are_taken_for_sessions(identity, is_temporary):
    entry = Entry.model_validate({"region": "eu", "identity": identity})

    assert entry.identity.is_temporary is is_temporary
