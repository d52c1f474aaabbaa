from __future__ import annotations

from gateway.adapters.url_metrics import UrlSource
from gateway.domain.file_path import Paths
from gateway.domain.location import parse_location
from gateway.ports import Storage
from tests.fakes.hmac_signer import HmacSigner
from tests.unit.adapters.cache.doubles import NOON, WINDOW, Provider, scope

TABLE = parse_location("s3://lake/t")
SEGMENT = Paths(b"a\nb", is_segment=True)


async def test_issuer_signer_and_sessions_see_the_same_settings(replica, time, tmp_path):
    file = tmp_path / "secret"
    file.write_text("one")
    remembered = replica.storage(options={"secret": {"file": str(file)}})
    vendor, provider = HmacSigner(sessions=remembered.sessions, clock=time.clock), Provider(time)
    storage = remembered.wrap(
        Storage(name="lake", prefix=parse_location("s3://lake"), signer=vendor, issuer=provider)
    )
    assert storage.signer is not None
    assert storage.issuer is not None
    await storage.issuer.issue(scope())
    await storage.signer.sign(TABLE, SEGMENT, WINDOW)
    file.write_text("two")
    time.move(WINDOW.end - NOON)
    time.now = NOON
    # Whoever is asked first notices for all.
    await storage.signer.sign(TABLE, SEGMENT, WINDOW)
    # Otherwise the issuer would read the file itself, and find its credential for this content.
    file.write_text("one")
    await storage.issuer.issue(scope())
    assert (len(vendor.calls), len(vendor.minted), len(provider.calls)) == (2, 2, 2)


async def test_storages_that_nobody_has_entered_are_counted_as_one(replica):
    for number in range(3):
        signer = replica.signer(HmacSigner(), name=f"default-{number}", url_only=True)
        await signer.sign(TABLE, SEGMENT, WINDOW)
    assert [series.name for series in replica.url_metrics.storages()] == ["default"]
    # They are not the same all the same.
    assert replica.url_metrics.storage("default").urls[UrlSource.SIGNED] == 6


async def test_the_rest_of_a_storage_is_left_as_it_is(replica):
    storage = Storage(name="lake", prefix=parse_location("s3://lake"), allow_root=True)
    assert replica.storage().wrap(storage) == storage
