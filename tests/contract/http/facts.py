"""What the HTTP suite knows of the gateway that it runs against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class TableFacts:
    """One table, as its catalog entry and its log have it."""

    share: str
    schema: str
    name: str
    id: str
    share_id: str
    version: int
    files: int
    # The bytes of all files together.
    size: int
    location: str
    access_modes: tuple[str, ...] = ("url",)
    auxiliary_locations: tuple[str, ...] = ()
    partition_columns: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        return f"/shares/{self.share}/schemas/{self.schema}/tables/{self.name}"


@dataclass(frozen=True, kw_only=True)
class ShareFacts:
    name: str
    id: str
    display_name: str = ""
    comment: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Gateway:
    """A running gateway. ``token`` is good for everything below, save what is called hidden."""

    # Up to and with the prefix, without a slash at the end.
    url: str
    token: str
    # Of another recipient, with the same shares.
    other_token: str
    # Was good once.
    expired_token: str
    # Of a recipient that policy has disabled.
    disabled_token: str
    # Of a recipient that may make ``slow_burst`` requests, and then none for a long time.
    slow_token: str
    slow_burst: int
    # All shares that the token sees, by name; at least three.
    shares: tuple[str, ...]
    # One with a display name, a comment and properties.
    described: ShareFacts
    # Shared without history; its share has several schemas, its schema several tables.
    plain: TableFacts
    # With so many files that they take more than one page.
    large: TableFacts
    # Shared with its history; version 0 is an earlier one.
    history: TableFacts
    # The same, of which only versions from 1 on are shared.
    bounded: TableFacts
    # With history and a change feed. Version 0 is empty, 1 adds two files, 2 and 3 change rows of one file
    # each and tell which, 4 has another description, 5 adds a file.
    change_feed: TableFacts
    # With history and rows that deletion vectors have taken, in one file at least.
    vectors: TableFacts
    dir_only: TableFacts
    both_modes: TableFacts
    # In a share that exists and that the token is not granted.
    hidden: TableFacts
    body_limit: int
    # Whether the URLs of files lead to the gateway itself.
    serves_files: bool
