from __future__ import annotations

import pytest

from gateway.errors import Unauthenticated
from gateway.rpc.caller import ServiceCallers
from gateway.rpc.peer import Peer
from tests.fakes.callers import service
from tests.fakes.catalog_store import FakeCatalogStore
from tests.unit.services.catalog.calls import FakeClock

BILLING = service("billing")


@pytest.fixture
def callers():
    return ServiceCallers(FakeCatalogStore(certificates={"spiffe://x/billing": BILLING}), FakeClock())


async def test_any_name_of_a_certificate_may_be_the_services(callers):
    peer = Peer(local=False, certified=True, certificate_names=("x.internal", "spiffe://x/billing"))
    assert await callers.identify(peer) == BILLING


@pytest.mark.parametrize("peer", [Peer(local=True), Peer(local=False)], ids=["this process", "plain text"])
async def test_one_that_claims_to_be_no_service_is_none(callers, peer):
    assert await callers.identify(peer) is None


@pytest.mark.parametrize("names", [(), ("spiffe://x/other",)])
async def test_a_certificate_of_nobody_is_refused(callers, names):
    with pytest.raises(Unauthenticated) as caught:
        await callers.identify(Peer(local=False, certified=True, certificate_names=names))
    assert caught.value.error_code == "SERVICE_REFUSED"


async def test_a_token_counts_more_than_the_certificate(callers):
    peer = Peer(local=False, certified=True, certificate_names=("spiffe://x/billing",), bearer="not.a.token")
    with pytest.raises(Unauthenticated, match="token"):
        await callers.identify(peer)
