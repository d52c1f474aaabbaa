from __future__ import annotations

from pathlib import Path

import pytest

from gateway.errors import InvalidArgument
from pipeline.jars import jars_directory
from pipeline.session import SparkSettings, classic_settings, is_secret
from tests.cases import each_case

DELTA = "io.delta.sql.DeltaSparkSessionExtension"


@pytest.fixture
def cache(tmp_path):
    jars = jars_directory(tmp_path)
    jars.mkdir(parents=True)
    for name in ("b.jar", "a.jar", "notes.txt"):
        (jars / name).touch()
    return tmp_path


def test_a_local_session_listens_on_loopback_only(cache):
    conf = classic_settings(SparkSettings(master="local[2]"), cache)
    assert conf["spark.master"] == "local[2]"
    assert conf["spark.driver.host"] == conf["spark.driver.bindAddress"] == "127.0.0.1"
    assert conf["spark.ui.enabled"] == "false"


def test_on_a_cluster_the_driver_is_reached_as_the_cluster_has_it(cache):
    conf = classic_settings(SparkSettings(master="spark://head:7077"), cache)
    assert not {"spark.driver.host", "spark.driver.bindAddress", "spark.ui.enabled"} & set(conf)


def test_times_are_in_utc_and_tables_are_deltas(cache):
    conf = classic_settings(SparkSettings(), cache)
    assert conf["spark.sql.session.timeZone"] == "UTC"
    assert conf["spark.sql.catalog.spark_catalog"].endswith("DeltaCatalog")
    assert conf["spark.sql.extensions"] == DELTA


def test_the_operators_settings_win(cache):
    settings = SparkSettings(conf={"spark.driver.bindAddress": "10.0.0.1", "spark.ui.enabled": "true"})
    conf = classic_settings(settings, cache)
    assert (conf["spark.driver.bindAddress"], conf["spark.ui.enabled"]) == ("10.0.0.1", "true")


def test_extensions_and_java_options_are_added_to_ours(cache):
    given = {"spark.sql.extensions": f"a.B, {DELTA}", "spark.driver.extraJavaOptions": "-Xss8m"}
    conf = classic_settings(SparkSettings(conf=given), cache)
    assert conf["spark.sql.extensions"] == f"{DELTA},a.B"
    assert conf["spark.driver.extraJavaOptions"].endswith(" -Xss8m")


def test_secrets_are_kept_from_the_command_line(cache):
    given = {"spark.hadoop.fs.s3a.secret.key": "hidden", "spark.hadoop.fs.s3a.endpoint": "http://store"}
    conf = classic_settings(SparkSettings(conf=given), cache)
    assert "hidden" not in conf.values()
    assert conf["spark.hadoop.fs.s3a.endpoint"] == "http://store"


@each_case(
    "name",
    [
        "spark.hadoop.fs.s3a.access.key",
        "spark.hadoop.fs.s3a.bucket.b.session.token",
        "spark.hadoop.fs.azure.account.key.lake.dfs.core.windows.net",
        "spark.hadoop.fs.azure.sas.fixed.token.lake.dfs.core.windows.net",
        "spark.hadoop.fs.azure.account.oauth2.client.secret",
        "spark.hadoop.fs.gs.auth.service.account.private.key",
    ],
)
def test_the_names_of_secrets_are_known(name):
    assert is_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "spark.authenticate.secret",
        "spark.ssl.keyStorePassword",
        "spark.ssl.ui.keyPassword",
        "spark.sql.catalog.lake.token",
        "spark.redis.password",
    ],
)
def test_other_secrets_would_be_on_the_command_line_and_are_refused(cache, name):
    with pytest.raises(InvalidArgument, match=f"{name} .*spark-defaults.conf") as raised:
        classic_settings(SparkSettings(conf={name: "hidden"}), cache)
    assert "hidden" not in raised.value.message


@pytest.mark.parametrize(
    "name", ["spark.kerberos.access.hadoopFileSystems", "spark.security.credentials.hadoopfs.enabled"]
)
def test_other_settings_are_no_secrets(cache, name):
    assert classic_settings(SparkSettings(conf={name: "x"}), cache)[name] == "x"


def test_jars_are_those_of_the_cache_or_of_the_directory_that_is_named(cache, tmp_path):
    names = [Path(jar).name for jar in classic_settings(SparkSettings(), cache)["spark.jars"].split(",")]
    assert names == ["a.jar", "b.jar"]
    other = tmp_path / "other"
    other.mkdir()
    (other / "c.jar").touch()
    assert classic_settings(SparkSettings(jars=str(other)), cache)["spark.jars"] == str(other / "c.jar")


def test_a_directory_without_jars_is_refused(cache, tmp_path):
    with pytest.raises(InvalidArgument, match="there are no jars in"):
        classic_settings(SparkSettings(jars=str(tmp_path)), cache)


def test_without_maven_spark_fetches_the_jars_itself(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    conf = classic_settings(SparkSettings(), tmp_path)
    assert "io.delta:delta-spark_4.2_2.13:4.4.0" in conf["spark.jars.packages"].split(",")
    assert "software.amazon.awssdk:bundle" in conf["spark.jars.excludes"].split(",")


def test_settings_do_not_print_what_spark_is_told():
    assert "hidden" not in repr(SparkSettings(conf={"spark.hadoop.fs.s3a.secret.key": "hidden"}))
