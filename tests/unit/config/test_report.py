from __future__ import annotations

from gateway.config.report import Report


def test_faults_come_in_the_order_of_the_file_with_their_lines():
    report = Report()
    report.fault(("b", "missing"), "is missing")
    report.fault(("SLUICE_X",), "is not a known variable")
    report.fault(("a",), "must be a text", 3)
    faults = report.faults({("a",): 1, ("b",): 2})
    assert [(fault.path, fault.line, fault.found) for fault in faults] == [
        ("a", 1, "3"),
        ("b.missing", 2, ""),
        ("SLUICE_X", None, ""),
    ]


def test_a_place_has_one_fault_and_what_lies_below_has_none():
    report = Report()
    report.fault(("a",), "first")
    report.fault(("a",), "second")
    report.fault(("a", "b", 0), "below")
    report.fault(("ab",), "beside")
    assert [fault.message for fault in report.faults({})] == ["first", "beside"]


def test_a_value_from_the_environment_is_faulty_there():
    report = Report()
    report.note_origin(("services", "run"), "SLUICE_SERVICES_RUN")
    report.fault(("services", "run", 1), "must be one of", "x")
    (fault,) = report.faults({("services", "run"): 5})
    assert (fault.path, fault.line, fault.found) == ("SLUICE_SERVICES_RUN", None, "'x'")


def test_what_was_read_from_a_named_file_is_not_shown():
    report = Report()
    report.note_origin(("host",), "SLUICE_HOST_FILE")
    report.fault(("host",), "must be a host", "hunter2")
    assert report.faults({})[0].found == "a text of 7 characters"


def test_messages_lose_what_is_secret_in_urls():
    report = Report()
    report.fault(("a",), "'s3://key:hunter2@bucket' is not valid")
    assert "hunter2" not in str(report.faults({})[0])


def test_warnings_that_are_alike_are_told_of_once():
    report = Report()
    for number in range(1001):
        report.warn(("shares", number, "foo"), "is ignored")
    report.warn(("shares", 0, "bar"), "is ignored")
    report.warn((), "is general")
    assert report.warnings() == (
        "shares[0].foo: is ignored (and at 1,000 more places)",
        "shares[0].bar: is ignored",
        "is general",
    )


def test_a_part_is_intact_unless_something_at_above_or_below_it_is_broken():
    report = Report()
    report.fault(("services", "run", 0), "x")
    assert report.is_intact(("services", "run"))
    report.mark_broken()
    assert not report.is_intact(("services", "run"))
    assert not report.is_intact(("services",))
    assert not report.is_intact(("services", "run", 0, "x"))
    assert not report.is_intact(("shares",), ("services",))
    assert report.is_intact(("services", "tls"), ("shares",))
