"""Cuts off sessions that are out already: the role denies those of a recipient that began before a moment."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import unquote

from botocore.exceptions import BotoCoreError, ClientError

from gateway.ports import Clock, Cut
from vendors.aws.config import AwsOptions, RoleOptions
from vendors.sts import RECIPIENT_TAG, recipient_tags, session_name, translate

POLICY_NAME: Final = "sluice-revoked"
# All inline policies of a role together; blanks are not counted, and there are none.
MOST_CHARACTERS: Final = 10_240
# No session lives longer: an older denial has nothing left to deny.
_LONGEST_SESSION: Final = timedelta(hours=12)
_NEVER: Final = "9999"
_ATTEMPTS: Final = 5
# Longer than another run needs from reading the policy to writing it, which would undo this one unseen.
_SETTLED: Final = timedelta(seconds=1)

Statement = Mapping[str, Any]

log = logging.getLogger(__name__)


class Undone(Exception):
    """Somebody else keeps writing the policy."""


class AwsCutter:
    """Keeps one statement for each recipient in one policy of the role, where the settings allow it."""

    # Sessions carry their recipient.
    everybody = ""
    consequence = ""

    def __init__(
        self,
        options: AwsOptions,
        role: RoleOptions,
        *,
        open_iam: Callable[[], Any],
        threads: Executor,
        clock: Clock,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._options = options
        self._role_name = role.arn.rpartition("/")[2]
        self._open_iam = open_iam
        self._threads = threads
        self._clock = clock
        self._sleep = sleep

    async def cut_off(self, recipient: str, issued_before: datetime) -> Cut:
        statement = denial(recipient, issued_before, by_tag=self._options.session_tags)
        if not self._options.revocation.put_role_policy:
            return Cut(done=False, words=self._words(document([statement])))
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._threads, self._put, statement)
        except (ClientError, BotoCoreError, OSError, ValueError, Undone) as exc:
            code = "that others write the policy" if isinstance(exc, Undone) else translate(exc)[0]
            log.warning("the role %s could not be given its denials: %s", self._role_name, code)
            return Cut(
                done=False, words=f"IAM said {code}, nothing is cut off. {self._words(document([statement]))}"
            )
        return Cut(
            done=True,
            words=f"the role {self._role_name} denies all sessions of {recipient} that began before "
            f"{_text(issued_before)} (inline policy {POLICY_NAME}); IAM may take some minutes",
        )

    def _put(self, statement: Statement) -> None:
        iam = self._open_iam()
        try:
            found, lost = _read(iam, self._role_name), [statement]
            for _ in range(_ATTEMPTS):
                for one in lost:
                    found = merge(found, one, self._clock())
                self._replace(iam, found)
                self._sleep(_SETTLED.total_seconds())
                # Another run may have written what it had read before, without this statement or another.
                put, found = found, _read(iam, self._role_name)
                lost = [one for one in put if not _holds(found, one)]
                if not lost:
                    return
            raise Undone
        finally:
            iam.close()

    def _replace(self, iam: Any, statements: Sequence[Statement]) -> None:
        policy = document(statements)
        if len(policy) > MOST_CHARACTERS:
            raise ValueError("too many denials for one role")
        iam.put_role_policy(RoleName=self._role_name, PolicyName=POLICY_NAME, PolicyDocument=policy)

    def _words(self, policy: str) -> str:
        # Single quotes hold the document in a shell: a name in it has none, as STS takes none.
        return (
            "sessions that are out live to their expiry. To cut them off now (this replaces the policy of an "
            f"earlier revocation): aws iam put-role-policy --role-name {self._role_name} "
            f"--policy-name {POLICY_NAME} --policy-document '{policy}'"
        )


def denial(recipient: str, issued_before: datetime, *, by_tag: bool) -> Statement:
    """Return the statement that denies everything to a recipient's older sessions."""
    whose: Mapping[str, Mapping[str, str]]
    if by_tag:
        tag = recipient_tags(recipient)[RECIPIENT_TAG]
        whose = {"StringEquals": {f"aws:PrincipalTag/{RECIPIENT_TAG}": tag}}
    else:
        # A session's user id is the role's id and the session's name.
        whose = {"StringLike": {"aws:userid": f"*:{session_name(recipient)}"}}
    when = {"DateLessThan": {"aws:TokenIssueTime": _text(issued_before)}}
    return {"Effect": "Deny", "Action": "*", "Resource": "*", "Condition": {**when, **whose}}


def merge(statements: Sequence[Statement], new: Statement, now: datetime) -> Sequence[Statement]:
    """Return the statements with a new one, without the recipient's former and without those of the past."""
    oldest = _text(now - _LONGEST_SESSION)
    former = [old for old in statements if _is_former(old, new)]
    kept = [old for old in statements if old not in former and old != new and _moment(old) >= oldest]
    # A later cut stands when an earlier one is asked for again.
    if former and (latest := max(map(_moment, former))) > _moment(new):
        new = {**new, "Condition": {**new["Condition"], "DateLessThan": {"aws:TokenIssueTime": latest}}}
    return [*kept, new]


def document(statements: Sequence[Statement]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)}, separators=(",", ":"))


def _read(iam: Any, role_name: str) -> Sequence[Statement]:
    try:
        found = iam.get_role_policy(RoleName=role_name, PolicyName=POLICY_NAME)["PolicyDocument"]
    except ClientError as exc:
        if exc.response.get("Error", {}).get("Code") == "NoSuchEntity":
            return []
        raise
    # The SDK decodes it, IAM sends it percent-encoded.
    parsed = json.loads(unquote(found)) if isinstance(found, str) else found
    return [dict(statement) for statement in parsed["Statement"]]


def _holds(statements: Sequence[Statement], wanted: Statement) -> bool:
    """Tell whether a statement stands there, or one that denies the same recipient more."""
    return any(
        one == wanted or (_is_former(one, wanted) and _moment(one) >= _moment(wanted)) for one in statements
    )


def _is_former(old: Statement, new: Statement) -> bool:
    """Tell whether both are denials of ours, of the same recipient."""
    return _whose(old) == _whose(new) and _NEVER not in {_moment(old), _moment(new)}


def _whose(statement: Statement) -> object:
    condition = statement.get("Condition", {})
    return {name: value for name, value in condition.items() if name != "DateLessThan"}


def _moment(statement: Statement) -> str:
    found = statement.get("Condition", {}).get("DateLessThan", {}).get("aws:TokenIssueTime")
    # What somebody else has put there is not ours to drop.
    return str(found) if found else _NEVER


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
