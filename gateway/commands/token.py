"""``sluice token``: make a recipient's bearer token, its hash and its profile file."""

from __future__ import annotations

import argparse
import getpass
import re
import sys
import textwrap
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import yaml

from gateway.commands.bearer import format_time, hash_of, new_token, profile_of, write_private
from gateway.commands.config_argument import add_config_argument
from gateway.config.checks.http import find_url_fault
from gateway.config.faults import ConfigError, Fault
from gateway.config.load import read
from gateway.config.nearest import NEAR_MISS, nearest
from gateway.config.schema import Config
from gateway.config.value import parse_moment, parse_span
from gateway.domain.name import fold

_UNSAFE_IN_FILE_NAME: Final = re.compile(r"[^A-Za-z0-9._-]+")


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    new = actions.add_parser("new", help="make a token", description="Make a token; it is shown once.")
    new.add_argument("recipient", metavar="RECIPIENT", help="the name of the recipient")
    add_config_argument(new, "the configuration, whose publicUrl the profile names", required=False)
    new.add_argument(
        "--expires",
        metavar="SPAN|DATE",
        type=_expiry,
        help="when the token ends: a span such as 90d, a date such as 2030-01-31, or a time with its zone; "
        "without it, never",
    )
    new.add_argument(
        "--profile", metavar="PATH", type=Path, help="the profile file to write (default: RECIPIENT.share)"
    )
    new.add_argument("--no-profile", action="store_true", help="write no profile file")
    new.add_argument(
        "--endpoint", metavar="URL", help="what recipients put before /shares (default: publicUrl of FILE)"
    )
    new.add_argument("--force", action="store_true", help="replace a profile file that exists")
    new.set_defaults(action=_new)
    hash_ = actions.add_parser(
        "hash",
        help="print the hash of a token that you have",
        description="Read a token from standard input and print the line with its hash.",
    )
    hash_.set_defaults(action=_hash)


def run(args: argparse.Namespace, env: Mapping[str, str]) -> int:
    status: int = args.action(args, env)
    return status


def _new(args: argparse.Namespace, env: Mapping[str, str]) -> int:
    config = _read_config(args.config, env)
    expires_at = _expires_at(args.expires, datetime.now(UTC))
    token = new_token()
    profile = None if args.no_profile else args.profile or Path(_file_name(args.recipient))
    if profile is not None:
        endpoint = _endpoint(args, config)
        _write(profile, profile_of(endpoint, token, expires_at), replace=args.force)
    print(f"The token of {args.recipient}, which is not shown again:\n\n  {token}\n")
    print(_snippet(args.recipient, token, expires_at, config))
    if meant := _known_like(args.recipient, config):
        print(
            f"sluice: {args.config} has no recipient {args.recipient!r} yet; did you mean {meant}?",
            file=sys.stderr,
        )
    if profile is not None:
        print(f"\nThe profile file for {args.recipient}, which holds the token too:\n\n  {profile}")
    return 0


def _hash(_args: argparse.Namespace, _env: Mapping[str, str]) -> int:
    token = getpass.getpass("token: ") if sys.stdin.isatty() else sys.stdin.read()
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise _refusal("give one token on standard input; a token is ASCII without spaces")
    print(f"- hash: {hash_of(token)}")
    return 0


def _read_config(file: Path | None, env: Mapping[str, str]) -> Config | None:
    if file is None:
        return None
    draft = read(file, env)
    # A configuration that waits for its first token has this fault until the token is in it.
    if any(fault.path != "recipients" for fault in draft.faults):
        print(f"sluice: {file} has faults, see: sluice check-config --config {file}", file=sys.stderr)
    return draft.config


def _expiry(text: str) -> timedelta | datetime:
    try:
        # A bare number would be seconds.
        return parse_moment(text) if "-" in text or text.isdigit() else parse_span(text)
    except ValueError:
        message = f"{text!r} is neither a span such as 90d nor a date such as 2030-01-31"
        raise argparse.ArgumentTypeError(message) from None


def _expires_at(expiry: timedelta | datetime | None, now: datetime) -> datetime | None:
    moment = (now + expiry).replace(microsecond=0) if isinstance(expiry, timedelta) else expiry
    if moment is not None and moment <= now:
        raise _refusal("--expires is in the past")
    return moment


def _endpoint(args: argparse.Namespace, config: Config | None) -> str:
    endpoint: str = args.endpoint or (config.public_url if config else "")
    if not endpoint:
        raise _refusal(
            "a profile needs the URL that recipients use: set publicUrl in the configuration and give "
            "--config FILE, or give --endpoint URL; --no-profile writes none"
        )
    if message := find_url_fault(endpoint):
        raise _refusal(f"--endpoint {message}" if args.endpoint else f"publicUrl {message}")
    return endpoint.rstrip("/")


def _file_name(recipient: str) -> str:
    return f"{_UNSAFE_IN_FILE_NAME.sub('-', recipient).strip('.-') or 'recipient'}.share"


def _write(file: Path, content: str, *, replace: bool) -> None:
    try:
        write_private(file, content, replace=replace)
    except FileExistsError:
        raise _refusal(f"{file} exists; give another --profile, or --force to replace it") from None
    except OSError as exc:
        raise _refusal(f"{file} cannot be written: {exc.strerror}") from exc


def _snippet(recipient: str, token: str, expires_at: datetime | None, config: Config | None) -> str:
    entry = {"hash": hash_of(token)}
    if expires_at is not None:
        entry["expires"] = format_time(expires_at)
    names = [fold(known.name) for known in config.recipients] if config else []
    if fold(recipient) in names:
        place = f"recipients[{names.index(fold(recipient))}].tokens"
        return f"Add to {place} in the configuration:\n\n{_yaml([entry], indent=6)}"
    whole = {"name": recipient, "tokens": [entry], "shares": ["NAME OF A SHARE"]}
    return f"Add to recipients in the configuration:\n\n{_yaml([whole], indent=2)}"


def _known_like(recipient: str, config: Config | None) -> str:
    """Return a recipient whose name was perhaps misspelt; none for one that is known, or like no other."""
    names = [known.name for known in config.recipients] if config else []
    return "" if fold(recipient) in map(fold, names) else nearest(recipient, names, NEAR_MISS)


def _yaml(value: object, *, indent: int) -> str:
    """Return lines that can be pasted as they are, where keys are indented by two."""
    text = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=200)
    return textwrap.indent(text.rstrip(), " " * indent)


def _refusal(message: str) -> ConfigError:
    return ConfigError([Fault(path="", message=message)])
