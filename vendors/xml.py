"""Reads the small XML documents that storage services answer with."""

from __future__ import annotations

from typing import Final
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from gateway.errors import Unavailable

_NOT_UNDERSTOOD: Final = "the storage's provider answered with something that is not understood"


def parse_xml(body: bytes) -> Element:
    """Return the root; raise ``Unavailable`` for what is not XML, or brings definitions of its own.

    Namespaces are left aside: a name is what stands in the document.
    """
    target = TreeBuilder()
    parser = expat.ParserCreate()
    # Entities and external references can only be defined in a DTD.
    parser.StartDoctypeDeclHandler = _refuse
    parser.StartElementHandler = target.start
    parser.EndElementHandler = target.end
    parser.CharacterDataHandler = target.data
    try:
        parser.Parse(body, True)  # noqa: FBT003 - it has no name for it: this is all there is
        root = target.close()
    except (expat.ExpatError, AssertionError, ValueError) as exc:
        raise Unavailable(_NOT_UNDERSTOOD) from exc
    if not isinstance(root, Element):
        raise Unavailable(_NOT_UNDERSTOOD)
    return root


def _refuse(*_: object) -> None:
    raise ValueError("a document type is not expected")
