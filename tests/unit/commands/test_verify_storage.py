from __future__ import annotations

import argparse
import json
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from gateway.commands import verify_storage
from gateway.commands.dir_access import choose_storages
from gateway.commands.verify_storage import Verifier, assign_outside, select_storages
from gateway.config.faults import ConfigError
from gateway.config.load import load
from gateway.config.schema import Config
from gateway.domain.location import parse_location
from gateway.domain.probe import Action, Verdict
from gateway.ports import OptionFault
from tests.fakes.object_store import NOON, FakeObjectStore

CONFIG = """\
publicUrl: https://sharing.example.com/delta-sharing
allowAnonymous: true
shares:
- name: sales
  accessModes: [dir]
  schemas:
  - name: emea
    tables:
    - {name: orders, location: s3://lake/t/orders, historyShared: true}
    - {name: orders_old, location: s3://lake/t/orders_old, historyShared: true}
    - {name: customers, location: s3://lake/t/customers, historyShared: true, auxiliaryLocations: [s3://leaky/x]}
    - {name: recent, location: s3://lake/t/recent, accessModes: [url]}
storages:
- {name: lake, prefix: s3://lake, vendor: good}
- {name: leaky, prefix: s3://leaky, vendor: leaky}
- {name: silent, prefix: s3://silent, vendor: silent}
"""


@pytest.fixture
def config(tmp_path) -> Config:
    file = tmp_path / "server.yaml"
    file.write_text(CONFIG)
    return load(file, {"HOME": "/home/a"}).config


def verifier(config: Config, **stores: FakeObjectStore) -> Verifier:
    silent = FakeObjectStore()
    silent.issues = False
    vendors = {
        "good": FakeObjectStore(),
        "leaky": FakeObjectStore(lambda *_: None),
        "silent": silent,
    } | stores
    return Verifier(config=config, find=vendors.__getitem__, clock=lambda: NOON)


async def test_storages_are_verified_one_by_one(config, capsys):
    report = await verifier(config).verify(config.storages or ())

    assert [one.name for one in report.storages] == ["lake", "leaky", "silent"]
    assert report.exit_status == 1
    text = report.to_text()
    assert "silent: its vendor silent issues no credentials" in text
    assert "lake: BREACH" not in text
    assert "leaky: BREACH" in text
    assert "verifying: lake (good): writing probe objects" in capsys.readouterr().err


async def test_least_privilege_is_proved_on_tables_with_dir_access(config):
    store = FakeObjectStore(owner_may_write=False)
    store.objects = {f"t/{name}/part-0" for name in ("orders", "orders_old", "customers", "recent")}

    report = await verifier(config, good=store).verify(choose_storages(config, ["lake"]))

    assert report.exit_status == 0
    # Of a table that is shared by url only, no credential is issued.
    assert {str(scope.location) for scope in store.scopes} == {
        "s3://lake/t/orders",
        "s3://lake/t/orders_old",
        "s3://lake/t/customers",
    }


async def test_storage_with_a_fault_is_told_of_and_the_next_one_is_verified(config):
    entries = [
        entry.model_copy(update={"options": {"what": 1}}) if entry.name == "lake" else entry
        for entry in config.storages or ()
    ]

    report = await verifier(config).verify(entries[:2])

    assert "lake: not proved: open the storage: options.what: unknown option" in report.to_text()
    assert report.storages[1].inspection is not None


async def test_vendor_that_cannot_try_is_not_proved(config):
    class Blind(FakeObjectStore):
        @asynccontextmanager
        async def open(self, settings):
            async with super().open(settings) as storage:
                yield replace(storage, probe=None)

    report = await verifier(config, good=Blind()).verify(choose_storages(config, ["lake"]))

    assert report.exit_status == 2
    assert "cannot try its credentials" in report.to_text()


async def test_file_that_is_not_there_is_named_and_nothing_is_tried(config):
    class WithoutSecret(FakeObjectStore):
        def check_files(self, options):
            path = ("identity", "secretAccessKey", "file")
            return [
                OptionFault(
                    path=path, message="names a file that cannot be read here: /keys/s3: no such file"
                )
            ]

    store = WithoutSecret()
    report = await verifier(config, good=store).verify(choose_storages(config, ["lake"]))

    assert report.exit_status == 2
    assert (
        "options.identity.secretAccessKey.file names a file that cannot be read here: /keys/s3"
        in report.to_text()
    )
    assert "left behind" not in report.to_text()
    assert store.scopes == []


