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
from pathlib import Path
from typing import Final

from gateway.adapters.config_edit import Changed, ConfigText, NotEditable, replace_file, snippet
from gateway.adapters.storage_check import FindVendor
from gateway.adapters.vendors import find_vendor
from gateway.commands.bearer import format_time
from gateway.commands.dir_access import choose_storages
from gateway.commands.revocation.cache import DropCached, Dropped, drop_cached
from gateway.commands.revocation.cutting import Outcome, Storages
from gateway.commands.revocation.draft import check_text
from gateway.commands.revocation.event import to_line
from gateway.commands.revocation.plan import Change, Plan, apply, make_plan, storage_changes
from gateway.config.faults import ConfigError, Fault
from gateway.config.load import load
from gateway.config.schema import Config
from gateway.ports import Clock, utcnow

HELP = "cut a recipient off at once, and what it was given as far as the stores allow"

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
     out already, or says what is left to do and how long it lives. Where one has done so, its entry
     gets `revokedAt`: some refuse everybody's credentials, and others must be issued anew.

A file that is not yours to write (a ConfigMap): --print gives the new one, and --no-edit does steps 2
and 3 once it is in force. After a leak that is not the recipient's fault: --keep-access.

The exit status is 0 when everything is cut off, 1 when something that is out still lives or a step is
left to you, 2 when there is no such recipient or the configuration has faults, and 3 when the file was
not changed and nothing else was done. One line of JSON on standard error tells what was done.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument("recipient", metavar="RECIPIENT", help="the recipient's name in the configuration")
    parser.add_argument(
        "--config", metavar="FILE", required=True, type=Path, help="the configuration, which is changed"
    )
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
        chosen = choose_storages(config, self.args.storage) if self.args.storage else []
        plan = asyncio.run(
            make_plan(
                storages, self.args.recipient, chosen, _next_second(self.clock()), keep=self.args.keep_access
            )
        )
        if self.args.dry_run:
            print(_describe(plan, edit=not self.args.no_edit))
            return 0
        if self.args.print:
            return self._print(plan)
        self._confirm(plan)
        if not self.args.no_edit and not self._edit(plan.changes):
            return NOT_EDITED
        if self.args.no_edit and not plan.keeps_access and not plan.recipient.disabled:
            _complain(f"{self.args.config} does not disable {plan.recipient.name}: it may still ask for more")
        dropped, outcomes = asyncio.run(self._cut(storages, plan))
        return self._finish(config, plan, dropped, outcomes)

    def _print(self, plan: Plan) -> int:
        try:
            text, _ = self._edited(plan.changes)
        except NotEditable as exc:
            _complain(f"{exc}. Make this change by hand:\n\n{_lines(plan.changes)}")
            return NOT_EDITED
        sys.stdout.write(text)
        _complain(f"once this is in force everywhere: {_again(self.args)}")
        return 0

    def _confirm(self, plan: Plan) -> None:
        if self.args.yes:
            return
        if not sys.stdin.isatty():
            raise ConfigError([Fault(path="", message="give --yes to revoke without being asked")])
        print(_describe(plan, edit=not self.args.no_edit))
        if input("\nGo on? [y/N] ").strip().lower() not in {"y", "yes"}:
            raise KeyboardInterrupt

    def _edit(self, changes: Sequence[Change]) -> bool:
        """Change the file, or say how; tell whether it was changed."""
        try:
            text, old = self._edited(changes)
            replace_file(old, text)
        except OSError as exc:
            return self._leave(changes, f"{self.args.config} cannot be written: {exc.strerror}")
        except (NotEditable, Changed) as exc:
            return self._leave(changes, str(exc))
        print(f"{self.args.config} is changed, which gateways see within seconds:\n\n{_lines(changes)}\n")
        return True

    def _leave(self, changes: Sequence[Change], reason: str) -> bool:
        _complain(
            f"{reason}. Nothing more was done. Make this change where the file is kept, by hand or from what "
            f"--print gives:\n\n{_lines(changes)}\n\nand once it is in force: {_again(self.args)}"
        )
        return False

    def _edited(self, changes: Sequence[Change]) -> tuple[str, ConfigText]:
        """Return the new text, which gateways will take up, and the old one."""
        old = ConfigText.read(self.args.config)
        text = apply(old.text, changes)
        check_text(text, self.env)
        return text, old

    async def _cut(self, storages: Storages, plan: Plan) -> tuple[Dropped, list[Outcome]]:
        name = plan.recipient.name
        dropped = await self.drop(storages.config, name, [entry.name for entry in plan.shared])
        # Whoever may go on asking must not be refused what is issued from now on.
        issued_before = plan.revoked_at if plan.keeps_access else plan.revoked_at + _RELOAD
        return dropped, await storages.cut_off(plan.reached, name, issued_before)

    def _finish(self, config: Config, plan: Plan, dropped: Dropped, outcomes: Sequence[Outcome]) -> int:
        print(f"cache: {dropped.words}")
        for line in _results(plan, outcomes):
            print(line)
        expiry = timedelta(seconds=config.pre_signed_url_timeout_seconds)
        print(f"URLs: those handed out for single files live until {format_time(plan.revoked_at + expiry)}")
        done = dropped.done and all(outcome.done for outcome in outcomes)
        done = self._mark_again(config, outcomes) and done
        print(_closing(plan, is_done=done))
        edited = not self.args.no_edit
        print(to_line(plan, outcomes, is_edited=edited, is_dropped=dropped.done), file=sys.stderr)
        return 0 if done else INCOMPLETE

    def _mark_again(self, config: Config, outcomes: Sequence[Outcome]) -> bool:
        """See that gateways issue anew where a store refuses from now on; tell whether that is so."""
        # Some refuse everybody's: what was issued since the first change would be kept and opens nothing.
        names = {outcome.storage for outcome in outcomes if outcome.done}
        changes = list(storage_changes(config, names, _next_second(self.clock())))
        return self.args.no_edit or not changes or self._edit(changes)


def _describe(plan: Plan, *, edit: bool) -> str:
    storages = ", ".join(f"{entry.name} ({entry.vendor})" for entry in plan.reached) or "none"
    lines = [f"to change in the configuration:\n\n{_lines(plan.changes)}\n"] if edit else []
    lines.append(f"to drop from the cache: what was issued to {plan.recipient.name}")
    lines.append(f"to cut off in storages: {storages}")
    if plan.shared:
        names = ", ".join(entry.name for entry in plan.shared)
        lines.append(f"everybody's credentials are one in: {names}; other recipients have to ask again there")
    return "\n".join(lines)


def _lines(changes: Sequence[Change]) -> str:
    return "\n".join(snippet(change.place, change.values) for change in changes)


def _results(plan: Plan, outcomes: Sequence[Outcome]) -> list[str]:
    if not outcomes:
        return [f"storages: none issues credentials for a table of {plan.recipient.name}"]
    lines = []
    for outcome in outcomes:
        state = "cut off" if outcome.done else f"NOT cut off, lives until {format_time(outcome.lives_until)}"
        lines.append(f"{outcome.storage} ({outcome.vendor}): {state}: {outcome.words}")
    return lines


def _closing(plan: Plan, *, is_done: bool) -> str:
    name = plan.recipient.name
    if not is_done:
        return f"{name} is not cut off from everything: see above for what is left to do"
    if plan.keeps_access:
        return f"what was issued to {name} is cut off; {name} may ask for more"
    return f"{name} is cut off; to let it in again, remove `disabled` from its entry and keep `revokedAt`"


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
