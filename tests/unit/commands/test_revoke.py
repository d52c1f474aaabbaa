from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest

from gateway.commands import revoke
from gateway.commands.revocation.cache import Dropped
from gateway.commands.revoke import Revocation
from gateway.config.faults import ConfigError
from gateway.config.load import load
from gateway.ports import Clock, Cut
from tests.fakes.object_store import FakeObjectStore

NOW = datetime(2030, 1, 1, 11, 59, 59, 500_000, tzinfo=UTC)
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
HASH = f"sha256:{'0' * 64}"
CONFIG = f"""\
publicUrl: https://sharing.example.com/delta-sharing
shares:
- name: sales
  accessModes: [dir]
  schemas:
  - name: emea
    tables:
    - {{name: orders, location: s3://lake/orders, historyShared: true}}
- name: hr
  accessModes: [dir]
  schemas:
  - name: emea
    tables:
    - {{name: people, location: s3://people/people, historyShared: true}}
- name: web
  schemas:
  - name: emea
    tables:
    - {{name: clicks, location: s3://clicks/clicks, historyShared: true}}
# Who reads.
recipients:
- name: acme  # the first
  tokens: [{{hash: "{HASH}"}}]
  shares: [SALES, web]
- name: globex
  identities: [{{issuer: i, subject: s}}]
  shares: "*"
storages:
- name: lake
  prefix: s3://lake
  vendor: named
- name: people
  prefix: s3://people
  vendor: shared
- name: clicks
  prefix: s3://clicks
  vendor: named
"""


class Drop:
    """Keeps what it was asked to drop."""

    def __init__(self, dropped: Dropped) -> None:
        self.calls: list[tuple[str, tuple[str, ...]]] = []
        self._dropped = dropped

    async def __call__(self, config, recipient, storages) -> Dropped:
        self.calls.append((recipient, tuple(storages)))
        return self._dropped


class World:
    """What the command meets: a file, stores of two kinds, a cache."""

    def __init__(self, tmp_path: Path) -> None:
        self.file = tmp_path / "server.yaml"
        self.file.write_text(CONFIG)
        self.named = FakeObjectStore(cut=Cut(done=True, words="denied by session age"))
        self.shared = FakeObjectStore(names_recipients=False, cut=Cut(done=True, words="keys revoked"))
        self.drop = Drop(Dropped(done=True, words="2 dropped from Redis"))
        self.env: dict[str, str] = {}
        self.clock: Clock = lambda: NOW

    def run(self, *arguments: str) -> int:
        parser = argparse.ArgumentParser()
        revoke.configure(parser)
        args = parser.parse_args(["--config", str(self.file), *arguments])
        vendors = {"named": self.named, "shared": self.shared}
        return Revocation(
            args=args, env=self.env, find=vendors.__getitem__, drop=self.drop, clock=self.clock
        ).run()

    def recipient(self, name: str):
        return next(one for one in load(self.file, {}).config.recipients if one.name == name)

    def storage(self, name: str):
        return next(one for one in load(self.file, {}).config.storages or () if one.name == name)


@pytest.fixture
def world(tmp_path) -> World:
    return World(tmp_path)


def test_recipient_is_disabled_and_only_its_lines_change(world):
    assert world.run("acme", "--yes") == 0

    assert world.recipient("acme").disabled
    assert world.recipient("acme").revoked_at == NOON
    assert not world.recipient("globex").disabled
    moment = "  revokedAt: 2030-01-01T12:00:00Z\n"
    assert world.file.read_text() == (
        CONFIG.replace("# the first\n", f"# the first\n  disabled: true\n{moment}")
        # Its store refuses what is out, so that all of it is issued anew.
        .replace("- name: lake\n", f"- name: lake\n{moment}")
    )


def test_moment_lies_after_everything_issued_so_far(world):
    world.run("acme", "--yes")
    assert world.recipient("acme").revoked_at > NOW


def test_name_is_found_in_whatever_case(world):
    assert world.run("ACME", "--yes") == 0
    assert world.recipient("acme").disabled


def test_access_can_be_kept_after_a_leak(world, capsys):
    assert world.run("acme", "--yes", "--keep-access") == 0

    assert not world.recipient("acme").disabled
    assert world.recipient("acme").revoked_at == NOON
    assert world.named.cuts == [("acme", NOON)]
    assert "may ask for more" in capsys.readouterr().out


