"""``sluice check-config``: what a configuration would serve, or everything that is wrong with it."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from gateway.adapters.config_check import read_whole
from gateway.adapters.storage_check import warn_of_storages
from gateway.adapters.storages import OpenStorages, StorageProcess
from gateway.adapters.view_check import ViewCheck, check_view_columns
from gateway.commands.config_argument import add_config_argument
from gateway.commands.fault_list import list_faults
from gateway.config.faults import ConfigError, Fault
from gateway.config.load import Loaded, locate
from gateway.config.purpose import has_keys, runs_everything
from gateway.config.schema import (
    Config,
    RecipientConfig,
    ServiceName,
    ShareConfig,
    StorageConfig,
    TableConfig,
    ViewConfig,
    reads_tables,
)
from gateway.domain.table import AccessMode
from gateway.errors import GatewayError

_MOST_LISTED: Final = 20
_MOST_NAMED: Final = 5
_SOON: Final = timedelta(days=14)
_INDENT: Final = " " * 12


_EPILOG: Final = """\
`sluice check-config FILE` is the same as `sluice check-config --config FILE`.

exit status:
  0  the configuration is fine; there may be warnings
  1  it has faults, all of which are listed
  2  there is no such file, or wrong usage
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    add_config_argument(parser, "the configuration")


def run(args: argparse.Namespace, env: Mapping[str, str]) -> int:
    file: Path = args.config
    try:
        draft = read_whole(file, env)
    except ConfigError as exc:
        if not file.exists():
            raise
        _print_faults(file, exc.faults)
        return 1
    if draft.faults or draft.config is None:
        _print_faults(file, draft.faults)
        return 1
    checked = asyncio.run(_check_views(draft.config))
    if checked.faults:
        _print_faults(file, locate(checked.faults, file))
        return 1
    loaded = Loaded(config=draft.config, warnings=(*draft.warnings, *checked.warnings))
    for line in summarize(loaded, file, datetime.now(UTC)):
        print(line)
    return 0


def summarize(loaded: Loaded, file: Path, now: datetime) -> Iterator[str]:
    """Return what would be served, line by line."""
    config = loaded.config
    yield f"{file} is fine."
    yield ""
    yield from _process(config)
    yield from _list("shares", _count_tables(config.shares), [_share(share) for share in config.shares])
    recipients = [_recipient(recipient, now) for recipient in config.recipients]
    yield from _list("recipients", _who(config), recipients)
    yield from _list("storages", _where(config), [_storage(entry) for entry in config.storages or ()])
    warnings = [*loaded.warnings, *warn_of_storages(config)]
    warnings += [*_token_warnings(config, now), *_revocation_warnings(config, now)]
    if warnings:
        yield from _list("warnings", f"{len(warnings):,}", warnings)


async def _check_views(config: Config) -> ViewCheck:
    """Look at the tables that views read, where the process that the file is for may do so."""
    if not reads_tables(config):
        return ViewCheck()
    try:
        async with OpenStorages(config, StorageProcess(public_url=config.public_url)) as storages:
            return await check_view_columns(config, storages)
    except (GatewayError, OSError) as exc:
        return ViewCheck(warnings=(f"the columns of views are not checked: {exc}",))


def _print_faults(file: Path, faults: Sequence[Fault]) -> None:
    for line in list_faults(file, faults):
        print(line)


def _process(config: Config) -> Iterator[str]:
    services = config.services
    yield _line("services", f"{', '.join(services.run)} in this process")
    if ServiceName.EDGE in services.run:
        for name, targets in services.addresses.items():
            if name not in services.run:
                yield f"{_INDENT}{name} at {targets if isinstance(targets, str) else ', '.join(targets)}"
        yield _line("REST", f"{_local_url(config)}, for recipients {config.public_url or 'the same'}")
    if services.listen:
        yield _line("gRPC", f"{services.listen}{' with mutual TLS' if services.tls else ''}")
    yield _line("metrics", f"http://{config.metrics.listen}/metrics")
    yield _line("keys", _keys(config))


def _local_url(config: Config) -> str:
    scheme = "https" if config.ssl else "http"
    host = f"[{config.host}]" if ":" in config.host else config.host
    return f"{scheme}://{host}:{config.port}{config.endpoint.rstrip('/')}"