async def test_error_is_not_a_denial(config):
    down = FakeObjectStore(lambda *_: Verdict.FAILED)
    report = await verifier(config, good=down).verify(choose_storages(config, ["lake"]))
    assert report.exit_status == 2


def test_directory_chooses_its_storage(config):
    chosen = select_storages(config, [], parse_location("s3://leaky/a"))
    assert [entry.name for entry in chosen] == ["leaky"]


def test_directory_below_no_storage_is_refused(config):
    with pytest.raises(ConfigError, match="lies below no storage"):
        select_storages(config, [], parse_location("s3://elsewhere/a"))


def test_directories_outside_go_to_the_storages_that_they_lie_on(config):
    lake, leaky = (parse_location(text) for text in ("s3://lake/private", "s3://leaky/private"))

    assigned = assign_outside([lake, leaky, lake], config.storages or (), None)

    assert assigned == {"lake": [lake], "leaky": [leaky]}


def test_longest_prefix_has_what_lies_outside(config):
    inner = config.storages[0].model_copy(update={"name": "inner", "prefix": "s3://lake/inner"})
    location = parse_location("s3://lake/inner/a")
    assert assign_outside([location], (*config.storages, inner), None) == {"inner": [location]}


@pytest.mark.parametrize(
    ("outside", "at", "reason"),
    [
        ("s3://elsewhere/a", None, "lies below no storage that is verified"),
        ("s3://leaky/a", "s3://lake/t/orders", "lies below no storage that is verified"),
        ("s3://lake/t/orders", "s3://lake/t/orders", "is not outside"),
        ("s3://lake/t", "s3://lake/t/orders", "is not outside"),
        ("s3://lake/t/orders/part", "s3://lake/t/orders", "is not outside"),
        ("s3://lake", None, "is not outside of the storage lake"),
        ("s3://lake/_sluice_verify", None, "is not outside"),
    ],
)
def test_directory_outside_that_cannot_be_tried_is_refused(config, outside, at, reason):
    inside = parse_location(at) if at else None
    entries = select_storages(config, [], inside)
    with pytest.raises(ConfigError, match=reason):
        assign_outside([parse_location(outside)], entries, inside)


async def test_directory_outside_is_tried_on_its_own_storage_only(config):
    outside = parse_location("s3://lake/private")
    good = FakeObjectStore()
    good.objects = {"private/a"}

    given = replace(verifier(config, good=good), outside={"lake": [outside]})
    report = await given.verify(config.storages or ())

    rows = {
        one.name: [row.check for row in one.inspection.rows if "private" in row.check]
        for one in report.storages
        if one.inspection
    }
    assert rows == {"lake": ["read neighbour (private)", "list neighbour (private)"], "leaky": []}


@pytest.mark.parametrize("folds", [True, False])
async def test_storage_says_whether_case_variants_were_accepted(config, folds):
    class Folding(FakeObjectStore):
        @asynccontextmanager
        async def open(self, settings):
            async with super().open(settings) as storage:
                yield replace(storage, folds_case=folds)

    def rule(scope, action, key):
        below = key.lower().startswith(f"{scope.location.path}/".lower())
        return None if below and action in {Action.READ, Action.LIST} else Verdict.DENIED

    report = await verifier(config, good=Folding(rule)).verify(choose_storages(config, ["lake"]))

    assert report.exit_status == (0 if folds else 1)


def test_unknown_storage_is_refused_with_the_nearest_name(config):
    with pytest.raises(ConfigError, match="did you mean leaky"):
        select_storages(config, ["leeky"], None)


def test_configuration_without_storages_has_nothing_to_verify(config):
    with pytest.raises(ConfigError, match="names no storages"):
        select_storages(config.model_copy(update={"storages": None}), [], None)


def test_command_reads_the_file_and_prints_json(tmp_path, capsys):
    file = tmp_path / "server.yaml"
    file.write_text(
        f"allowAnonymous: true\nstateDir: {tmp_path}\n"
        f"storages: [{{name: disk, prefix: {tmp_path}, vendor: local}}]\n"
    )
    parser = argparse.ArgumentParser()
    verify_storage.configure(parser)

    status = verify_storage.run(parser.parse_args(["--config", str(file), "--format", "json"]), {})

    assert status == 2
    assert json.loads(capsys.readouterr().out)["storages"][0]["issuesCredentials"] is False


def test_location_that_is_none_is_refused(capsys):
    parser = argparse.ArgumentParser()
    verify_storage.configure(parser)
    with pytest.raises(SystemExit):
        parser.parse_args(["--config", "f", "--at", "s3://a/../b"])
    assert "segment" in capsys.readouterr().err
