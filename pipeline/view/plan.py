"""The plan of a view's refresh, and its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from gateway.errors import InvalidArgument
from pipeline.plan import read_plan


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTable:
    """A table that the view reads, by its shared name and by its place."""

    name: str
    url: str
    # Other places that its log may name files in.
    allowed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceState:
    """What was seen of a source. Another id is another table, whatever its version says."""

    version: int
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What recipients are shown now: a directory below the root, and the sources' versions behind it."""

    name: str
    version: int
    sources: Mapping[str, SourceState]


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewPlan:
    """A refresh. Directories are named below the root."""

    # Spark SQL over ``source_0``, ``source_1``, …, with parameters ``:property_0``, …
    query: str
    sources: tuple[SourceTable, ...]
    parameters: Mapping[str, str | None] = field(default_factory=dict, repr=False)
    # Whether rows that are added to its only source add rows to it, and change none.
    appendable: bool
    # Whether it is made anew though no source has changed: its query asks for the time.
    timed: bool = False
    root_url: str
    current: Shown | None = None
    # Where a refresh that is no append goes: a name that no attempt has had before.
    fresh_name: str
    # What marks the appends to a directory as those of this view.
    app_id: str
    delete: tuple[str, ...] = ()
    # What an attempt that died has left is deleted when nothing in it is younger than this; None: it stays.
    orphans_before_ms: int | None = None
    # Directories that are not orphans, besides the current and the fresh one.
    keep: tuple[str, ...] = ()
    # Beside the root: what the view was shown in when it was defined in another way.
    former: tuple[str, ...] = ()

    def url(self, name: str) -> str:
        return f"{self.root_url.rstrip('/')}/{name}"

    def former_url(self, name: str) -> str:
        beside, _, _ = self.root_url.rstrip("/").rpartition("/")
        return f"{beside}/{name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewResult:
    """What a refresh has come to."""

    name: str
    version: int
    sources: Mapping[str, SourceState]
    rows_added: int | None
    rows: int | None
    kind: Literal["full", "append", "none"]
    deleted: tuple[str, ...] = ()
    # Which of the former ones are gone.
    forgotten: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "deleted": list(self.deleted), "forgotten": list(self.forgotten)}


def read_view_plan(values: Mapping[str, Any]) -> ViewPlan:
    """Read a plan; raise ``InvalidArgument`` for one that cannot be meant."""
    plan = read_plan(ViewPlan, values)
    if not plan.sources:
        raise InvalidArgument("plan.sources is empty")
    for name in plan.parameters:
        if not name.isidentifier():
            raise InvalidArgument(f"plan.parameters names {name!r}, which is no name of a parameter")
    _check_directories(plan)
    return plan


def _check_directories(plan: ViewPlan) -> None:
    shown = (plan.current.name,) if plan.current else ()
    for name in (plan.fresh_name, *shown, *plan.delete, *plan.keep, *plan.former):
        if not name or name.startswith((".", "_")) or "/" in name or "\\" in name:
            raise InvalidArgument(f"{name!r} is not the name of a directory")
    if plan.fresh_name in shown:
        raise InvalidArgument("plan.fresh_name is the directory that is shown now")
    for name in (*shown, plan.fresh_name, *plan.keep):
        if name in plan.delete:
            raise InvalidArgument(f"plan.delete names {name}, which is still needed")
    if plan.root_url.rstrip("/") in map(plan.former_url, plan.former):
        raise InvalidArgument("plan.former names what the view is shown in now")
