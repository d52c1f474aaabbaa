from __future__ import annotations

import stat
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from sluice_recipient import NotUsable, SharedTable
from sluice_recipient.access import Mode
from sluice_recipient.address import parse_name
from sluice_recipient.client import GatewayClient
from sluice_recipient.profile import parse_profile
from sluice_recipient.transport import Response

from tests.fakes.recipient_transport import NOON, PROFILE, SECRETS, FakeTransport, aws_answer, metadata

ENDPOINT = "http://127.0.0.1:9000"


class FakeSpark:
    """As much of a session as a read needs; it keeps what it was told."""

    def __init__(self, master="local[1]"):
        self.files: list[Path] = []
        self.properties: dict[str, str] = {}
        self.settings: dict[str, str] = {}
        self.loaded = ""
        self.master = master
        self.sparkContext = self.read = self._jvm = self.java = self.lang = self.System = self

    def addFile(self, file):
        self.files.append(Path(file))

    def setProperty(self, name, value):
        self.properties[name] = value

    def format(self, name):
        assert name == "delta"
        return self

    def options(self, **settings):
        self.settings = settings
        return self

    def load(self, path):
        self.loaded = path
        return self


def _table(name="sales.shop.orders", address="/p/reader.share", **place: Any) -> SharedTable:
    return _shared(name, address, aws_answer(**place), mode="dir")


def _shared(name: str, address: str, answer: Response, *, mode: Mode) -> SharedTable:
    client = GatewayClient(parse_profile(PROFILE), FakeTransport(answer), clock=lambda: NOON)
    full = f"{address}#{name}" if address else None
    return SharedTable(client, parse_name(name), mode=mode, address=full)


@pytest.fixture
def spark() -> FakeSpark:
    return FakeSpark()


def test_the_table_has_a_scheme_and_settings_of_its_own(spark):
    _table(region="eu-west-1", endpoint=ENDPOINT).to_pyspark(spark)

    scheme, _, rest = spark.loaded.partition("://")
    assert rest == "lake/orders"
    assert spark.settings[f"fs.{scheme}.impl"] == "org.apache.hadoop.fs.s3a.S3AFileSystem"
    assert spark.settings["fs.s3a.bucket.lake.endpoint"] == ENDPOINT
    assert spark.settings["fs.s3a.bucket.lake.endpoint.region"] == "eu-west-1"
    assert spark.settings["fs.s3a.bucket.lake.path.style.access"] == "true"


def test_two_tables_of_one_bucket_do_not_share_a_scheme(spark):
    schemes = set()
    for name in ("sales.shop.orders", "sales.shop.returns", "sales.shop.orders"):
        _table(name).to_pyspark(spark)
        schemes.add(spark.loaded.partition("://")[0])

    assert len(schemes) == 2


def test_another_store_is_another_scheme(spark):
    schemes = set()
    for endpoint in (ENDPOINT, "https://s3.example"):
        _table(endpoint=endpoint).to_pyspark(spark)
        schemes.add(spark.loaded.partition("://")[0])

    assert len(schemes) == 2


def test_the_file_for_the_executors_names_a_command_and_no_secret(spark):
    _table().to_pyspark(spark)

    (file,) = spark.files
    content = file.read_text()
    assert content.startswith("[table]\ncredential_process = ")
    assert content.endswith(" -m sluice_recipient credentials '/p/reader.share#sales.shop.orders'\n")
    assert not any(secret in content for secret in SECRETS)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_driver_and_executors_find_the_file_each_in_its_own_place(spark):
    _table().to_pyspark(spark)

    (file,) = spark.files
    name = f"${{fs.sluice.folder}}/{file.name}"
    assert spark.settings["fs.s3a.bucket.lake.auth.profile.file"] == name
    assert spark.settings["fs.sluice.folder"] == "."
    assert spark.properties["fs.sluice.folder"] == str(file.parent)


def test_on_a_cluster_the_installed_command_is_run():
    spark: Any = FakeSpark(master="yarn")
    _table().to_pyspark(spark)

    assert "credential_process = sluice-recipient credentials" in spark.files[0].read_text()


def test_another_command_can_be_named(spark):
    _table(address="").to_pyspark(spark, command="/opt/credentials orders")

    assert spark.files[0].read_text() == "[table]\ncredential_process = /opt/credentials orders\n"


def test_no_secret_is_in_the_settings(spark):
    _table(region="eu-west-1").to_pyspark(spark, versionAsOf="3")

    assert spark.settings["versionAsOf"] == "3"
    assert not any(secret in value for secret in SECRETS for value in spark.settings.values())


def test_executors_need_a_profile_in_a_file(spark):
    with pytest.raises(NotUsable, match="PROFILE#NAME"):
        _table(address="").to_pyspark(spark)


def test_a_session_without_a_context_is_refused():
    class Connected:
        @property
        def sparkContext(self):
            raise RuntimeError("not there in Spark Connect")

    with pytest.raises(NotUsable, match="Spark Connect"):
        _table().to_pyspark(cast("Any", Connected()))


def test_by_urls_the_official_connector_reads_the_version_that_was_asked_for(spark, monkeypatch):
    official = SimpleNamespace(load_as_spark=lambda address, **at: (address, at))
    monkeypatch.setitem(sys.modules, "delta_sharing", official)
    table = _shared("sales.shop.orders", "/p/reader.share", metadata(accessModes=["url"]), mode="auto")

    read: Any = table.to_pyspark(spark, versionAsOf="3")
    assert read == ("/p/reader.share#sales.shop.orders", {"version": 3})
    assert (spark.files, spark.loaded) == ([], "")
