from __future__ import annotations

from datetime import timedelta

import pytest

from gateway.commands.verification.check import Mark
from gateway.commands.verification.hands import Hands
from gateway.commands.verification.inspection import Inspection, Inspector, Places
from gateway.domain.location import parse_location
from gateway.domain.probe import Action, Attempt, Verdict
from gateway.ports import Storage
from tests.cases import each_case
from tests.fakes.object_store import NOON, FakeObjectStore, scoped

LIFE = timedelta(hours=1)
PREFIX = parse_location("s3://lake/shared")
ORDERS, ORDERS_OLD, CUSTOMERS = (
    parse_location(f"s3://lake/shared/{name}") for name in ("orders", "orders_old", "customers")
)


async def inspect(store: FakeObjectStore, **places) -> Inspection:
    storage = Storage(name="lake", prefix=PREFIX, issuer=store, probe=store, credential_life=LIFE)
    inspector = Inspector(
        hands=Hands(storage, store, store),
        places=Places(prefix=PREFIX, **places),
        life=LIFE,
        progress=lambda _: None,
        clock=lambda: NOON,
    )
    return await inspector.inspect()


def marks(inspection: Inspection, mark: Mark) -> list[str]:
    return [row.check for row in inspection.rows if row.mark is mark]


def shared_store(rule=scoped) -> FakeObjectStore:
    """Return a store of three tables, whose own identity may not write."""
    store = FakeObjectStore(rule, owner_may_write=False)
    for table in (ORDERS, ORDERS_OLD, CUSTOMERS):
        store.objects |= {f"{table.path}/_delta_log/0.json", f"{table.path}/part-0"}
    return store


async def test_everything_is_proved_of_a_credential_that_opens_its_directory_only():
    store = FakeObjectStore()

    inspection = await inspect(store)

    assert {row.mark for row in inspection.rows} == {Mark.PROVED}
    assert [row.check for row in inspection.rows] == [
        "life of the credential",
        "read inside",
        "list inside",
        "read sibling by name (probe-sibling)",
        "list sibling by name (probe-sibling)",
        "read sibling by name (probe2)",
        "list sibling by name (probe2)",
        "read case variant (PROBE)",
        "list case variant (PROBE)",
        "read neighbour (neighbour)",
        "list neighbour (neighbour)",
        "read object beside (probe.txt)",
        "read bare key (probe)",
        "list by name, without the slash",
        "list parent",
        "list bucket",
        "write inside",
        "overwrite inside",
        "delete inside",
        "write outside",
        "delete outside",
        "read inside, again",
    ]
    assert inspection.expires_at == NOON + LIFE


async def test_probe_objects_lie_below_a_random_directory_and_are_removed():
    store = FakeObjectStore()
    store.objects = {"shared/orders/part-0"}

    await inspect(store)
    first = store.written.copy()
    await inspect(store)

    assert all(key.startswith("shared/_sluice_verify/") for key in store.written)
    assert set(first).isdisjoint(store.written[len(first) :])
    assert store.objects == {"shared/orders/part-0"}


async def test_credential_names_the_command_where_credentials_name_somebody():
    naming, silent = FakeObjectStore(), FakeObjectStore(names_recipients=False)
    await inspect(naming)
    await inspect(silent)
    assert {scope.recipient for scope in naming.scopes} == {"sluice-verify-storage"}
    assert {scope.recipient for scope in silent.scopes} == {""}


def prefix_without_slash(scope, action, key):
    below = key.startswith(scope.location.path) and action in {Action.READ, Action.LIST}
    return None if below else Verdict.DENIED


def whole_bucket(scope, action, key):
    return None if action in {Action.READ, Action.LIST} else Verdict.DENIED


def lists_everything(scope, action, key):
    return None if action is Action.LIST else scoped(scope, action, key)


def writes(scope, action, key):
    inside = key.startswith(f"{scope.location.path}/")
    return None if inside and action is not Action.DELETE else Verdict.DENIED


def deletes(scope, action, key):
    return (
        None if key.startswith(f"{scope.location.path}/") and action is not Action.WRITE else Verdict.DENIED
    )


