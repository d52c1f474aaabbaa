"""A refresh of a view: nothing, an append to the directory that shows it, or a new directory."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from pipeline.faults import FILES_GONE, fault_of, passing_fault
from pipeline.folders import delete_folder, folder_names, has_folders, newest_ms
from pipeline.progress import Progress
from pipeline.view.append import append, count_rows
from pipeline.view.frame import view_frame
from pipeline.view.plan import Shown, SourceState, ViewPlan, ViewResult
from pipeline.view.source import changes_since, confirm, latest, read_source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_STEPS = 4
States = Mapping[str, SourceState]


def refresh(spark: SparkSession, plan: ViewPlan, progress: Progress) -> ViewResult:
    """Bring what a view shows up to date, and return where it is."""
    progress("looking at the sources", 0, _STEPS)
    states = {source.name: latest(spark, source) for source in plan.sources}
    return (
        unchanged(plan, states)
        or _appended(spark, plan, states, progress)
        or _made_anew(spark, plan, states, progress)
    )


def clean_up(spark: SparkSession, plan: ViewPlan) -> tuple[str, ...]:
    """Delete the directories that nobody needs any more, and return their names."""
    if not has_folders(spark):
        return ()
    names = (*plan.delete, *_orphans(spark, plan))
    for name in names:
        delete_folder(spark, plan.url(name))
    return names


def forget(spark: SparkSession, plan: ViewPlan) -> tuple[str, ...]:
    """Delete what the view was shown in before it was defined as it is, and return what is gone of that.

    Not where anything is young: it was made by somebody to whom that definition is not a former one.
    """
    before = plan.orphans_before_ms
    if before is None or not has_folders(spark):
        return ()
    return tuple(name for name in plan.former if _is_forgotten(spark, plan.former_url(name), before))


def _is_forgotten(spark: SparkSession, url: str, before_ms: int) -> bool:
    try:
        if newest_ms(spark, url) >= before_ms:
            return False
        delete_folder(spark, url)
    except Exception as exc:  # noqa: BLE001 -- what is shown now is good, whatever is left of the past
        log.warning("what a former definition left cannot be deleted: %s", fault_of(exc).message)
        return False
    return True


def unchanged(plan: ViewPlan, states: States) -> ViewResult | None:
    """Return the result of a refresh that finds nothing to do; None if there is something to do."""
    if plan.timed or plan.current is None or plan.current.sources != states:
        return None
    return _nothing_new(plan.current, states)


def _appended(spark: SparkSession, plan: ViewPlan, states: States, progress: Progress) -> ViewResult | None:
    shown = plan.current
    if shown is None or plan.timed or not plan.appendable or len(plan.sources) != 1 or not has_folders(spark):
        return None
    (source,), (state,) = plan.sources, states.values()
    before = shown.sources.get(source.name)
    if before is None or before.id != state.id or before.version > state.version:
        return None
    progress("looking at what has changed", 1, _STEPS)
    changes = changes_since(spark, source.url, before.version, state.version)
    if changes is None or not changes.is_append:
        return None
    if not changes.added:
        return _nothing_new(shown, states)
    return _append(spark, plan, shown, state, progress)


def _append(
    spark: SparkSession, plan: ViewPlan, shown: Shown, state: SourceState, progress: Progress
) -> ViewResult | None:
    (source,) = plan.sources
    progress("appending rows", 2, _STEPS)
    try:
        done = append(spark, plan, shown, state)
        confirm(spark, source, state)
    except Exception as exc:
        # Whatever else a stream ends with, a new directory is right.
        if passing_fault(exc) not in (None, FILES_GONE):
            raise
        log.info("the view is made anew: %s", fault_of(exc).message)
        return None
    reached = {source.name: SourceState(version=done.until, id=state.id)}
    if not done.rows:
        return _nothing_new(shown, reached)
    version = shown.version + 1
    rows = count_rows(spark, plan.url(shown.name), version)
    return ViewResult(
        name=shown.name, version=version, sources=reached, rows_added=done.rows, rows=rows, kind="append"
    )


def _nothing_new(shown: Shown, states: States) -> ViewResult:
    return ViewResult(
        name=shown.name, version=shown.version, sources=states, rows_added=0, rows=None, kind="none"
    )


def _made_anew(spark: SparkSession, plan: ViewPlan, states: States, progress: Progress) -> ViewResult:
    url = plan.url(plan.fresh_name)
    if has_folders(spark):
        # The name is this attempt's alone; what is there was left by one that is no more.
        delete_folder(spark, url)
    progress("writing all rows", 2, _STEPS)
    try:
        _write(spark, plan, states, url)
        for source in plan.sources:
            confirm(spark, source, states[source.name])
        rows = count_rows(spark, url, 0)
    except BaseException:
        with suppress(Exception):
            delete_folder(spark, url)
        raise
    return ViewResult(
        name=plan.fresh_name, version=0, sources=states, rows_added=rows, rows=rows, kind="full"
    )


def _write(spark: SparkSession, plan: ViewPlan, states: States, url: str) -> None:
    sources = [read_source(spark, source, states[source.name].version) for source in plan.sources]
    frame = view_frame(spark, plan.query, sources, plan.parameters)
    frame.write.format("delta").mode("error").save(url)


def _orphans(spark: SparkSession, plan: ViewPlan) -> list[str]:
    """Return what attempts have left that died before anybody was told of them."""
    if plan.orphans_before_ms is None:
        return []
    shown = (plan.current.name,) if plan.current else ()
    known = {plan.fresh_name, *shown, *plan.keep, *plan.delete}
    return [
        name
        for name in folder_names(spark, plan.root_url)
        if name not in known and newest_ms(spark, plan.url(name)) < plan.orphans_before_ms
    ]
