from __future__ import annotations

from datetime import timedelta
from unittest.mock import sentinel

import pytest

from gateway.domain.file_path import Paths
from gateway.domain.grant import Audience
from gateway.domain.location import parse_location
from gateway.domain.table import AccessMode
from gateway.errors import Internal, InvalidArgument, Unauthenticated, Unavailable, Unsupported
from gateway.ports import Storage
from gateway.services.presign.servicer import PresignServicer
from gateway.v1.presign_pb2 import SignRequest
from tests.fakes.grants import GRANT, NOON, Grants
from tests.fakes.signer import FakeSigner
from tests.fakes.storages import FakeStorages

HOUR = timedelta(hours=1)


@pytest.fixture
def grants():
    return Grants()


@pytest.fixture
def signer():
    return FakeSigner()


def storage(signer: FakeSigner | None, prefix: str = "s3://lake", name: str = "lake") -> Storage:
    return Storage(name=name, prefix=parse_location(prefix), signer=signer)


def servicer(grants: Grants, *storages: Storage) -> PresignServicer:
    return PresignServicer(
        storages=FakeStorages(*storages),
        verifier=grants.verifier(Audience.PRESIGN),
        clock=grants.clock,
        life=HOUR,
    )


async def sign(servicer: PresignServicer, grant: str, *, location: int = 0, paths: bytes = b"a.parquet"):
    return await servicer.Sign(SignRequest(grant=grant, location=location, paths=paths), sentinel.context)


async def test_paths_are_signed_in_order_for_the_table_of_the_grant(grants, signer):
    response = await sign(servicer(grants, storage(signer)), grants.sign(), paths=b"b.parquet\na.parquet")

    (table, paths, window) = signer.calls[0]
    assert table == GRANT.location
    assert paths == Paths(b"b.parquet\na.parquet")
    assert response.signatures == b"signed-0\nsigned-1"
    assert response.origin == "https://store.example/sales/orders/"
    assert response.expires_at_ms == window.expires_at.timestamp() * 1000
    assert timedelta(minutes=45) < window.expires_at - NOON <= HOUR


async def test_auxiliary_location_is_taken_from_the_grant(grants, signer):
    archive = storage(signer, "s3://archive", "archive")

    await sign(servicer(grants, archive), grants.sign(), location=1)

    assert signer.calls[0][0] == GRANT.auxiliary_locations[0]


async def test_location_that_the_grant_does_not_have_is_refused(grants, signer):
    with pytest.raises(InvalidArgument, match="no location 2"):
        await sign(servicer(grants, storage(signer)), grants.sign(), location=2)

    assert signer.calls == []


async def test_all_that_ask_within_a_window_get_the_same(grants, signer):
    presign = servicer(grants, storage(signer))
    await sign(presign, grants.sign())
    window = signer.calls[0][2]

    grants.now = window.end - timedelta(seconds=1)
    await sign(presign, grants.sign(principal="other", expires_at=grants.now + timedelta(seconds=60)))
    grants.now = window.end
    await sign(presign, grants.sign(expires_at=grants.now + timedelta(seconds=60)))

    assert [call[2] == window for call in signer.calls] == [True, True, False]
    assert signer.calls[2][2].start == window.end


async def test_tables_turn_at_different_times(grants, signer):
    presign = servicer(grants, storage(signer))
    for number in range(5):
        await sign(presign, grants.sign(location=parse_location(f"s3://lake/t{number}")))

    assert len({call[2].start for call in signer.calls}) > 1


async def test_tables_that_are_signed_with_one_session_turn_together(grants):
    signer = FakeSigner(has_sessions=True)
    presign = servicer(grants, storage(signer))
    for number in range(5):
        await sign(presign, grants.sign(location=parse_location(f"s3://lake/t{number}")))

    assert len({call[2] for call in signer.calls}) == 1


async def test_storages_that_sign_with_sessions_turn_at_different_times(grants):
    signer = FakeSigner(has_sessions=True)
    for number in range(5):
        lake = storage(signer, name=f"lake-{number}")
        await sign(servicer(grants, lake), grants.sign())

    assert len({call[2].start for call in signer.calls}) > 1


@pytest.mark.parametrize("is_segment", [True, False])
async def test_what_is_asked_for_time_and_again_is_passed_on_as_such(grants, signer, is_segment):
    request = SignRequest(grant=grants.sign(), paths=b"a.parquet", is_segment=is_segment)

    await servicer(grants, storage(signer)).Sign(request, sentinel.context)

    assert signer.calls[0][1].is_segment is is_segment


async def test_expiration_is_that_of_the_session_which_signed(grants):
    end = NOON + timedelta(minutes=5)

    response = await sign(servicer(grants, storage(FakeSigner(end))), grants.sign())

    assert response.expires_at_ms == end.timestamp() * 1000


async def test_signatures_that_have_expired_already_are_not_served(grants):
    with pytest.raises(Unavailable):
        await sign(servicer(grants, storage(FakeSigner(NOON))), grants.sign())


async def test_signature_too_few_is_our_fault_and_not_a_shifted_answer(grants):
    with pytest.raises(Internal):
        await sign(servicer(grants, storage(FakeSigner(drop=1))), grants.sign(), paths=b"a\nb")


@pytest.mark.parametrize("audience", [Audience.SNAPSHOT, Audience.VENDING])
async def test_grant_for_another_service_is_refused(grants, signer, audience):
    with pytest.raises(Unauthenticated):
        await sign(servicer(grants, storage(signer)), grants.sign(audience=audience))

    assert signer.calls == []


async def test_grant_of_another_catalog_is_refused(grants, signer):
    with pytest.raises(Unauthenticated):
        await sign(servicer(grants, storage(signer)), Grants().sign())

    assert signer.calls == []


async def test_expired_grant_is_refused(grants, signer):
    grant = grants.sign()
    grants.now += timedelta(seconds=60)

    with pytest.raises(Unauthenticated):
        await sign(servicer(grants, storage(signer)), grant)


async def test_table_without_url_access_is_refused(grants, signer):
    with pytest.raises(Unsupported, match="does not offer url access"):
        await sign(servicer(grants, storage(signer)), grants.sign(access_modes=(AccessMode.DIR,)))

    assert signer.calls == []


@pytest.mark.parametrize("paths", [b"../other/a.parquet", b"a\n/b", b"_delta_log/0.json"])
async def test_path_that_is_not_a_file_of_the_table_is_refused_before_signing(grants, signer, paths):
    with pytest.raises(InvalidArgument):
        await sign(servicer(grants, storage(signer)), grants.sign(), paths=paths)

    assert signer.calls == []


@pytest.mark.parametrize(
    ("storages", "match"),
    [([], "not on a storage"), ([storage(None)], "cannot sign")],
    ids=["none", "unable"],
)
async def test_storage_that_cannot_sign_is_named_without_its_path(grants, storages, match):
    with pytest.raises(Unsupported, match=match) as raised:
        await sign(servicer(grants, *storages), grants.sign())

    assert "retail.sales.orders" in raised.value.message
    assert "s3://" not in raised.value.message


async def test_large_page_is_signed_too(grants, signer):
    paths = b"\n".join(b"%0200d" % number for number in range(3000))

    response = await sign(servicer(grants, storage(signer)), grants.sign(), paths=paths)

    assert response.signatures.count(b"\n") == 2999


async def test_empty_page_has_no_signatures(grants, signer):
    response = await sign(servicer(grants, storage(signer)), grants.sign(), paths=b"")

    assert response.signatures == b""
    assert response.origin
