from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest

from gateway.commands import revoke
from gateway.commands.revocation.cache import DropCached, Dropped
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
  shares: [SALES]
- name: globex
  identities: [{{issuer: i, subject: s}}]
  shares: [sales, hr]
- name: initech
  identities: [{{issuer: i, subject: everything}}]
  shares: "*"
- name: hooli
  identities: [{{issuer: i, subject: clicks}}]
  shares: [web]
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

MOMENT = "  revokedAt: 2030-01-01T12:00:00Z\n"
REVOKED = f"  disabled: true\n{MOMENT}"
# As somebody else has put it in force.
DISABLED = CONFIG.replace("# the first\n", f"# the first\n{REVOKED}")


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
        self.shared = FakeObjectStore(
            names_recipients=False, cut=Cut(done=True, words="keys revoked"), everybody="keys"
        )
        self.drop: DropCached = Drop(Dropped(done=True, words="2 dropped from Redis"))
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
    # Its store refuses what acme has, and nobody else's: there is nothing to issue anew.
    assert world.file.read_text() == CONFIG.replace(
        "# the first\n", f"# the first\n  disabled: true\n{moment}"
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
    assert world.storage("people").revoked_at == later
    # There each recipient has credentials of its own.
    assert world.storage("lake").revoked_at is None
    assert world.recipient("globex").revoked_at == NOON


def test_chosen_storages_alone_are_cut_off_and_the_others_are_told(world, capsys):
    assert world.run("globex", "--yes", "--storage", "lake") == 1

    assert len(world.named.cuts) == 1
    assert world.shared.cuts == []
    assert world.storage("people").revoked_at is None
    printed = capsys.readouterr()
    assert "globex is not cut off from everything: cut off in: lake; not asked: people\n" in printed.out
    event = json.loads(printed.err)
    assert (event["outcome"], event["storages_not_asked"]) == ("incomplete", ["people"])


def test_storage_whose_tables_were_taken_away_before_can_be_named(world):
    assert world.run("acme", "--yes", "--storage", "people", "--storage", "lake") == 0
    assert [recipient for recipient, _ in world.shared.cuts] == ["acme"]


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
    assert "could not be asked: options.what: unknown option; put that right" in printed
    assert "people (shared): cut off" in printed
    # Of one that does not open nothing is known, so its credentials may be everybody's.
    assert world.storage("lake").revoked_at == NOON


def test_redis_that_does_not_answer_is_told_and_stops_nothing(world, capsys):
    world.drop = Drop(Dropped(done=False, words="Redis cannot be reached"))

    assert world.run("acme", "--yes") == 1

    assert "cache: Redis cannot be reached" in capsys.readouterr().out
    assert len(world.named.cuts) == 1


@pytest.mark.parametrize("name", ["hooli", "initech"])
def test_urls_that_are_out_live_on_and_are_told_with_their_end(world, capsys, name):
    assert world.run(name, "--yes") == 1

    printed = capsys.readouterr()
    assert "URLs: those handed out for single files live until 2030-01-01T13:01:00Z" in printed.out
    assert "URLs live until 2030-01-01T13:01:00Z\n" in printed.out
    event = json.loads(printed.err)
    assert (event["outcome"], event["urls_live_until"]) == ("incomplete", "2030-01-01T13:01:00Z")


def test_recipient_without_tables_by_url_has_no_urls(world, capsys):
    assert world.run("acme", "--yes") == 0

    printed = capsys.readouterr()
    assert "URL" not in printed.out
    assert json.loads(printed.err)["urls_live_until"] is None


def test_urls_that_have_ended_since_the_first_revocation_are_not_left(world):
    world.run("hooli", "--yes")
    world.clock = lambda: NOW + timedelta(days=1)
    assert world.run("hooli", "--yes") == 0


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
        "revoked_at": "2030-01-01T12:00:00Z",
        "keeps_access": False,
        "configuration_changed": True,
        "configuration_lacks": [],
        "cache_dropped": True,
        "storages": [{"name": "lake", "cut_off": False, "lives_until": "2030-01-01T13:01:00Z"}],
        "storages_not_asked": [],
        "urls_live_until": None,
    }


def test_json_says_nothing_was_dropped_where_there_is_no_shared_cache(world, capsys):
    world.drop = Drop(Dropped(done=None, words="no Redis is configured"))

    assert world.run("acme", "--yes") == 0

    event = json.loads(capsys.readouterr().err)
    assert (event["cache_dropped"], event["outcome"]) == (None, "done")


DAY = timedelta(days=1)


@pytest.fixture
def revoked(world: World) -> World:
    """Return a world whose stores cut nothing off, a day after acme and globex were revoked."""
    world.named, world.shared = FakeObjectStore(), FakeObjectStore(names_recipients=False)
    world.run("acme", "--yes")
    world.run("globex", "--yes")
    world.clock = lambda: NOW + DAY
    return world