@each_case(
    ("rule", "breaches"),
    [
        (
            prefix_without_slash,
            {
                "read sibling by name (probe-sibling)",
                "list sibling by name (probe-sibling)",
                "read sibling by name (probe2)",
                "list sibling by name (probe2)",
                "read object beside (probe.txt)",
                "list by name, without the slash",
            },
        ),
        (
            lists_everything,
            {
                "list sibling by name (probe-sibling)",
                "list sibling by name (probe2)",
                "list case variant (PROBE)",
                "list neighbour (neighbour)",
                "list by name, without the slash",
                "list parent",
                "list bucket",
            },
        ),
        (writes, {"write inside", "overwrite inside"}),
        # There was nothing of that name, which only somebody who may delete is told.
        (deletes, {"delete inside"}),
    ],
)
async def test_what_a_credential_opens_beyond_its_directory_is_a_breach(rule, breaches):
    store = FakeObjectStore(rule)

    inspection = await inspect(store)

    assert set(marks(inspection, Mark.BREACH)) == breaches
    assert not marks(inspection, Mark.NOT_PROVED)
    assert not store.objects


async def test_credential_of_a_whole_bucket_is_a_breach_in_every_read():
    inspection = await inspect(FakeObjectStore(whole_bucket))

    assert {name.split()[0] for name in marks(inspection, Mark.BREACH)} == {"read", "list"}
    assert len(marks(inspection, Mark.BREACH)) == 12


async def test_object_of_the_directorys_own_name_is_told_of():
    def rule(scope, action, key):
        bare = action is Action.READ and key == scope.location.path
        return None if bare else scoped(scope, action, key)

    inspection = await inspect(FakeObjectStore(rule))

    assert {row.mark for row in inspection.rows} == {Mark.PROVED}
    assert any("very name of its directory" in note for note in inspection.notes)


@pytest.mark.parametrize("accepted", [True, False])
async def test_store_that_folds_case_is_a_breach_unless_that_was_accepted(accepted):
    def rule(scope, action, key):
        below = key.lower().startswith(f"{scope.location.path}/") and action in {Action.READ, Action.LIST}
        return None if below else Verdict.DENIED

    inspection = await inspect(FakeObjectStore(rule), folds_case=accepted)

    breaches = [] if accepted else ["read case variant (PROBE)", "list case variant (PROBE)"]
    assert marks(inspection, Mark.BREACH) == breaches
    assert [note for note in inspection.notes if "acceptCaseVariants" in note] == list(inspection.notes)
    assert len(inspection.notes) == (1 if accepted else 0)


@pytest.mark.parametrize("verdict", [Verdict.FAILED, Verdict.MISSING])
async def test_error_and_absence_are_no_denials(verdict):
    def rule(scope, action, key):
        return verdict if "neighbour" in key else scoped(scope, action, key)

    inspection = await inspect(FakeObjectStore(rule))

    found = {row.check: row.mark for row in inspection.rows if row.mark is not Mark.PROVED}
    mark = Mark.NOT_PROVED if verdict is Verdict.FAILED else Mark.BREACH
    assert found == {"read neighbour (neighbour)": mark, "list neighbour (neighbour)": mark}


async def test_credential_that_opens_nothing_proves_nothing():
    inspection = await inspect(FakeObjectStore(lambda *_: Verdict.DENIED))

    assert marks(inspection, Mark.PROVED) == ["life of the credential"]
    assert not marks(inspection, Mark.BREACH)


async def test_denials_count_only_if_the_credential_was_good_to_the_end():
    reads = iter([None, Verdict.DENIED])

    def rule(scope, action, key):
        if action is Action.READ and key.endswith("/inside.txt"):
            return next(reads)
        return scoped(scope, action, key)

    inspection = await inspect(FakeObjectStore(rule))

    assert marks(inspection, Mark.NOT_PROVED) == ["read inside, again"]


async def test_listing_that_nobody_can_do_is_left_out():
    class Directories(FakeObjectStore):
        async def attempt(self, credential, action, at, path):
            attempt = await super().attempt(credential, action, at, path)
            if action is Action.LIST and path:
                return Attempt(verdict=Verdict.FAILED, detail="whole directories only")
            return attempt

    inspection = await inspect(Directories())

    assert {row.mark for row in inspection.rows} == {Mark.PROVED}
    assert "list by name, without the slash" not in [row.check for row in inspection.rows]


async def test_store_that_keeps_no_object_beside_its_directory_has_none_to_open():
    class Tree(FakeObjectStore):
        async def attempt(self, credential, action, at, path):
            if action is Action.WRITE and path == "probe":
                return Attempt(verdict=Verdict.FAILED)
            return await super().attempt(credential, action, at, path)

    inspection = await inspect(Tree())

    assert {row.mark for row in inspection.rows} == {Mark.PROVED}
    assert "read bare key (probe)" not in [row.check for row in inspection.rows]


