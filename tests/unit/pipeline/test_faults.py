from __future__ import annotations

import pytest

from gateway.errors import GatewayError, InvalidArgument, Throttled, Unavailable, Unsupported
from pipeline.faults import FILES_GONE, Fault, fault_of, is_spark_gone, masked, passing_fault
from tests.cases import each_case


class SparkError(Exception):
    """Answers as PySpark's exceptions do."""

    def __init__(self, message: str, condition: str | None, state: str | None) -> None:
        super().__init__(message)
        self._condition, self._state = condition, state

    def getCondition(self):
        return self._condition

    def getSqlState(self):
        return self._state


class Py4JNetworkError(Exception):
    pass


class Py4JJavaError(Exception):
    pass


@each_case(
    ("error", "retry"),
    [
        (InvalidArgument("a"), False),
        (Unsupported("a"), False),
        (Unavailable("a"), True),
        (Throttled("a"), True),
    ],
)
def test_our_own_errors_say_it_themselves(error, retry):
    assert fault_of(error) == Fault(message="a", retry=retry)


@each_case(
    ("text", "message"),
    [
        ("[DELTA_CONCURRENT_APPEND] files were added", "another writer was quicker"),
        ("io.delta.exceptions.ConcurrentTransactionException: twice", "another writer was quicker"),
        ("java.nio.file.AccessDeniedException: s3a://b/k: AccessDenied", "the storage refused access"),
        ("S3Exception: ExpiredToken (Service: S3, Status Code: 400)", "the storage refused access"),
        ("java.net.SocketTimeoutException: Read timed out", "a storage or a part of Spark did not answer"),
        ("java.net.ConnectException: Connection refused", "a storage or a part of Spark did not answer"),
        (
            "S3Exception: Please reduce (Status Code: 503, SlowDown)",
            "a storage or a part of Spark did not answer",
        ),
        ("java.io.FileNotFoundException: No such file", "files of a table went away while it was read"),
        ("java.lang.OutOfMemoryError: Java heap space", "Spark ran out of memory"),
    ],
)
def test_what_passes_by_itself_is_tried_again(text, message):
    assert fault_of(SparkError(text, "JOB_ABORTED", "XXKDA")) == Fault(message=message, retry=True)


@each_case(
    ("condition", "state", "retry"),
    [
        ("UNRESOLVED_COLUMN.WITH_SUGGESTION", "42703", False),
        ("PARSE_SYNTAX_ERROR", "42601", False),
        ("CAST_INVALID_INPUT", "22018", False),
        ("DIVIDE_BY_ZERO", "22012", False),
        ("DELTA_UNSUPPORTED_FEATURES_FOR_READ", "56038", False),
        ("DELTA_UNSUPPORTED_DATA_TYPES", "0AKDC", False),
        ("INTERNAL_ERROR", "XX000", True),
    ],
)
def test_what_is_wrong_with_a_query_or_its_data_stays_wrong(condition, state, retry):
    fault = fault_of(SparkError("of 'Ada Lovelace' in SELECT secret FROM t", condition, state))
    assert fault == Fault(message=f"Spark {'failed' if retry else 'refused it'}: {condition}", retry=retry)


def test_what_went_wrong_in_a_task_is_found_in_the_text_of_the_job():
    text = """An error occurred while calling o1.save.
: org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows to x. SQLSTATE: 58030
Caused by: [CAST_INVALID_INPUT] The value 'Ada
Lovelace' of the type "STRING" cannot be cast to "INT". SQLSTATE: 22018"""
    assert fault_of(Py4JJavaError(text)) == Fault(message="Spark refused it: CAST_INVALID_INPUT", retry=False)


def test_the_cause_of_an_error_is_looked_at():
    error = RuntimeError("the query ended")
    error.__cause__ = SparkError("no column", "UNRESOLVED_COLUMN", "42703")
    assert fault_of(error).message == "Spark refused it: UNRESOLVED_COLUMN"


def test_what_nobody_foresaw_is_named_by_its_type_and_tried_again():
    assert fault_of(ZeroDivisionError("of 7")) == Fault(
        message="the job failed: ZeroDivisionError", retry=True
    )


def test_an_error_whose_jvm_does_not_answer_is_told_all_the_same():
    class Mute(Exception):
        def getCondition(self):
            raise Py4JNetworkError

    assert fault_of(Mute()).retry


def test_files_that_went_away_are_told_apart():
    assert passing_fault(Exception("java.io.FileNotFoundException")) is FILES_GONE
    assert passing_fault(Exception("[UNRESOLVED_COLUMN]")) is None


@pytest.mark.parametrize(
    ("error", "is_gone"),
    [(Py4JNetworkError("x"), True), (Py4JJavaError("x"), False), (ValueError("x"), False)],
)
def test_a_jvm_that_has_ended_is_told_from_one_that_complains(error, is_gone):
    assert is_spark_gone(error) is is_gone


def test_secrets_are_masked_the_longer_first():
    access = {
        "fs.s3a.bucket.b.secret.key": "abc",
        "fs.s3a.bucket.b.session.token": "abcdef",
        "fs.s3a.bucket.b.endpoint": "http://store",
    }
    assert masked("abcdef abc http://store", access) == "*** *** http://store"


def test_an_empty_secret_masks_nothing():
    assert masked("text", {"fs.s3a.secret.key": ""}) == "text"


def test_every_error_of_ours_is_a_fault():
    for kind in GatewayError.__subclasses__():
        assert fault_of(kind("told")).message == "told"
