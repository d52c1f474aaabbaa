"""Storages that are simply there."""

from __future__ import annotations

from gateway.domain.location import Location
from gateway.ports import Storage


class FakeStorages:
    """Keeps which locations it was asked for."""

    def __init__(self, *storages: Storage) -> None:
        self.asked: list[Location] = []
        self.storages = storages

    def find(self, location: Location) -> Storage | None:
        self.asked.append(location)
        covering = [storage for storage in self.storages if storage.prefix.covers(location)]
        return max(covering, key=lambda storage: len(storage.prefix.path), default=None)