@pytest.mark.parametrize("name", ["acme", "globex"])
def test_second_revocation_keeps_the_moment_of_the_first(revoked, capsys, name):
    before = revoked.file.read_text()
    capsys.readouterr()

    assert revoked.run(name, "--yes") == 1

    assert revoked.file.read_text() == before
    printed = capsys.readouterr()
    assert f"{name} is cut off since 2030-01-01T12:00:00Z, which is kept" in printed.out
    assert "lives until 2030-01-01T13:01:00Z" in printed.out
    assert "is changed" not in printed.out
    event = json.loads(printed.err)
    assert (event["at"], event["revoked_at"]) == ("2030-01-02T12:00:00Z", "2030-01-01T12:00:00Z")
    assert event["configuration_changed"] is False


def test_second_revocation_asks_the_stores_as_of_now(revoked):
    revoked.named = FakeObjectStore(cut=Cut(done=True, words="denied by session age"))

    revoked.run("acme", "--yes")

    assert revoked.named.cuts == [("acme", NOON + DAY + timedelta(minutes=1))]


def test_second_revocation_marks_a_storage_that_the_first_did_not_name(revoked):
    revoked.run("acme", "--yes", "--storage", "people")

    assert revoked.recipient("acme").revoked_at == NOON
    assert revoked.storage("people").revoked_at == NOON


def test_what_could_have_been_issued_since_moves_the_moment(revoked):
    revoked.run("acme", "--yes", "--keep-access")

    assert revoked.recipient("acme").revoked_at == NOON + DAY
    assert revoked.recipient("acme").disabled


def test_recipient_that_was_let_in_again_is_revoked_anew(revoked):
    revoked.file.write_text(revoked.file.read_text().replace("  disabled: true\n", ""))

    revoked.run("acme", "--yes")

    assert revoked.recipient("acme").revoked_at == NOON + DAY


def test_recipient_that_was_disabled_by_hand_is_revoked_now(world):
    world.file.write_text(CONFIG.replace("# the first\n", "# the first\n  disabled: true\n"))

    world.run("acme", "--yes")

    assert world.recipient("acme").revoked_at == NOON


def test_moment_in_the_future_is_not_kept(revoked):
    revoked.clock = lambda: NOW - DAY

    revoked.run("acme", "--yes")

    assert revoked.recipient("acme").revoked_at == NOON - DAY


def test_file_that_others_put_in_force_may_have_done_so_just_now(revoked, capsys):
    capsys.readouterr()

    revoked.run("acme", "--yes", "--no-edit")

    assert "lives until 2030-01-02T13:01:00Z" in capsys.readouterr().out


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
    assert (
        "recipients, the entry named globex:\n    disabled: true\n    revokedAt: 2030-01-01T12:00:00Z"
        in printed
    )
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
    world.file.write_text(DISABLED)

    assert world.run("acme", "--no-edit", "--yes") == 0

    assert world.file.read_text() == DISABLED
    assert len(world.named.cuts) == 1
    assert world.drop.calls == [("acme", ())]
    assert "acme is cut off;" in capsys.readouterr().out


def test_no_edit_of_a_file_that_does_not_disable_says_what_is_missing(world, capsys):
    assert world.run("acme", "--no-edit", "--yes") == 1

    assert world.file.read_text() == CONFIG
    assert len(world.named.cuts) == 1
    printed = capsys.readouterr()
    assert "cut off in: lake; not in the configuration: disabled and revokedAt of acme\n" in printed.out
    event = json.loads(printed.err)
    assert (event["outcome"], event["configuration_lacks"]) == ("incomplete", ["recipients: acme"])


def test_no_edit_with_kept_access_wants_a_new_moment_of_all_that_was_revoked(world, capsys):
    world.shared = FakeObjectStore(names_recipients=False)

    assert world.run("globex", "--no-edit", "--yes", "--keep-access") == 1

    left = "not in the configuration: revokedAt of globex, revokedAt of people\n"
    assert left in capsys.readouterr().out


def test_no_edit_with_kept_access_cuts_off_as_of_the_moment_in_the_file(world):
    world.file.write_text(DISABLED.replace("  disabled: true\n", ""))
    world.clock = lambda: NOW + timedelta(minutes=10)

    assert world.run("acme", "--no-edit", "--yes", "--keep-access") == 0

    # What gateways have issued since, and keep, is not refused.
    assert world.named.cuts == [("acme", NOON)]


def test_no_edit_with_kept_access_takes_no_moment_that_is_older_than_any_credential(world):
    world.file.write_text(DISABLED.replace("  disabled: true\n", ""))
    world.clock = lambda: NOW + timedelta(hours=2)

    assert world.run("acme", "--no-edit", "--yes", "--keep-access") == 1

    assert world.named.cuts == [("acme", NOON + timedelta(hours=2))]


def test_no_edit_leaves_the_mark_after_a_cut_that_hit_everybody_to_the_operator(world, capsys):
    text = CONFIG.replace("- name: globex\n", f"- name: globex\n{REVOKED}")
    world.file.write_text(text.replace("- name: people\n", f"- name: people\n{MOMENT}"))

    assert world.run("globex", "--no-edit", "--yes") == 1

    printed = capsys.readouterr().out
    assert "cut off in: lake, people; not in the configuration: revokedAt of people\n" in printed
    assert "storages, the entry named people:\n    revokedAt: 2030-01-01T12:00:00Z" in printed