async def test_object_that_a_breach_left_and_nobody_may_remove_is_named():
    store = shared_store(writes)

    inspection = await inspect(store, tables=[ORDERS, ORDERS_OLD])

    (left,) = [note for note in inspection.notes if "left behind" in note]
    assert "s3://lake/shared/orders/_sluice_verify_" in left
    assert "write inside" in marks(inspection, Mark.BREACH)


async def test_tables_take_the_place_of_probe_objects_where_nothing_may_be_written():
    store = shared_store()
    before = set(store.objects)

    inspection = await inspect(store, tables=[CUSTOMERS, ORDERS, ORDERS_OLD])

    assert {row.mark for row in inspection.rows} == {Mark.PROVED}
    assert inspection.ground == "tables"
    checks = [row.check for row in inspection.rows]
    assert "read sibling by name (orders_old)" in checks
    assert "read neighbour (customers)" in checks
    assert "overwrite inside" not in checks
    assert store.objects == before


async def test_second_table_is_shown_to_be_readable_with_its_own_credential():
    store = shared_store()

    await inspect(store, tables=[ORDERS, CUSTOMERS])

    assert {scope.location for scope in store.scopes} == {ORDERS, CUSTOMERS}


async def test_leak_to_a_second_table_is_a_breach():
    inspection = await inspect(shared_store(prefix_without_slash), tables=[ORDERS, ORDERS_OLD, CUSTOMERS])

    assert marks(inspection, Mark.BREACH) == [
        "read sibling by name (orders_old)",
        "list sibling by name (orders_old)",
        "list by name, without the slash",
    ]


async def test_single_table_leaves_rows_that_say_what_to_do():
    inspection = await inspect(shared_store(), tables=[ORDERS])

    missing = {row.check: row.detail for row in inspection.rows if row.mark is Mark.NOT_PROVED}
    assert set(missing) == {"read sibling by name", "read neighbour"}
    assert all("--outside" in detail for detail in missing.values())


async def test_empty_second_table_proves_nothing():
    store = shared_store()
    store.objects = {key for key in store.objects if "customers" not in key}

    inspection = await inspect(store, tables=[ORDERS, CUSTOMERS])

    (row,) = [row for row in inspection.rows if row.check == "read neighbour"]
    assert row.mark is Mark.NOT_PROVED
    assert str(CUSTOMERS) in row.detail


async def test_second_table_without_a_credential_of_its_own_is_named():
    broken = parse_location("s3://lake/shared/broken")

    inspection = await inspect(shared_store(), tables=[broken, ORDERS])

    (row,) = [row for row in inspection.rows if row.check == "read neighbour"]
    assert row.mark is Mark.NOT_PROVED
    assert f"no credential for {broken}: the role cannot be assumed" in row.detail


async def test_without_tables_it_says_which_options_name_directories():
    inspection = await inspect(shared_store())

    (row,) = inspection.rows
    assert row.mark is Mark.NOT_PROVED
    assert "--at" in row.detail


async def test_named_directories_come_before_all_else():
    store = shared_store()
    store_may_write = FakeObjectStore()
    store_may_write.objects = set(store.objects)

    inspection = await inspect(store_may_write, at=ORDERS, outside=[ORDERS_OLD, CUSTOMERS])

    assert inspection.ground == "named directories"
    assert {row.mark for row in inspection.rows} == {Mark.PROVED}
    assert store_may_write.written == []


async def test_empty_directory_cannot_be_shown_to_be_readable():
    inspection = await inspect(shared_store(), at=parse_location("s3://lake/shared/empty"))

    assert "read inside" in marks(inspection, Mark.NOT_PROVED)
    assert marks(inspection, Mark.PROVED) == ["life of the credential", "list inside"]


async def test_store_that_fails_for_its_own_identity_is_told_of():
    class Down(FakeObjectStore):
        async def attempt(self, credential, action, at, path):
            return Attempt(verdict=Verdict.FAILED, detail="503 SlowDown")

    inspection = await inspect(Down())

    (row,) = inspection.rows
    assert row.mark is Mark.NOT_PROVED
    assert "503 SlowDown" in row.detail


class Faulty(FakeObjectStore):
    """A store that answers its own identity with the same attempt to each action of a kind."""

    def __init__(self, **answers: Attempt) -> None:
        super().__init__()
        self._answers = answers

    async def attempt(self, credential, action, at, path):
        answer = self._answers.get(action.value) if credential is None else None
        return answer or await super().attempt(credential, action, at, path)


def failed(detail: str) -> Attempt:
    return Attempt(verdict=Verdict.FAILED, detail=detail)


