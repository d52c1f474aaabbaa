"""Why a job failed: in words that anybody may read, and whether trying again can help."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gateway.errors import DeadlineExceeded, GatewayError, Throttled, Unavailable
from pipeline.session import SECRET_NAME


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What is told of an error. Spark's own messages stay behind: they quote rows, queries and places."""

    message: str
    retry: bool


# Classes of SQLSTATE: what is wrong with a query, with its data, or with what it asks of Spark stays wrong.
_PERMANENT_STATES: Final = ("0A", "21", "22", "23", "42", "56")
_NAMED: Final = re.compile(
    r"\[(?P<condition>[A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*)\](?:(?!\[[A-Z]).)*?SQLSTATE: (?P<state>\w{5})",
    re.DOTALL,
)

FILES_GONE: Final = Fault(message="files of a table went away while it was read", retry=True)

# What passes by itself: looked for, in this order, in the names and messages of an error and its causes.
_PASSING: Final[tuple[tuple[re.Pattern[str], Fault], ...]] = tuple(
    (re.compile(pattern), fault if isinstance(fault, Fault) else Fault(message=fault, retry=True))
    for pattern, fault in (
        (
            r"DELTA_CONCURRENT|Concurrent(?:Append|Delete\w+|Transaction|Write|Modification)Exception"
            r"|DELTA_METADATA_CHANGED|DELTA_PROTOCOL_CHANGED|MetadataChangedException",
            "another writer was quicker",
        ),
        (
            r"AccessDenied|InvalidAccessKeyId|ExpiredToken|SignatureDoesNotMatch|Status Code: 403"
            r"|NoAuthWithAWS|AccessControlException|CredentialInitializationException",
            "the storage refused access",
        ),
        (
            r"FileNotFoundException|FAILED_READ_FILE\.FILE_NOT_EXIST|DELTA_FILE_NOT_FOUND"
            r"|DELTA_TRUNCATED_TRANSACTION_LOG|DELTA_LOG_FILE_NOT_FOUND|DELTA_VERSIONS_NOT_CONTIGUOUS",
            FILES_GONE,
        ),
        (
            r"(?i)timed? ?out|timeoutexception|connection (?:refused|reset)|connectexception|unknownhost"
            r"|nohttpresponse|broken pipe|slowdown|status code: 5\d\d|status = unavailable|sslexception"
            r"|sdkclientexception|awsserviceioexception|awsclientioexception|no space left",
            "a storage or a part of Spark did not answer",
        ),
        (r"OutOfMemoryError|ExecutorLost|exit code 137", "Spark ran out of memory"),
        (r"Py4JNetworkError|Answer from Java side is empty", "Spark ended"),
    )
)


def fault_of(error: BaseException) -> Fault:
    """Say what went wrong."""
    if isinstance(error, GatewayError):
        return Fault(
            message=error.message, retry=isinstance(error, Unavailable | DeadlineExceeded | Throttled)
        )
    return passing_fault(error) or _by_condition(error)


def passing_fault(error: BaseException) -> Fault | None:
    """Say what went wrong where it was a storage, the network, or somebody else; None where it was not."""
    told = "\n".join(f"{type(each).__name__}: {each}" for each in chain(error))
    return next((fault for pattern, fault in _PASSING if pattern.search(told)), None)


def is_spark_gone(error: BaseException) -> bool:
    """Say whether the JVM behind a session has ended, so that nothing more can be run on it."""
    names = {type(each).__name__ for each in chain(error)}
    return bool(names & {"Py4JNetworkError", "Py4JError"}) and "Py4JJavaError" not in names


def masked(text: str, secrets: Mapping[str, str]) -> str:
    """Return a text without the values of settings that nobody may see."""
    hidden = {value for name, value in secrets.items() if SECRET_NAME.search(name) and value}
    # The longest first: one may be a part of another.
    for value in sorted(hidden, key=len, reverse=True):
        text = text.replace(value, "***")
    return text


def _by_condition(error: BaseException) -> Fault:
    named = list(_conditions(error))
    for condition, state in named:
        if state.startswith(_PERMANENT_STATES):
            return Fault(message=f"Spark refused it: {condition}", retry=False)
    if named:
        return Fault(message=f"Spark failed: {named[0][0]}", retry=True)
    # What nobody foresaw may have been bad luck; whoever asks counts how often.
    return Fault(message=f"the job failed: {type(error).__name__}", retry=True)


def _conditions(error: BaseException) -> Iterator[tuple[str, str]]:
    """Yield the names that Spark has for what went wrong, each with its SQLSTATE."""
    for each in chain(error):
        condition, state = _asked(each, "getCondition"), _asked(each, "getSqlState")
        if condition and state:
            yield condition, state
        # What went wrong in a task is told by the text of what went wrong with the job.
        yield from ((found["condition"], found["state"]) for found in _NAMED.finditer(str(each)))


def _asked(error: Any, method: str) -> str | None:
    try:
        answer = getattr(error, method)()
    except Exception:  # noqa: BLE001 -- the JVM that would answer may be the one that has ended
        return None
    return answer if isinstance(answer, str) else None


def chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, and then what it came from."""
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        yield following
        following = following.__cause__ or following.__context__
