"""What a revocation changes in the configuration, and which storages it has to be carried to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from gateway.adapters.catalog_principals import ANONYMOUS, BEARER
from gateway.adapters.catalog_yaml import build_index
from gateway.commands.dir_access import dir_locations
from gateway.commands.revocation.change import Change
from gateway.commands.revocation.cutting import Storages, Traits
from gateway.config.faults import ConfigError, Fault
from gateway.config.nearest import nearest
from gateway.config.schema import Config, RecipientConfig, StorageConfig
from gateway.domain.name import TableName, fold
from gateway.domain.principal import ALL_SHARES
from gateway.domain.table import AccessMode


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the operator asks for, and when."""

    recipient: str
    # The moment of this run, which nothing that was issued so far comes after.
    asked_at: datetime
    # Storages to cut off instead of all that the recipient reaches.
    chosen: Sequence[StorageConfig] = ()
    keeps_access: bool = False
    # Whether the file is changed by this run, and not by somebody else before it.
    edits: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    recipient: RecipientConfig
    asked_at: datetime
    # From what moment on nothing is issued to the recipient, or nothing that is kept: earlier than this run
    # where the file says so already.
    revoked_at: datetime
    keeps_access: bool
    # Storages that are asked to cut the recipient off, and those that it reaches and that are not asked.
    asked: Sequence[Traits]
    not_asked: Sequence[str]
    # Other storages, whose credentials may end together with those of the asked.
    others: Sequence[Traits]
    # Whether URLs of single files may be out.
    has_urls: bool
    # What the file does not say yet.
    changes: Sequence[Change]

    @property
    def shared(self) -> list[str]:
        """Return those of the storages whose credentials are everybody's."""
        return [one.entry.name for one in self.asked if not one.names_recipients]


async def make_plan(storages: Storages, wish: Wish) -> Plan:
    """Plan for the chosen storages, or for all that the recipient reaches when none is."""
    config = storages.config
    recipient = find_recipient(config, wish.recipient)
    reached = _reached(config, recipient)
    asked = await storages.survey(wish.chosen or reached)
    names = {one.entry.name for one in asked}
    before = _moment_before(config, recipient, wish)
    revoked_at = before or wish.asked_at
    own = Change(entry=recipient, revoked_at=revoked_at, disables=not wish.keeps_access)
    return Plan(
        recipient=recipient,
        asked_at=wish.asked_at,
        revoked_at=revoked_at,
        keeps_access=wish.keeps_access,
        asked=asked,
        not_asked=[entry.name for entry in reached if entry.name not in names],
        others=await _others(storages, asked),
        has_urls=_has_urls(config, recipient),
        changes=(*([] if before else [own]), *_unmarked(asked, revoked_at)),
    )


def storage_changes(config: Config, names: set[str], revoked_at: datetime) -> list[Change]:
    """Return what keeps gateways from serving anything of these storages from before the moment."""
    return [
        Change(entry=entry, revoked_at=revoked_at) for entry in config.storages or () if entry.name in names
    ]


def cut_off_before(recipient: RecipientConfig, now: datetime) -> datetime | None:
    """Return when a recipient was cut off that is cut off already: since then nothing was issued to it."""
    moment = recipient.revoked_at
    return moment if recipient.disabled and moment is not None and moment <= now else None


def find_recipient(config: Config, name: str) -> RecipientConfig:
    """Return the recipient of this name, in whatever case; raise ``ConfigError`` when there is none."""
    for recipient in config.recipients:
        if fold(recipient.name) == fold(name):
            return recipient
    if fold(name) == BEARER and config.authorization is not None:
        raise _refusal("whoever has authorization.bearerToken has no entry: put another token in its place")
    if fold(name) == ANONYMOUS and config.allow_anonymous:
        raise _refusal("everybody may read everything: remove allowAnonymous")
    names = [recipient.name for recipient in config.recipients]
    raise _refusal(f"there is no recipient {name!r} in the configuration", nearest(name, names))


def _moment_before(config: Config, recipient: RecipientConfig, wish: Wish) -> datetime | None:
    """Return the moment that the file names already, where it serves for this run."""
    if not wish.keeps_access:
        return cut_off_before(recipient, wish.asked_at)
    moment = recipient.revoked_at
    if wish.edits or moment is None:
        return None
    # What was issued before an older one has ended by itself: that moment was for another leak.
    return moment if wish.asked_at - _longest_life(config) <= moment <= wish.asked_at else None


def _longest_life(config: Config) -> timedelta:
    lives = [entry.credential_life for entry in config.storages or ()]
    return max(config.credentials.life, *filter(None, lives), timedelta(0))


def _unmarked(asked: Sequence[Traits], revoked_at: datetime) -> list[Change]:
    """Return what is to be marked of the storages whose credentials are everybody's."""
    return [
        Change(entry=one.entry, revoked_at=revoked_at)
        for one in asked
        if not one.names_recipients and (one.entry.revoked_at is None or one.entry.revoked_at < revoked_at)
    ]


async def _others(storages: Storages, asked: Sequence[Traits]) -> list[Traits]:
    if not any(one.everybody for one in asked):
        return []
    names = {one.entry.name for one in asked}
    return await storages.survey([one for one in storages.config.storages or () if one.name not in names])


def _reached(config: Config, recipient: RecipientConfig) -> list[StorageConfig]:
    names = {one.storage for one in dir_locations(config) if _is_granted(recipient, one.table)}
    return [entry for entry in config.storages or () if entry.name in names]


def _has_urls(config: Config, recipient: RecipientConfig) -> bool:
    return any(
        AccessMode.URL in table.access_modes and _is_granted(recipient, table.name)
        for table in build_index(config).tables.values()
    )


def _is_granted(recipient: RecipientConfig, table: TableName) -> bool:
    granted = {fold(share) for share in recipient.shares}
    return ALL_SHARES in granted or fold(table.share) in granted


def _refusal(message: str, suggestion: str = "") -> ConfigError:
    return ConfigError([Fault(path="", message=message, suggestion=suggestion)])