@each_case("detail", ["no answer", "FileNotFoundError", "403 SignatureDoesNotMatch", "401", ""])
async def test_nothing_is_left_behind_where_nothing_was_taken(detail):
    inspection = await inspect(Faulty(write=failed(detail), delete=failed(detail)))

    assert inspection.notes == []


@pytest.mark.parametrize(
    ("written", "deleted"),
    [
        ("503 SlowDown", "503 SlowDown"),
        ("500", "no answer"),
        # Silence to the one and a word to the other: it is there, and heard both perhaps.
        ("no answer", "403 SignatureDoesNotMatch"),
    ],
)
async def test_object_that_the_store_may_have_taken_is_named(written, deleted):
    inspection = await inspect(Faulty(write=failed(written), delete=failed(deleted)))

    (note,) = inspection.notes
    assert note.startswith("left behind, to be removed by hand: s3://lake/shared/_sluice_verify/")


async def test_object_that_the_store_has_taken_is_named_whatever_became_of_its_removal():
    inspection = await inspect(Faulty(delete=failed("no answer")))

    (note,) = [note for note in inspection.notes if "left behind" in note]
    assert "inside.txt" in note


async def test_identity_that_may_not_write_is_pointed_to_named_directories_first():
    inspection = await inspect(shared_store(), tables=[ORDERS])

    missing = [row.detail for row in inspection.rows if row.mark is Mark.NOT_PROVED]
    assert len(missing) == 2
    assert all(
        0 < words.index("--outside") < words.index("let the storage's identity write") for words in missing
    )


async def test_credential_that_cannot_be_issued_is_told_of_and_probe_objects_are_removed():
    store = FakeObjectStore()
    broken = parse_location("s3://lake/broken")
    storage = Storage(name="lake", prefix=broken, issuer=store, probe=store)

    inspection = await Inspector(
        hands=Hands(storage, store, store),
        places=Places(prefix=broken),
        life=LIFE,
        progress=lambda _: None,
    ).inspect()

    (row,) = inspection.rows
    assert "the role cannot be assumed" in row.detail
    assert store.written
    assert not store.objects


@each_case(
    ("life", "mark", "seen"),
    [
        (LIFE, Mark.PROVED, "1 h"),
        (timedelta(minutes=59, seconds=58), Mark.PROVED, "59 min 58 s"),
        (timedelta(hours=1, minutes=4), Mark.PROVED, "1 h 4 min"),
        (timedelta(minutes=30), Mark.PROVED, "30 min"),
        (timedelta(minutes=29), Mark.NOT_PROVED, "29 min"),
        (timedelta(hours=2), Mark.NOT_PROVED, "2 h"),
        (timedelta(seconds=-1), Mark.NOT_PROVED, "expired"),
    ],
)
async def test_life_is_held_against_what_was_asked_for(life, mark, seen):
    store = FakeObjectStore()
    store.life = life

    row = (await inspect(store)).rows[0]

    assert (row.check, row.mark, row.seen) == ("life of the credential", mark, seen)


@pytest.mark.parametrize(
    ("minutes", "notes"),
    [(56, []), (40, ["credentials live 40 min, not the 1 h that were asked for"]), (20, [])],
)
async def test_life_that_falls_short_is_noted(minutes, notes):
    store = FakeObjectStore()
    store.life = timedelta(minutes=minutes)

    inspection = await inspect(store)

    assert [note for note in inspection.notes if "credentials live" in note] == notes


async def test_life_of_less_than_half_says_what_was_given_and_what_to_do():
    store = FakeObjectStore()
    store.life = timedelta(minutes=15)

    row = (await inspect(store)).rows[0]

    assert "1 h were asked for and 15 min given" in row.detail
    assert "set credentialLife" in row.detail


SECRET = parse_location("s3://lake/shared/zz_secret")


def leak(scope, action, key):
    """Open one more directory to every credential."""
    opens = key.startswith(f"{SECRET.path}/") and action in {Action.READ, Action.LIST}
    return None if opens else scoped(scope, action, key)


def leaking(store: FakeObjectStore) -> FakeObjectStore:
    store.objects.add(f"{SECRET.path}/part-0")
    return store


async def test_named_directory_is_tried_where_probe_objects_can_be_written():
    inspection = await inspect(leaking(FakeObjectStore(leak)), outside=[SECRET])

    assert inspection.ground == "probe objects"
    assert marks(inspection, Mark.BREACH) == [
        "read neighbour (shared/zz_secret)",
        "list neighbour (shared/zz_secret)",
    ]


