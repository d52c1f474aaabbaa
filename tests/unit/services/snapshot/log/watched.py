"""Commits of a listing that tell how often the thread that answers requests looked at them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace

from gateway.ports import LogFile
from gateway.services.snapshot.log.listing import LogListing


class WatchedCommits(Mapping[int, LogFile]):
    def __init__(self, commits: Mapping[int, LogFile]) -> None:
        self.looks = 0
        self.looks_aside = 0
        self._commits = commits
        self._thread = threading.get_ident()

    def __getitem__(self, version: int) -> LogFile:
        if threading.get_ident() == self._thread:
            self.looks += 1
        else:
            self.looks_aside += 1
        return self._commits[version]

    def __iter__(self) -> Iterator[int]:
        return iter(self._commits)

    def __len__(self) -> int:
        return len(self._commits)


def watch(listing: LogListing) -> tuple[LogListing, WatchedCommits]:
    """Return the same listing with its commits watched, and these."""
    commits = WatchedCommits(listing.commits)
    return replace(listing, commits=commits), commits