def test_what_is_issued_until_gateways_have_read_the_file_is_cut_off_too(world):
    world.run("acme", "--yes")
    assert world.named.cuts == [("acme", NOON + timedelta(minutes=1))]


def test_only_storages_that_the_recipient_could_reach_are_cut_off(world, capsys):
    world.run("acme", "--yes")

    printed = capsys.readouterr().out
    assert "lake (named): cut off: denied by session age" in printed
    assert "people" not in printed
    # The table on it is shared by url only.
    assert "clicks" not in printed
    assert world.shared.cuts == []


def test_storage_whose_credentials_name_nobody_is_revoked_for_everybody(world, capsys):
    world.named = FakeObjectStore()
    world.shared = FakeObjectStore(names_recipients=False)

    assert world.run("globex", "--yes") == 1

    assert world.storage("people").revoked_at == NOON
    assert world.storage("lake").revoked_at is None
    assert world.drop.calls == [("globex", ("people",))]


def test_what_was_issued_before_the_store_began_to_refuse_is_not_served_again(world):
    clock = iter([NOW, NOW + timedelta(seconds=30)])
    world.clock = lambda: next(clock)

    assert world.run("globex", "--yes") == 0

    later = NOON + timedelta(seconds=30)
    assert world.storage("people").revoked_at == world.storage("lake").revoked_at == later
    assert world.recipient("globex").revoked_at == NOON


def test_chosen_storages_alone_are_cut_off(world):
    assert world.run("globex", "--yes", "--storage", "lake") == 0
    assert len(world.named.cuts) == 1
    assert world.shared.cuts == []
    assert world.storage("people").revoked_at is None


def test_storage_whose_tables_were_taken_away_before_can_be_named(world):
    assert world.run("acme", "--yes", "--storage", "people") == 0
    assert [recipient for recipient, _ in world.shared.cuts] == ["acme"]
    assert world.named.cuts == []


def test_what_a_store_cannot_cut_off_is_told_with_its_end(world, capsys):
    world.named = FakeObjectStore(cut=Cut(done=False, words="wait for its expiry"))

    assert world.run("acme", "--yes") == 1

    printed = capsys.readouterr().out
    assert "lake (named): NOT cut off, lives until 2030-01-01T13:01:00Z: wait for its expiry" in printed
    assert "acme is not cut off from everything" in printed
    assert world.recipient("acme").disabled


def test_store_without_a_way_to_cut_off_leaves_it_to_time(world, capsys):
    world.named = FakeObjectStore()
    assert world.run("acme", "--yes") == 1
    assert "nothing cuts these off but time" in capsys.readouterr().out


def test_storage_that_does_not_open_is_told_and_the_others_are_cut_off(world, capsys):
    world.file.write_text(
        CONFIG.replace("  prefix: s3://lake\n", "  prefix: s3://lake\n  options: {what: 1}\n")
    )

    assert world.run("globex", "--yes") == 1

    printed = capsys.readouterr().out
    assert "lake (named): NOT cut off" in printed
    assert "unknown option 'what'" in printed
    assert "people (shared): cut off" in printed
    # Of one that does not open nothing is known, so its credentials may be everybody's.
    assert world.storage("lake").revoked_at == NOON


def test_redis_that_does_not_answer_is_told_and_stops_nothing(world, capsys):
    world.drop = Drop(Dropped(done=False, words="Redis cannot be reached"))

    assert world.run("acme", "--yes") == 1

    assert "cache: Redis cannot be reached" in capsys.readouterr().out
    assert len(world.named.cuts) == 1


def test_single_file_urls_are_told_with_their_end(world, capsys):
    world.run("acme", "--yes")
    assert "live until 2030-01-01T13:00:00Z" in capsys.readouterr().out


def test_one_line_of_json_tells_what_was_done(world, capsys):
    world.named = FakeObjectStore(cut=Cut(done=False, words="wait"))

    world.run("acme", "--yes")

    event = json.loads(capsys.readouterr().err)
    assert event.pop("id")
    assert event == {
        "schema_version": 1,
        "at": "2030-01-01T12:00:00Z",
        "kind": "revocation",
        "operation": "revoke",
        "outcome": "incomplete",
        "principal": "acme",
        "keeps_access": False,
        "configuration_changed": True,
        "cache_dropped": True,
        "storages": [{"name": "lake", "cut_off": False, "lives_until": "2030-01-01T13:01:00Z"}],
    }