ALIASED = CONFIG.replace("- name: acme", "- &first\n  name: acme").replace(
    "- name: globex\n", "- <<: *first\n  name: globex\n  tokens: []\n"
)


@pytest.mark.parametrize("option", ["--yes", "--print"])
def test_file_that_cannot_be_changed_safely_is_left_with_the_exact_change(world, capsys, option):
    world.file.write_text(ALIASED)

    assert world.run("acme", option) == 3

    printed = capsys.readouterr()
    assert (
        "recipients, the entry named acme:\n    disabled: true\n    revokedAt: 2030-01-01T12:00:00Z"
        in printed.err
    )
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


NEWCOMER = f"recipients:\n- name: newcomer\n  tokens: [{{hash: 'sha256:{'1' * 64}'}}]\n  shares: [sales]\n"


def test_recipient_is_found_by_name_when_others_come_before_it_meanwhile(world, monkeypatch):
    def answer() -> str:
        world.file.write_text(CONFIG.replace("recipients:\n", NEWCOMER))
        return "y"

    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr("builtins.input", answer)

    assert world.run("acme") == 0

    assert world.recipient("acme").disabled
    assert not world.recipient("newcomer").disabled
    assert world.recipient("newcomer").revoked_at is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # It reaches more than was planned for.
        ("shares: [SALES]", "shares: [SALES, hr]"),
        ("- name: acme  # the first", "- name: acme-2"),
    ],
)
def test_entry_that_was_changed_meanwhile_is_left_alone(world, monkeypatch, capsys, old, new):
    def answer() -> str:
        world.file.write_text(CONFIG.replace(old, new))
        return "y"

    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr("builtins.input", answer)

    assert world.run("acme") == 3

    assert "was changed by somebody else just now; try again" in capsys.readouterr().err
    assert world.file.read_text() == CONFIG.replace(old, new)
    assert world.named.cuts == world.drop.calls == []


def during_the_cut(world: World, act) -> None:
    """Let somebody else act between the first change of the file and the second."""
    drop = world.drop

    async def dropping(config, recipient, storages):
        act()
        return await drop(config, recipient, storages)

    world.drop = dropping


def test_storage_is_marked_by_name_when_others_come_before_it_meanwhile(world):
    zero = "storages:\n- name: zero\n  prefix: s3://zero\n  vendor: named\n"
    during_the_cut(world, lambda: world.file.write_text(world.file.read_text().replace("storages:\n", zero)))

    assert world.run("globex", "--yes") == 0

    assert world.storage("people").revoked_at is not None
    assert world.storage("zero").revoked_at is None


def test_file_that_is_broken_meanwhile_leaves_the_second_mark_to_the_operator(world, capsys):
    during_the_cut(world, lambda: world.file.write_text("nonsense: true\n"))

    assert world.run("globex", "--yes") == 1

    printed = capsys.readouterr()
    assert "not in the configuration: revokedAt of people\n" in printed.out
    assert "people could not be given another revokedAt" in printed.err
    assert len(world.shared.cuts) == 1


def test_cut_that_hits_everybody_marks_every_storage_that_goes_by_the_same(world):
    beside = "- name: beside\n  prefix: s3://beside\n  vendor: shared\n"
    broken = "- name: broken\n  prefix: s3://broken\n  vendor: shared\n  options: {what: 1}\n"
    world.file.write_text(CONFIG + beside + broken)

    assert world.run("globex", "--yes") == 0

    # Nobody was asked to cut it off, yet what it has issued is dead.
    assert world.storage("beside").revoked_at == NOON
    # Of one that does not open, it is not known whether it goes by the same.
    assert world.storage("broken").revoked_at == NOON
    assert world.storage("lake").revoked_at is None
    assert len(world.shared.cuts) == 1


def test_storage_that_is_not_allowed_to_cut_off_may_have_been_by_another(world, capsys):
    world.named = FakeObjectStore(cut=Cut(done=False, words="not allowed"), everybody="keys")

    assert world.run("globex", "--yes") == 0

    assert "lake (named): cut off: ended together with those of people" in capsys.readouterr().out
    assert world.storage("lake").revoked_at == NOON


@pytest.mark.parametrize(("asked", "end"), [(15, "13:01"), (120, "14:01")])
def test_life_that_a_store_knows_better_is_told(world, capsys, asked, end):
    text = CONFIG.replace("- name: lake\n", f"- name: lake\n  credentialLife: {asked}m\n")
    world.file.write_text(text)
    world.named = FakeObjectStore(cut=Cut(done=False, words="wait", life=timedelta(hours=1)))

    assert world.run("acme", "--yes") == 1

    assert f"lives until 2030-01-01T{end}:00Z" in capsys.readouterr().out


def test_what_others_will_feel_is_told_before_it_is_done(world, capsys):
    world.shared = FakeObjectStore(cut=Cut(done=True, words=""), consequence="deletes the parent token AK1")

    world.run("globex", "--dry-run")

    assert "  people deletes the parent token AK1" in capsys.readouterr().out
