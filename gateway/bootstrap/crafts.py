"""Which kinds of jobs a worker knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final

from gateway.adapters.catalog_yaml import build_index
from gateway.adapters.view_index import CatalogShowings
from gateway.bootstrap.craft_parts import CraftParts
from gateway.bootstrap.index_craft import build_index_craft
from gateway.domain.job import JobKind
from gateway.work.craft import Craft
from gateway.work.usage import UsageCraft
from gateway.work.view import Lives, ViewCraft


def build_crafts(parts: CraftParts) -> Mapping[JobKind, Craft]:
    """Return a craft for each kind of job. A changed configuration is taken up by making them all anew."""
    return {kind: build(parts) for kind, build in _BUILDERS.items()}


def _usage(parts: CraftParts) -> Craft:
    return UsageCraft(parts.config.usage, parts.places)


def _view(parts: CraftParts) -> Craft:
    config, index = parts.config, build_index(parts.config)
    return ViewCraft(
        views=CatalogShowings(lambda: index),
        state=parts.state,
        storages=parts.storages,
        lives=Lives(
            urls=timedelta(seconds=config.pre_signed_url_timeout_seconds), runs=config.pipeline.job_timeout
        ),
        clock=parts.clock,
    )


_BUILDERS: Final[Mapping[JobKind, Callable[[CraftParts], Craft]]] = {
    JobKind.USAGE: _usage,
    JobKind.INDEX: build_index_craft,
    JobKind.VIEW: _view,
}