@pytest.mark.parametrize(
    ("name", "hint"), [("acne", "did you mean acme"), ("nobody", "there is no recipient 'nobody'")]
)
def test_unknown_recipient_is_refused_with_the_nearest_name(world, name, hint):
    with pytest.raises(ConfigError, match=hint):
        world.run(name, "--yes")
    assert world.file.read_text() == CONFIG


def test_holder_of_the_single_token_is_cut_off_by_another_token(world):
    world.file.write_text(f"{CONFIG}authorization: {{bearerToken: some-old-token}}\n")
    with pytest.raises(ConfigError, match="put another token in its place"):
        world.run("bearer", "--yes")


def test_unknown_storage_is_refused_with_the_nearest_name(world):
    with pytest.raises(ConfigError, match="did you mean lake"):
        world.run("acme", "--yes", "--storage", "lak")


def test_dry_run_says_what_would_be_done_and_does_nothing(world, capsys):
    assert world.run("globex", "--dry-run") == 0

    printed = capsys.readouterr().out
    assert "recipients[1]:\n    disabled: true\n    revokedAt: 2030-01-01T12:00:00Z" in printed
    assert "lake (named), people (shared)" in printed
    assert "everybody's credentials are one in: people" in printed
    assert world.file.read_text() == CONFIG
    assert world.named.cuts == world.drop.calls == []


def test_print_gives_the_new_file_and_what_to_do_next(world, capsys):
    assert world.run("acme", "--print") == 0

    printed = capsys.readouterr()
    assert "  disabled: true\n" in printed.out
    assert printed.out.replace("  disabled: true\n  revokedAt: 2030-01-01T12:00:00Z\n", "") == CONFIG
    assert "--no-edit --yes" in printed.err
    assert world.file.read_text() == CONFIG
    assert world.named.cuts == []


def test_no_edit_leaves_the_file_alone_and_does_the_rest(world, capsys):
    assert world.run("acme", "--no-edit", "--yes") == 0

    assert world.file.read_text() == CONFIG
    assert len(world.named.cuts) == 1
    assert world.drop.calls == [("acme", ())]
    assert "does not disable acme" in capsys.readouterr().err


ALIASED = CONFIG.replace("- name: acme", "- &first\n  name: acme").replace(
    "- name: globex\n", "- <<: *first\n  name: globex\n  tokens: []\n"
)


@pytest.mark.parametrize("option", ["--yes", "--print"])
def test_file_that_cannot_be_changed_safely_is_left_with_the_exact_change(world, capsys, option):
    world.file.write_text(ALIASED)

    assert world.run("acme", option) == 3

    printed = capsys.readouterr()
    assert "recipients[0]:\n    disabled: true\n    revokedAt: 2030-01-01T12:00:00Z" in printed.err
    assert printed.out == ""
    assert world.file.read_text() == ALIASED
    assert world.named.cuts == []


def test_file_that_cannot_be_written_is_said_so(world, capsys, tmp_path):
    # A draft beside it would have a longer name than file systems take.
    world.file = world.file.rename(tmp_path / ("s" * 250))

    assert world.run("acme", "--yes") == 3

    message = capsys.readouterr().err
    assert "cannot be written: File name too long" in message
    assert "--print" in message
    assert world.file.read_text() == CONFIG
    assert world.named.cuts == []


def test_nothing_is_done_unasked(world, monkeypatch):
    monkeypatch.setattr(sys, "stdin", StringIO())
    with pytest.raises(ConfigError, match="--yes"):
        world.run("acme")
    assert world.file.read_text() == CONFIG


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_question_can_be_answered(world, monkeypatch):
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    assert world.run("acme") == 0
    assert world.recipient("acme").disabled


def test_question_can_be_denied(world, monkeypatch):
    monkeypatch.setattr(sys, "stdin", Terminal("\n"))
    with pytest.raises(KeyboardInterrupt):
        world.run("acme")
    assert world.file.read_text() == CONFIG
