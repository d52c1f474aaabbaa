from __future__ import annotations

from pydantic import SecretStr

from gateway.config.purpose import PURPOSES, has_keys, own_key, purposes_of, runs_everything
from gateway.config.schema import KeysConfig, KeySetConfig, ServiceName
from gateway.domain.key import Purpose


def test_every_purpose_belongs_to_a_service():
    assert set(PURPOSES) == set(ServiceName)
    assert set(purposes_of(tuple(ServiceName))) == set(Purpose)


def test_a_purpose_of_two_services_is_named_once():
    assert purposes_of((ServiceName.VENDING, ServiceName.PRESIGN)) == (Purpose.SEALING, Purpose.LOCAL_URL)


def test_each_purpose_has_a_key_of_its_name():
    for purpose in Purpose:
        keys = KeySetConfig.model_validate({purpose.value: "x"})
        assert own_key(keys, purpose) == SecretStr("x")
        assert [own_key(keys, other) for other in Purpose if other != purpose] == [None] * 4


def test_everything_is_all_five_in_any_order():
    assert runs_everything(tuple(reversed(ServiceName)))
    assert not runs_everything(tuple(ServiceName)[1:])


def test_keys_are_there_when_one_is():
    assert not has_keys(KeysConfig())
    assert has_keys(KeysConfig(previous=KeySetConfig(refresh=SecretStr("x"))))