async def test_every_named_directory_is_tried():
    store = leaking(shared_store(leak))

    inspection = await inspect(store, at=ORDERS, outside=[CUSTOMERS, ORDERS_OLD, SECRET])

    assert "read neighbour (shared/customers)" in marks(inspection, Mark.PROVED)
    assert "read sibling by name (shared/orders_old)" in marks(inspection, Mark.PROVED)
    assert "read neighbour (shared/zz_secret)" in marks(inspection, Mark.BREACH)


@pytest.mark.parametrize("owner_may_write", [True, False])
async def test_named_directory_without_objects_is_not_proved(owner_may_write):
    store = shared_store() if not owner_may_write else FakeObjectStore()

    inspection = await inspect(store, tables=[ORDERS, ORDERS_OLD, CUSTOMERS], outside=[SECRET])

    (row,) = [row for row in inspection.rows if row.check == "read outside (shared/zz_secret)"]
    assert row.mark is Mark.NOT_PROVED
    assert str(SECRET) in row.detail


async def test_named_table_is_never_the_one_inside():
    inspection = await inspect(shared_store(), tables=[ORDERS, CUSTOMERS], outside=[CUSTOMERS])

    assert "read neighbour (shared/customers)" in marks(inspection, Mark.PROVED)


async def test_only_table_that_is_named_leaves_none_to_be_inside():
    inspection = await inspect(shared_store(), tables=[ORDERS], outside=[ORDERS])

    (row,) = inspection.rows
    assert "--outside" in row.detail


async def test_several_tables_are_tried():
    tables = [ORDERS, ORDERS_OLD, CUSTOMERS, SECRET]

    inspection = await inspect(leaking(shared_store(leak)), tables=tables)

    assert marks(inspection, Mark.BREACH) == ["read neighbour (zz_secret)", "list neighbour (zz_secret)"]
    assert not [note for note in inspection.notes if "more tables" in note]


async def test_tables_that_were_not_tried_are_counted():
    store = shared_store()
    many = [parse_location(f"s3://lake/shared/t{number}") for number in range(8)]
    store.objects |= {f"{table.path}/part-0" for table in many}

    inspection = await inspect(store, tables=[ORDERS, ORDERS_OLD, *many])

    tried = [row.check for row in inspection.rows if row.check.startswith("read neighbour")]
    assert len(tried) == 5
    assert any(note.startswith("3 more tables were not tried") for note in inspection.notes)


class Directories(FakeObjectStore):
    """A store that keeps the directories of what was written in it, and deletes empty ones only.

    As on Azure, what the state of a directory forbids is allowed by the credential.
    """

    def __init__(self, *existing: str, keeps: str = "") -> None:
        super().__init__()
        self.directories = set(existing)
        self._keeps = keeps

    async def attempt(self, credential, action, at, path):
        key = f"{at.path}/{path}"
        if credential is None and key in self.directories and action is not Action.LIST:
            return self._open(action, key)
        attempt = await super().attempt(credential, action, at, path)
        if action is Action.WRITE and attempt.verdict is Verdict.ALLOWED:
            steps = key.split("/")
            self.directories |= {"/".join(steps[:number]) for number in range(1, len(steps))}
        return attempt

    def _open(self, action: Action, key: str) -> Attempt:
        if action is Action.DELETE:
            if self._keeps and key.endswith(self._keeps):
                return Attempt(verdict=Verdict.DENIED)
            below = [name for name in self.objects | self.directories if name.startswith(f"{key}/")]
            self.directories -= set() if below else {key}
        return Attempt(verdict=Verdict.ALLOWED)


@pytest.mark.parametrize("existing", [{"shared"}, {"shared", "shared/_sluice_verify"}])
async def test_directories_that_a_store_made_for_probe_objects_are_removed(existing):
    store = Directories(*existing)

    inspection = await inspect(store)

    # What was there before is not ours.
    assert store.directories == existing
    assert not [note for note in inspection.notes if "left behind" in note]


async def test_directory_that_cannot_be_removed_is_named():
    store = Directories("shared", keeps="/_sluice_verify")

    inspection = await inspect(store)

    assert "left behind, to be removed by hand: s3://lake/shared/_sluice_verify" in inspection.notes


async def test_writing_outside_is_tried_beside_our_own_objects_only():
    store = leaking(FakeObjectStore())

    await inspect(store, outside=[SECRET])

    assert all("/_sluice_verify/" in key for key in store.written)
    assert f"{SECRET.path}/part-0" in store.objects