def _keys(config: Config) -> str:
    if has_keys(config.keys) or not runs_everything(config.services.run):
        return "from the configuration"
    return f"kept in {config.state_dir or 'the state directory'}, made when first needed"


def _who(config: Config) -> str:
    if config.allow_anonymous:
        return "everybody may read everything (allowAnonymous)"
    count = f"{len(config.recipients):,}"
    if config.authorization is None:
        return count
    return f"{count}, and whoever has authorization.bearerToken, for every share"


def _where(config: Config) -> str:
    if config.storages is None:
        return "none named: locations are read with each vendor's standard credentials, for url access only"
    return f"{len(config.storages):,}"


def _count_tables(shares: Sequence[ShareConfig]) -> str:
    schemas = [schema for share in shares for schema in share.schemas]
    tables = sum(len(schema.tables) for schema in schemas)
    views = sum(len(schema.views) for schema in schemas)
    counted = f"{len(shares):,} with {_count(len(schemas), 'schema')} and {_count(tables, 'table')}"
    return f"{counted}, {_count(views, 'view')}" if views else counted


def _share(share: ShareConfig) -> str:
    tables: list[TableConfig | ViewConfig] = []
    for schema in share.schemas:
        tables += [*schema.tables, *schema.views]
    modes = {
        mode for table in tables for mode in table.access_modes or share.access_modes or (AccessMode.URL,)
    }
    access = f" ({', '.join(mode for mode in AccessMode if mode in modes)})" if modes else ""
    counts = f"{_count(len(share.schemas), 'schema')}, {_count(len(tables), 'table')}"
    return f"{_shown(share.name)}: {counts}{access}"


def _recipient(recipient: RecipientConfig, now: datetime) -> str:
    valid = [token for token in recipient.tokens if token.expires is None or token.expires > now]
    parts = [_count(len(valid), "valid token")]
    if recipient.identities:
        parts.append(
            "1 identity" if len(recipient.identities) == 1 else f"{len(recipient.identities):,} identities"
        )
    if "*" in recipient.shares:
        parts.append("every share")
    else:
        parts.append(_cut_names(recipient.shares) if recipient.shares else "no share")
    state = " (disabled)" if recipient.disabled else ""
    return f"{_shown(recipient.name)}{state}: {', '.join(parts)}"


def _storage(storage: StorageConfig) -> str:
    return f"{storage.name}: {storage.prefix} ({storage.vendor})"


def _token_warnings(config: Config, now: datetime) -> Iterator[str]:
    for number, recipient in enumerate(config.recipients):
        for index, token in enumerate(recipient.tokens):
            where = f"recipients[{number}].tokens[{index}]"
            if token.expires is None or token.expires > now + _SOON:
                continue
            verb = "expired" if token.expires <= now else "expires soon,"
            yield f"{where}: a token of {_shown(recipient.name)} {verb} at {token.expires:%Y-%m-%d %H:%M} UTC"


def _revocation_warnings(config: Config, now: datetime) -> Iterator[str]:
    moments = [(f"recipients[{number}]", entry.revoked_at) for number, entry in enumerate(config.recipients)]
    moments += [
        (f"storages[{number}]", entry.revoked_at) for number, entry in enumerate(config.storages or ())
    ]
    for where, moment in moments:
        if moment is not None and moment > now:
            yield (
                f"{where}.revokedAt: lies in the future, at {moment:%Y-%m-%d %H:%M} UTC: "
                "until then it revokes what is issued, too"
            )


def _list(title: str, summary: str, items: Sequence[str]) -> Iterator[str]:
    yield _line(title, summary)
    for item in items[:_MOST_LISTED]:
        yield f"{_INDENT}{item}"
    if len(items) > _MOST_LISTED:
        yield f"{_INDENT}… and {len(items) - _MOST_LISTED:,} more"


def _cut_names(names: Sequence[str]) -> str:
    shown = ", ".join(_shown(name) for name in names[:_MOST_NAMED])
    more = len(names) - _MOST_NAMED
    return f"{shown} … and {more:,} more" if more > 0 else shown


def _line(title: str, text: str) -> str:
    return f"{title:<{len(_INDENT)}}{text}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _shown(name: str) -> str:
    return name if name.isprintable() else repr(name)
