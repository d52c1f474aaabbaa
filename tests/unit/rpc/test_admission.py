from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from gateway.domain.allowance import UNBOUNDED, Allowance
from gateway.domain.audit import AuditKind
from gateway.domain.rate import Rate
from gateway.errors import PermissionDenied, Throttled, Unauthenticated
from gateway.rpc.admission import STRANGERS, Gate
from gateway.rpc.rate import LocalBuckets
from tests.cases import each_case
from tests.fakes.audit import FakeAuditLog
from tests.fakes.callers import FakeCallerMetrics, service
from tests.fakes.catalog_store import FakeCatalogStore
from tests.unit.services.catalog.calls import FakeClock, FakeContext

RATE = Rate(requests_per_second=2, burst=3)


@dataclass
class Entrance:
    """A gate, and who comes to it."""

    allowance: Allowance = UNBOUNDED
    known: bool = True
    clock: FakeClock = field(default_factory=FakeClock)
    metrics: FakeCallerMetrics = field(default_factory=FakeCallerMetrics)
    audit: FakeAuditLog = field(default_factory=FakeAuditLog)

    def __post_init__(self) -> None:
        self.store = FakeCatalogStore()
        if self.known:
            self.store.certificates = {"billing": service("billing", self.allowance)}
        self.gate = Gate(self.store, LocalBuckets(self.clock), self.metrics, self.audit, self.clock)

    async def call(self, method: str = "Presign.Sign", names: Any = ("billing",), **context: Any) -> None:
        async with self.enter(method, names, **context):
            pass

    def enter(self, method: str = "Presign.Sign", names: Any = ("billing",), **context: Any) -> Any:
        caller: Any = FakeContext(**{"remote": "ipv4:10.0.0.1:1", "certificate_names": names, **context})
        return self.gate.entered(method, caller)


async def test_a_service_without_bounds_calls_whatever_it_likes():
    entrance = Entrance()

    for method in ("Catalog.Resolve", "Presign.Sign", "Vending.Issue"):
        await entrance.call(method)

    assert entrance.metrics.refused == []


async def test_a_method_that_is_not_listed_is_refused_counted_and_audited():
    entrance = Entrance(Allowance(methods=frozenset({"Catalog.Resolve", "Vending"})))

    await entrance.call("Vending.Issue")
    with pytest.raises(PermissionDenied, match=r"'billing' may not call Presign\.Sign") as caught:
        await entrance.call("Presign.Sign", metadata={"x-request-id": "r-1"})

    assert caught.value.error_code == "SERVICE_REFUSED"
    assert entrance.metrics.refused == [("billing", "method")]
    (event,) = entrance.audit.noted
    assert (event.kind, event.operation, event.actor) == (AuditKind.DENIAL, "presign.Sign", "billing")
    assert event.request_id == "r-1"


async def test_methods_that_are_not_listed_take_of_the_rate_and_are_audited_no_oftener():
    entrance = Entrance(Allowance(methods=frozenset(), rate=RATE))

    for _ in range(3):
        with pytest.raises(PermissionDenied):
            await entrance.call()
    for _ in range(100):
        with pytest.raises(Throttled):
            await entrance.call()

    assert len(entrance.audit.noted) == 3
    assert Counter(entrance.metrics.refused) == {("billing", "method"): 3, ("billing", "rate"): 100}


async def test_methods_that_are_not_listed_are_refused_for_those_under_way_first():
    listed = frozenset({"Snapshot.Query"})
    entrance = Entrance(Allowance(methods=listed, concurrent_calls=1))

    async with entrance.enter("Snapshot.Query"):
        with pytest.raises(Throttled):
            await entrance.call("Presign.Sign")

    assert entrance.audit.noted == []
    # What was refused is under way no more.
    with pytest.raises(PermissionDenied):
        await entrance.call("Presign.Sign")
    await entrance.call("Snapshot.Query")


@pytest.mark.parametrize("presented", ["r" * 8000, "one two", "a\nb"], ids=["long", "spaces", "lines"])
async def test_a_request_id_that_is_unfit_is_not_written_to_the_audit_log(presented):
    entrance = Entrance(Allowance(methods=frozenset()))

    with pytest.raises(PermissionDenied):
        await entrance.call(metadata={"x-request-id": presented})

    (event,) = entrance.audit.noted
    assert event.request_id == ""


async def test_a_denial_is_logged_once(caplog):
    entrance = Entrance(Allowance(methods=frozenset()))

    for _ in range(3):
        with pytest.raises(PermissionDenied):
            await entrance.call()

    assert caplog.text.count("may not call Presign.Sign") == 1


async def test_a_burst_is_admitted_and_the_next_is_told_how_long_to_wait():
    entrance = Entrance(Allowance(rate=RATE))

    for _ in range(3):
        await entrance.call()
    with pytest.raises(Throttled) as caught:
        await entrance.call()

    assert caught.value.retry_after == timedelta(seconds=0.5)
    assert entrance.metrics.refused == [("billing", "rate")]
    entrance.clock.now += timedelta(seconds=0.5)
    await entrance.call()


async def test_all_methods_take_of_one_bucket():
    entrance = Entrance(Allowance(rate=RATE))

    for method in ("Catalog.Resolve", "Presign.Sign", "Vending.Issue"):
        await entrance.call(method)

    with pytest.raises(Throttled):
        await entrance.call("Catalog.ListShares")


