from __future__ import annotations

from gateway.domain.principal import ALL_SHARES, Principal, PrincipalKind


def recipient(*shares: str) -> Principal:
    return Principal(name="acme", kind=PrincipalKind.RECIPIENT, shares=frozenset(shares))


def test_a_principal_sees_the_shares_it_is_granted():
    principal = recipient("sales", "hr")
    assert principal.may_see("sales")
    assert principal.may_see("hr")
    assert not principal.may_see("finance")
    assert not principal.may_see("sale")


def test_a_principal_without_grants_sees_nothing():
    assert not recipient().may_see("sales")
    assert not recipient().may_see("")


def test_the_star_grants_every_share():
    assert recipient(ALL_SHARES).may_see("sales")


def test_a_principal_may_nothing_more_unless_it_is_said():
    principal = recipient("sales")
    assert principal.permissions == frozenset()
    assert not principal.disabled
