"""What a revocation changes in the configuration, and which storages it has to be carried to."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from gateway.adapters.catalog_principals import ANONYMOUS, BEARER
from gateway.adapters.config_edit import Values, with_values
from gateway.commands.bearer import format_time
from gateway.commands.dir_access import dir_locations
from gateway.commands.revocation.cutting import Storages
from gateway.config.faults import ConfigError, Fault
from gateway.config.nearest import nearest
from gateway.config.path import Path as Place
from gateway.config.schema import Config, RecipientConfig, StorageConfig
from gateway.domain.name import fold
from gateway.domain.principal import ALL_SHARES


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Values to set at one place of the file."""

    place: Place
    values: Values


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    recipient: RecipientConfig
    revoked_at: datetime
    keeps_access: bool
    # Storages whose credentials the recipient could have, and those of them whose are everybody's.
    reached: Sequence[StorageConfig]
    shared: Sequence[StorageConfig]
    changes: Sequence[Change]


def apply(text: str, changes: Sequence[Change]) -> str:
    """Return a configuration's text with the changes; raise ``NotEditable``."""
    for change in changes:
        text = with_values(text, change.place, change.values)
    return text


def storage_changes(config: Config, names: Container[str], revoked_at: datetime) -> Iterator[Change]:
    """Return what keeps gateways from serving anything of these storages from before the moment."""
    for number, entry in enumerate(config.storages or ()):
        if entry.name in names:
            yield Change(place=("storages", number), values={"revokedAt": format_time(revoked_at)})


async def make_plan(
    storages: Storages, name: str, chosen: Sequence[StorageConfig], revoked_at: datetime, *, keep: bool
) -> Plan:
    """Plan for the chosen storages, or for all that the recipient reaches when none is."""
    config = storages.config
    recipient = find_recipient(config, name)
    reached = chosen or _reached(config, recipient)
    shared = await storages.find_shared(reached)
    moment = format_time(revoked_at)
    values: Values = {"revokedAt": moment} if keep else {"disabled": True, "revokedAt": moment}
    own = Change(place=("recipients", config.recipients.index(recipient)), values=values)
    return Plan(
        recipient=recipient,
        revoked_at=revoked_at,
        keeps_access=keep,
        reached=reached,
        shared=shared,
        changes=(own, *storage_changes(config, {entry.name for entry in shared}, revoked_at)),
    )


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


def _reached(config: Config, recipient: RecipientConfig) -> list[StorageConfig]:
    granted = {fold(share) for share in recipient.shares}
    names = {
        one.storage
        for one in dir_locations(config)
        if ALL_SHARES in granted or fold(one.table.share) in granted
    }
    return [entry for entry in config.storages or () if entry.name in names]


def _refusal(message: str, suggestion: str = "") -> ConfigError:
    return ConfigError([Fault(path="", message=message, suggestion=suggestion)])