async def test_a_call_too_many_at_once_is_refused_until_one_ends():
    entrance = Entrance(Allowance(concurrent_calls=2, rate=Rate(requests_per_second=1e-9, burst=3)))

    async with entrance.enter():
        async with entrance.enter():
            with pytest.raises(Throttled, match="2 calls under way"):
                await entrance.call()
        # It cost no token of the rate, of which this is the last.
        await entrance.call()

    assert entrance.metrics.refused == [("billing", "concurrency")]


async def test_a_call_that_fails_is_under_way_no_more():
    entrance = Entrance(Allowance(concurrent_calls=1))

    with pytest.raises(ValueError, match="oh"):
        async with entrance.enter():
            raise ValueError("oh")

    await entrance.call()


@pytest.mark.parametrize("method", ["Snapshot.Query", "Presign.Sign", "Vending.Issue"])
async def test_a_stranger_is_refused_where_services_are_configured(method):
    entrance = Entrance()

    with pytest.raises(Unauthenticated, match="no configured service"):
        await entrance.call(method, names=("stranger",))

    assert entrance.metrics.refused == [("", "identity")]


async def test_the_catalog_refuses_strangers_itself_and_they_are_counted_here():
    entrance = Entrance()

    await entrance.call("Catalog.Resolve", names=("stranger",))

    assert entrance.metrics.refused == [("", "identity")]


BAD_TOKEN = {"authorization": "Bearer x"}


@each_case("known", [True, False], ids=["services", "no services"])
@each_case(
    "caller",
    [
        {"names": ("stranger",)},
        # Whoever has a good certificate is a stranger too with a token that is not.
        {"names": ("billing",), "metadata": BAD_TOKEN},
        {"names": (), "metadata": BAD_TOKEN},
    ],
    ids=["by certificate", "by a bad token", "by address"],
)
async def test_strangers_reach_the_catalog_so_often_and_no_oftener(caller, known):
    entrance = Entrance(Allowance(rate=RATE, methods=frozenset()), known=known)

    reached = 0
    for _ in range(1000):
        with suppress(Throttled):
            await entrance.call("Catalog.Resolve", **caller)
            reached += 1

    assert reached == STRANGERS.burst
    assert entrance.metrics.refused == [("", "identity")] * 1000
    with pytest.raises(Throttled) as caught:
        await entrance.call("Catalog.Resolve", **caller)
    entrance.clock.now += caught.value.retry_after + timedelta(milliseconds=1)
    await entrance.call("Catalog.Resolve", **caller)


async def test_what_strangers_do_costs_services_and_other_strangers_nothing():
    entrance = Entrance(Allowance(rate=RATE))

    for _ in range(STRANGERS.burst):
        await entrance.call("Catalog.Resolve", names=("stranger",))
        await entrance.call("Catalog.Resolve", names=("billing",), metadata=BAD_TOKEN)

    await entrance.call("Catalog.Resolve", names=("another",))
    await entrance.call("Catalog.Resolve", names=("billing",))


async def test_a_stranger_is_one_over_all_services_and_ports():
    entrance = Entrance()

    for port in range(STRANGERS.burst):
        with pytest.raises(Unauthenticated):
            await entrance.call(names=(), metadata=BAD_TOKEN, remote=f"ipv4:10.0.0.1:{port}")

    with pytest.raises(Throttled):
        await entrance.call("Catalog.Resolve", names=(), metadata=BAD_TOKEN)
    await entrance.call("Catalog.Resolve", names=(), metadata=BAD_TOKEN, remote="ipv4:10.0.0.2:1")


async def test_a_token_is_for_the_service_whose_method_is_called():
    entrance = Entrance()
    key = Ed25519PrivateKey.generate()
    pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    entrance.store.service_keys = {"reports": (service("reports"), (pem,))}
    now = int(entrance.clock.now.timestamp())
    claims = {"sub": "reports", "aud": "gateway.v1.Presign", "iat": now, "exp": now + 60}
    sent = {"authorization": f"Bearer {jwt.encode(claims, key, algorithm='EdDSA')}"}

    await entrance.call("Presign.Sign", names=("mesh",), metadata=sent)
    for method in ("Snapshot.Query", "Vending.Issue"):
        with pytest.raises(Unauthenticated, match="token"):
            await entrance.call(method, names=("mesh",), metadata=sent)


async def test_where_no_service_is_configured_grants_alone_decide():
    await Entrance(known=False).call(names=("stranger",))


async def test_a_reload_that_removes_the_last_service_opens_nothing_to_strangers():
    entrance = Entrance(known=False)
    entrance.store.had_services = True

    for name in ("billing", "stranger"):
        with pytest.raises(Unauthenticated):
            await entrance.call(names=(name,))


async def test_a_peer_in_plain_text_on_this_machine_is_nobody_in_particular():
    await Entrance(Allowance(methods=frozenset())).call(names=())


async def test_a_certificate_without_a_name_is_a_strangers():
    class Nameless(FakeContext):
        def auth_context(self):
            return {"transport_security_type": [b"ssl"]}

    caller: Any = Nameless(remote="ipv4:10.0.0.1:1")
    with pytest.raises(Unauthenticated):
        async with Entrance().gate.entered("Vending.Issue", caller):
            pass


async def test_what_is_changed_by_a_reload_holds_from_the_next_call():
    entrance = Entrance()
    await entrance.call()

    entrance.store.certificates = {"billing": service("billing", Allowance(methods=frozenset({"Catalog"})))}

    with pytest.raises(PermissionDenied):
        await entrance.call()
