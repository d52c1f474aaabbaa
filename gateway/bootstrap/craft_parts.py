"""What crafts are made of."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.config.schema import Config
from gateway.ports import Clock, StateStore, Storages
from gateway.work.places import SparkPlaces


@dataclass(frozen=True, slots=True, kw_only=True)
class CraftParts:
    """Of a worker, for a configuration."""

    config: Config
    storages: Storages
    state: StateStore
    places: SparkPlaces
    clock: Clock
