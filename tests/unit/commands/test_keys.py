from __future__ import annotations

import argparse
import json

import pytest
import yaml

from gateway.adapters.keyring import build_keyring
from gateway.commands import keys
from gateway.config.load import load
from gateway.config.schema import KeysConfig, ServiceName
from gateway.domain.key import Purpose


@pytest.fixture
def printed(capsys):
    def run(*arguments):
        parser = argparse.ArgumentParser()
        keys.configure(parser)
        assert keys.run(parser.parse_args(arguments), {}) == 0
        return capsys.readouterr().out

    return run


def test_one_process_gets_one_fresh_secret(printed, tmp_path):
    text = printed("new")
    assert text != printed("new")
    file = tmp_path / "server.yaml"
    file.write_text(f"allowAnonymous: true\n{text}")
    keyring = build_keyring(load(file, {}).config.keys, tuple(ServiceName))
    assert keyring.grant_private()[0] in keyring.grant_public()


def test_several_processes_get_the_keys_of_their_purposes_only(printed, tmp_path):
    sections = list(yaml.safe_load_all(printed("new", "--split")))
    for service, section in zip(ServiceName, sections, strict=True):
        config = {
            "allowAnonymous": True,
            "services": {
                "run": [service.value],
                "listen": "localhost:1",
                "addresses": dict.fromkeys(("catalog", "snapshot", "presign", "vending"), "localhost:1"),
            },
        }
        file = tmp_path / "server.json"
        file.write_text(json.dumps({**config, **section}))
        assert load(file, {}).warnings == ()
    assert [sorted(section["keys"]["current"]) for section in sections] == [
        ["localUrl"],
        ["grantPrivateKey", "listPage"],
        ["filePage", "grantPublicKey", "refresh"],
        ["grantPublicKey", "localUrl", "sealing"],
        ["grantPublicKey", "sealing"],
    ]


def test_processes_that_share_a_purpose_share_its_key(printed):
    documents = yaml.safe_load_all(printed("new", "--split"))
    rings = {
        service: build_keyring(KeysConfig.model_validate(document["keys"]), (service,))
        for service, document in zip(ServiceName, documents, strict=True)
    }
    edge, presign, vending = (rings[ServiceName(name)] for name in ("edge", "presign", "vending"))
    assert edge.keys(Purpose.LOCAL_URL) == presign.keys(Purpose.LOCAL_URL)
    assert presign.keys(Purpose.SEALING) == vending.keys(Purpose.SEALING)
    assert list(vending.grant_public()) == [rings[ServiceName.CATALOG].grant_private()[0]]


def test_an_action_is_needed(printed):
    with pytest.raises(SystemExit):
        printed()
