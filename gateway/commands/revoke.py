"""``sluice revoke``: the emergency cut-off of a recipient."""

from __future__ import annotations

import argparse
import asyncio
import math
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from gateway.adapters.config_edit import Changed, ConfigText, NotEditable, replace_file
from gateway.adapters.storage_check import FindVendor
from gateway.adapters.vendors import find_vendor
from gateway.commands.config_argument import add_config_argument
from gateway.commands.dir_access import choose_storages
from gateway.commands.revocation.cache import DropCached, Dropped, drop_cached
from gateway.commands.revocation.change import Change, to_text, with_changes
from gateway.commands.revocation.cutting import Outcome, Storages, hit_with
from gateway.commands.revocation.event import to_line
from gateway.commands.revocation.plan import Plan, Wish, make_plan, storage_changes
from gateway.commands.revocation.result import Result, describe, earlier
from gateway.config.faults import ConfigError, Fault
from gateway.config.load import load
from gateway.config.schema import Config
from gateway.ports import Clock, utcnow

INCOMPLETE: Final = 1
NOT_EDITED: Final = 3
# Until a running gateway has read the file, it may still issue: that is cut off too.
_RELOAD: Final = timedelta(minutes=1)
_EPILOG: Final = """\
In this order:
  1. the configuration: the recipient's entry gets `disabled: true` and `revokedAt`; storages whose
     credentials name nobody get `revokedAt` too, as everybody's are one. Only these lines change. A
     running gateway takes the file up within seconds, and serves nothing from before that moment.
  2. the cache: what Redis holds for the recipient is dropped, where Redis is configured.
  3. the stores: each storage whose credentials the recipient could have is asked to refuse what is
     out already, or says what is left to do and how long it lives. One that refuses everybody's then
     gets `revokedAt`, as does any other of the same account or parent key: they must issue anew.

A file that is not yours to write (a ConfigMap): --print gives the new one, and --no-edit does steps 2
and 3 once it is in force. After a leak that is not the recipient's fault: --keep-access.

The exit status is 0 when everything is cut off, 1 when something that is out still lives, as URLs of
single files do to their end, or a step is left to you, 2 when there is no such recipient or the
configuration has faults, and 3 when the file was not changed and nothing else was done. One line of JSON
on standard error tells what was done.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    # As people write it, where argparse would put the name last.
    parser.usage = "%(prog)s RECIPIENT --config FILE [options]"
    parser.add_argument("recipient", metavar="RECIPIENT", help="the recipient's name in the configuration")
    add_config_argument(parser, "the configuration, which is changed")
    parser.add_argument(
        "--storage",
        metavar="NAME",
        action="append",
        default=[],
        help="cut off in this storage only, whether or not the recipient's shares have tables there now; "
        "repeatable",
    )
    parser.add_argument(
        "--keep-access", action="store_true", help="revoke what is out, but let the recipient ask again"
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--print", action="store_true", help="print the new configuration, and do nothing else")
    how.add_argument("--no-edit", action="store_true", help="leave the configuration alone")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def run(args: argparse.Namespace, env: Mapping[str, str]) -> int:
    return Revocation(args=args, env=env).run()


@dataclass(frozen=True, slots=True, kw_only=True)
class Revocation:
    """One run of the command, with what it needs from the world."""

    args: argparse.Namespace
    env: Mapping[str, str]
    find: FindVendor = find_vendor
    drop: DropCached = drop_cached
    clock: Clock = utcnow

    def run(self) -> int:
        config = load(self.args.config, self.env).config
        storages = Storages(config=config, find=self.find)
        plan = asyncio.run(make_plan(storages, self._wish(config)))
        if self.args.dry_run:
            print(describe(plan, edit=self._edits))
            return 0
        if self.args.print:
            return self._print(plan)
        self._confirm(plan)
        if self._edits and plan.revoked_at < plan.asked_at:
            print(earlier(plan))
        if self._edits and plan.changes and not self._edit(plan.changes):
            return NOT_EDITED
        dropped, outcomes = asyncio.run(self._cut(storages, plan))
        return self._finish(config, plan, dropped, outcomes)

    @property
    def _edits(self) -> bool:
        return not self.args.no_edit

    def _wish(self, config: Config) -> Wish:
        return Wish(
            recipient=self.args.recipient,
            asked_at=_next_second(self.clock()),
            chosen=choose_storages(config, self.args.storage) if self.args.storage else (),
            keeps_access=self.args.keep_access,
            edits=self._edits,
        )

    def _print(self, plan: Plan) -> int:
        try:
            text = with_changes(ConfigText.read(self.args.config), plan.changes, self.env)
        except (NotEditable, Changed) as exc:
            _complain(f"{exc}. Make this change by hand:\n\n{to_text(plan.changes)}")
            return NOT_EDITED
        sys.stdout.write(text)
        _complain(f"once this is in force everywhere: {_again(self.args)}")
        return 0

    def _confirm(self, plan: Plan) -> None:
        if self.args.yes:
            return
        if not sys.stdin.isatty():
            raise ConfigError([Fault(path="", message="give --yes to revoke without being asked")])
        print(describe(plan, edit=self._edits))
        # Not as input's own prompt: that goes to standard error, which may be kept in a file.
        print("\nGo on? [y/N] ", end="", flush=True)
        if input().strip().lower() not in {"y", "yes"}:
            raise KeyboardInterrupt

    def _edit(self, changes: Sequence[Change]) -> bool:
        """Change the file, or say how; tell whether it was changed."""
        try:
            self._change(changes)
        except OSError as exc:
            return self._leave(changes, f"{self.args.config} cannot be written: {exc.strerror}")
        except NotEditable as exc:
            return self._leave(changes, str(exc))
        except Changed as exc:
            _complain(f"{exc}. Nothing was done")
            return False
        return True

    def _change(self, changes: Sequence[Change]) -> None:
        old = ConfigText.read(self.args.config)
        replace_file(old, with_changes(old, changes, self.env))
        file = self.args.config
        print(f"{file} is changed, which gateways see within seconds:\n\n{to_text(changes)}\n")

    def _leave(self, changes: Sequence[Change], reason: str) -> bool:
        _complain(
            f"{reason}. Nothing more was done. Make this change where the file is kept, by hand or from what "
            f"--print gives:\n\n{to_text(changes)}\n\nand once it is in force: {_again(self.args)}"
        )
        return False

    async def _cut(self, storages: Storages, plan: Plan) -> tuple[Dropped, list[Outcome]]:
        name = plan.recipient.name
        dropped = await self.drop(storages.config, name, plan.shared)
        # The stores are asked as of now: it costs nothing, and holds even if somebody let it in meanwhile.
        # Whoever may go on asking must not be refused what was issued since, which gateways keep.
        issued_before = plan.revoked_at if plan.keeps_access else plan.asked_at + _RELOAD
        return dropped, await storages.cut_off(plan.asked, name, issued_before, self._last_issue(plan))

    def _last_issue(self, plan: Plan) -> datetime:
        """Return until when a gateway may have handed something out that is to be cut off."""
        if plan.keeps_access:
            return plan.revoked_at
        # A file that others put in force did not hold from the moment that it names.
        return (plan.revoked_at if self._edits else plan.asked_at) + _RELOAD

    def _finish(self, config: Config, plan: Plan, dropped: Dropped, outcomes: Sequence[Outcome]) -> int:
        expiry = timedelta(seconds=config.pre_signed_url_timeout_seconds)
        result = Result(
            plan=plan,
            is_edited=self._edits and bool(plan.changes),
            dropped=dropped,
            outcomes=outcomes,
            urls_until=self._last_issue(plan) + expiry if plan.has_urls else None,
            lacking=self._lacking(plan, outcomes),
        )
        for line in result.lines():
            print(line)
        print(result.closing())
        print(to_line(result), file=sys.stderr)
        return 0 if result.done else INCOMPLETE

    def _lacking(self, plan: Plan, outcomes: Sequence[Outcome]) -> list[Change]:
        """Return what the file still does not say."""
        again = self._mark_again(plan, outcomes)
        names = {change.entry.name for change in again}
        first = () if self._edits else plan.changes
        return [
            *(one for one in first if one.section == "recipients" or one.entry.name not in names),
            *again,
        ]

    def _mark_again(self, plan: Plan, outcomes: Sequence[Outcome]) -> list[Change]:
        """See that gateways issue anew where a store refuses everybody's; return what could not be marked."""
        names = hit_with([*plan.asked, *plan.others], [one.storage for one in outcomes if one.done])
        if not names:
            return []
        # What was issued since the first change would be kept, and opens nothing.
        moment = _next_second(self.clock())
        try:
            changes = storage_changes(load(self.args.config, self.env).config, names, moment)
            if not self._edits:
                return changes
            self._change(changes)
        except (OSError, NotEditable, Changed, ConfigError) as exc:
            _complain(f"{', '.join(sorted(names))} could not be given another revokedAt: {exc}")
            entries = [one.entry for one in (*plan.asked, *plan.others) if one.entry.name in names]
            return [Change(entry=entry, revoked_at=moment) for entry in entries]
        return []


def _again(args: argparse.Namespace) -> str:
    """Return the command that does the rest once the file was changed in another way."""
    words = ["sluice", "revoke", args.recipient, "--config", str(args.config), "--no-edit", "--yes"]
    words += ["--keep-access"] if args.keep_access else []
    words += [word for name in args.storage for word in ("--storage", name)]
    return shlex.join(words)


def _next_second(now: datetime) -> datetime:
    """Return a moment that the file can hold and that nothing issued so far comes after."""
    return datetime.fromtimestamp(math.floor(now.timestamp()) + 1, UTC)


def _complain(message: str) -> None:
    print(f"sluice revoke: {message}", file=sys.stderr)
