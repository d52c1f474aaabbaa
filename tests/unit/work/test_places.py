from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from gateway.domain.credential import AwsTempCredentials, Credential
from gateway.domain.location import parse_location
from gateway.ports import Storage
from gateway.work.places import SparkPlaces
from tests.cases import each_case
from tests.fakes.issuer import FakeIssuer
from tests.fakes.storages import FakeStorages


class FakeSpark:
    def __init__(self, name: str) -> None:
        self._name = name
        self.asked = 0

    async def settings(self):
        self.asked += 1
        return {f"{self._name}.key": "secret"}

    def url(self, location):
        return f"{self._name}:{location.path}"


def storage(name: str, prefix: str, spark: FakeSpark | None) -> Storage:
    return Storage(name=name, prefix=parse_location(prefix), spark=spark)


@each_case(
    ("text", "url"),
    [
        ("/data/a b%20", "file:/data/a b%20"),
        ("file:///data/t/", "file:/data/t"),
        ("s3://lake/50%/t", "s3a://lake/50%/t"),
        ("abfss://c@acct.dfs.core.windows.net/t", "abfss://c@acct.dfs.core.windows.net/t"),
        ("gs://lake/t", "gs://lake/t"),
    ],
)
def test_place_that_no_storage_opens_for_spark_is_spelled_as_hadoop_does(text, url):
    places = SparkPlaces(FakeStorages(storage("az", "abfss://c@acct.dfs.core.windows.net", None)))

    assert places.url(parse_location(text)) == url


async def test_storage_of_a_place_spells_it_and_opens_it():
    one, two, other = FakeSpark("one"), FakeSpark("two"), FakeSpark("other")
    places = SparkPlaces(
        FakeStorages(
            storage("a", "s3://lake", one), storage("b", "s3://lake/deep", two), storage("c", "s3://c", other)
        )
    )
    deep = parse_location("s3://lake/deep/t")

    assert places.url(deep) == "two:lake/deep/t".replace("lake/", "")
    found = await places.settings([deep, parse_location("s3://lake/t"), deep, parse_location("/local")])
    assert found == {"one.key": "secret", "two.key": "secret"}
    assert (one.asked, two.asked, other.asked) == (1, 1, 0)


LAKE, TABLE, VIEW = "s3://lake", parse_location("s3://lake/t"), parse_location("s3://views/v")
HOUR = timedelta(hours=1)
CREDENTIAL = Credential(
    id="ASIA",
    secret=AwsTempCredentials(access_key_id="ASIA", secret_access_key="s", session_token="t"),
    expires_at=datetime(2030, 1, 1, tzinfo=UTC),
)


def issuing(issuer: FakeIssuer, **others: Any) -> SparkPlaces:
    lake = replace(storage("lake", LAKE, FakeSpark("lake")), issuer=issuer, **others)
    return SparkPlaces(FakeStorages(lake, storage("views", "s3://views", FakeSpark("views"))))


async def test_what_is_only_read_is_opened_by_a_credential_for_it_alone():
    issuer = FakeIssuer(CREDENTIAL)

    found = await issuing(issuer).settings([TABLE, VIEW], reads=[TABLE], life=HOUR)

    (scope,) = issuer.calls
    assert (scope.location, scope.life, scope.recipient) == (TABLE, HOUR, "sluice-pipeline")
    assert found["fs.s3a.bucket.lake.session.token"]
    assert found["fs.s3a.bucket.lake.aws.credentials.provider"].endswith("TemporaryAWSCredentialsProvider")
    assert "views.key" in found


@each_case(
    ("locations", "reads", "life"),
    [
        # The bucket holds something else of the run.
        ([TABLE, parse_location("s3://lake/v")], [TABLE], HOUR),
        ([TABLE, parse_location("s3://lake/u")], [TABLE, parse_location("s3://lake/u")], HOUR),
        # The run may take longer than a credential lives.
        ([TABLE, VIEW], [TABLE], HOUR * 2),
        ([TABLE, VIEW], [TABLE], None),
        ([TABLE, VIEW], [], HOUR),
    ],
)
async def test_where_a_credential_would_not_do_the_storages_own_keys_are_used(locations, reads, life):
    issuer = FakeIssuer(CREDENTIAL)

    found = await issuing(issuer).settings(locations, reads=reads, life=life)

    assert issuer.calls == []
    assert found["lake.key"] == "secret"
