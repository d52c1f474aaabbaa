from __future__ import annotations

from vendors.boto_options import AwsIdentity, check_entry
from vendors.options import Options, Text

KEYS = {"kind": "keys", "accessKeyId": "AKIA1", "secretAccessKey": {"value": "hunter2"}}


class Entry(Options):
    region: Text
    identity: AwsIdentity | None = None


def faults(**identity: object) -> list[str]:
    return list(check_entry(Entry, {"region": "eu", "identity": identity}))


def test_every_kind_of_identity_is_taken():
    role = {"arn": "arn:aws:iam::1:role/x", "externalId": "e", "sessionName": "s"}
    for identity in (
        KEYS,
        {**KEYS, "sessionToken": {"file": "/token"}, "accessKeyId": {"file": "/id"}},
        {"kind": "profile", "name": "lake", "file": "/credentials"},
        {"kind": "webIdentity", "roleArn": "arn", "tokenFile": "/token", "sessionName": "s"},
        {"kind": "chain"},
    ):
        assert faults(**identity) == []
        assert faults(**identity, assumeRole=role) == []


def test_an_entry_without_an_identity_is_told_which_kinds_there_are():
    for options in ({"region": "eu"}, {"region": "eu", "identity": {}}, {"region": "eu", "identity": None}):
        assert check_entry(Entry, options) == [
            "the option 'identity' is missing, or its kind: keys, profile, webIdentity, chain"
        ]


def test_other_faults_are_told_beside_it():
    assert check_entry(Entry, {})[1:] == ["the option 'region' is missing"]


def test_an_unknown_kind_names_the_known_ones():
    (fault,) = faults(kind="magic")

    assert "'keys', 'profile', 'webIdentity', 'chain'" in fault


def test_keys_need_their_secret():
    assert faults(kind="keys", accessKeyId="AKIA1") == [
        "the option 'identity.keys.secretAccessKey' is missing"
    ]


def test_a_secret_in_the_wrong_place_is_not_repeated():
    found = faults(kind="keys", accessKeyId="AKIA1", secretAccessKey="hunter2")

    assert found
    assert "hunter2" not in " ".join(found)
