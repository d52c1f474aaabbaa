from __future__ import annotations

import hashlib
from datetime import UTC, datetime

import pytest

from gateway.adapters.catalog_index import PrincipalIndex
from gateway.adapters.catalog_principals import PrincipalReader
from gateway.config.faults import Fault
from gateway.config.schema import Config
from gateway.domain.principal import ALL_SHARES, Principal, PrincipalKind

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
EVERYTHING = frozenset({ALL_SHARES})


def read(**config: object) -> tuple[PrincipalIndex, list[Fault]]:
    faults: list[Fault] = []
    return PrincipalReader(faults).read(Config.model_validate(config)), faults


def sha256(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def token(text: str) -> dict[str, object]:
    return {"hash": f"sha256:{sha256(text).hex()}"}


def test_the_reference_format_s_token_is_one_recipient_that_sees_everything():
    index, faults = read(authorization={"bearerToken": "secret"})
    expected = Principal(name="bearer", kind=PrincipalKind.RECIPIENT, shares=EVERYTHING)
    assert index.find_by_token(sha256("secret"), NOON) == expected
    assert index.recipients == {"bearer": expected}
    assert index.find_by_token(sha256("other"), NOON) is None
    assert index.find_by_token(sha256(""), NOON) is None
    assert not faults


def test_a_file_with_both_knows_both():
    index, faults = read(
        authorization={"bearerToken": "secret"}, recipients=[{"name": "acme", "tokens": [token("t")]}]
    )
    assert {name: p.shares for name, p in index.recipients.items()} == {
        "acme": frozenset(),
        "bearer": EVERYTHING,
    }
    assert not faults


# Clients cannot be told to send none: a profile always has a token.
@pytest.mark.parametrize("presented", ["", "whatever the profile says"])
def test_where_it_is_allowed_everybody_is_anonymous_with_a_token_or_without(presented):
    index, faults = read(allowAnonymous=True)
    expected = Principal(name="anonymous", kind=PrincipalKind.RECIPIENT, shares=EVERYTHING)
    assert index.find_by_token(sha256(presented), NOON) == expected
    assert not faults


def test_where_it_is_not_allowed_nobody_is_anonymous():
    index, _ = read(recipients=[{"name": "acme", "shares": "*", "tokens": [token("t")]}])
    assert index.anonymous is None
    assert index.find_by_token(sha256(""), NOON) is None


def test_the_star_grants_everything_as_a_word_and_in_a_list():
    index, _ = read(recipients=[{"name": "a", "shares": "*"}, {"name": "b", "shares": ["*"]}])
    assert index.recipients["a"].shares == index.recipients["b"].shares == EVERYTHING


def test_granted_shares_are_folded():
    index, _ = read(recipients=[{"name": "acme", "shares": ["Sales", "HR"]}])
    assert index.recipients["acme"].shares == {"sales", "hr"}


def test_a_recipient_and_a_service_of_the_same_name_are_a_fault():
    _, faults = read(recipients=[{"name": "Spark"}], principals=[{"name": "spark", "certificate": "x"}])
    assert [fault.path for fault in faults] == ["principals[0]"]
    assert "recipients[0]" in faults[0].message


@pytest.mark.parametrize(
    "config",
    [
        {"recipients": [{"name": "bearer"}], "authorization": {"bearerToken": "secret"}},
        {"recipients": [{"name": "anonymous"}], "allowAnonymous": True},
    ],
)
def test_the_names_that_stand_for_a_single_token_and_for_everybody_are_taken_where_they_are_used(config):
    assert len(read(**config)[1]) == 1


def test_a_recipient_with_the_token_of_the_reference_format_is_a_fault_that_does_not_quote_it():
    _, faults = read(
        recipients=[{"name": "acme", "tokens": [token("secret")]}], authorization={"bearerToken": "secret"}
    )
    assert [fault.path for fault in faults] == ["authorization.bearerToken"]
    assert "secret" not in faults[0].message


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({"recipients": [{"name": "acme", "tokens": [token("")]}]}, "recipients[0].tokens[0]"),
        ({"authorization": {"bearerToken": ""}}, "authorization.bearerToken"),
    ],
)
def test_the_empty_token_is_a_fault_as_everybody_has_it(config, path):
    _, faults = read(**config)
    assert [fault.path for fault in faults] == [path]


def test_hashes_do_not_show():
    index, _ = read(recipients=[{"name": "acme", "tokens": [token("t")]}])
    assert repr(sha256("t")) not in repr(index)
    assert repr(sha256("t")) not in repr(index.tokens[sha256("t")])
