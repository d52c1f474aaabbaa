from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import Unavailable
from tests.cases import each_case
from vendors.xml import parse_xml


def test_document_is_read_with_its_attributes():
    root = parse_xml(b'\xef\xbb\xbf<?xml version="1.0"?><a><b c="d">e &amp; f</b></a>')
    found = root.find("b")

    assert found is not None
    assert (found.text, found.get("c")) == ("e & f", "d")


@each_case(
    "body",
    [
        b"",
        b"<a>",
        b"<a/><b/>",
        b"<!DOCTYPE a><a/>",
        b"<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>",
        b"<!DOCTYPE a SYSTEM 'http://127.0.0.1/x'><a/>",
        b"<a>&undefined;</a>",
        b"\xff\xfe",
    ],
)
def test_what_is_not_plain_xml_is_refused(body):
    with pytest.raises(Unavailable):
        parse_xml(body)


@given(body=st.binary(max_size=200))
def test_no_bytes_raise_anything_else(body):
    with suppress(Unavailable):
        parse_xml(body)
