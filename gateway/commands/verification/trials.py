"""What is tried with a credential: the reads that must succeed and the rest that must not."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from gateway.commands.verification.check import Check, Expected
from gateway.commands.verification.ground import Ground, Outside
from gateway.domain.location import Location
from gateway.domain.probe import Action

LIST_BY_NAME: Final = "list by name, without the slash"
_NEW: Final = "_sluice_verify_"


def reads(ground: Ground) -> Iterator[Check]:
    if ground.path:
        yield read_inside(ground)
    yield _allowed("list inside", Action.LIST, ground.inside, "")


def read_inside(ground: Ground, when: str = "") -> Check:
    return _allowed(f"read inside{when}", Action.READ, ground.inside, ground.path)


def denials(ground: Ground) -> Iterator[Check]:
    for one in ground.outside:
        yield from _outside(one)
    yield from _above(ground.inside)
    yield _denied("write inside", Action.WRITE, ground.inside, _new_name())
    if ground.is_ours:
        yield _denied("overwrite inside", Action.WRITE, ground.inside, ground.path)
    # Never what exists: should the credential be able to, nothing is lost.
    yield _denied("delete inside", Action.DELETE, ground.inside, _new_name())
    if not ground.inside.is_root:
        elsewhere = next((one.at for one in ground.outside), ground.inside.parent)
        yield _denied("write outside", Action.WRITE, elsewhere, _new_name())
        yield _denied("delete outside", Action.DELETE, elsewhere, _new_name())


def is_new(check: Check) -> bool:
    """Tell whether a check writes what was not there before."""
    return check.action is Action.WRITE and check.path.startswith(_NEW)


def _outside(one: Outside) -> Iterator[Check]:
    label = one.label or (_last(one.at) if one.has_directory else one.path)
    name = f"{one.kind} ({label})"
    yield replace(_denied(f"read {name}", Action.READ, one.at, one.path), tolerated=one.tolerated)
    if one.has_directory:
        yield replace(_denied(f"list {name}", Action.LIST, one.at, ""), tolerated=one.tolerated)


def _above(inside: Location) -> Iterator[Check]:
    if inside.is_root:
        return
    above = inside.parent
    yield _denied(LIST_BY_NAME, Action.LIST, above, _last(inside))
    if not above.is_root:
        yield _denied("list parent", Action.LIST, above, "")
    yield _denied("list bucket", Action.LIST, inside.root, "")


def _allowed(name: str, action: Action, at: Location, path: str) -> Check:
    return Check(name=name, action=action, at=at, path=path, expected=Expected.ALLOWED)


def _denied(name: str, action: Action, at: Location, path: str) -> Check:
    return Check(name=name, action=action, at=at, path=path, expected=Expected.DENIED)


def _last(location: Location) -> str:
    return location.path.rpartition("/")[2]


def _new_name() -> str:
    return f"{_NEW}{secrets.token_hex(8)}"
