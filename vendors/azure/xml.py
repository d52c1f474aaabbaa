"""Reads the small XML documents that the blob service answers with."""

from __future__ import annotations

from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from gateway.errors import Unavailable


def parse_xml(body: bytes) -> Element:
    """Return the root; raise ``Unavailable`` for what is not XML, or brings definitions of its own."""
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
        raise Unavailable("Azure answered with something that is not understood") from exc
    if not isinstance(root, Element):
        raise Unavailable("Azure answered with something that is not understood")
    return root


def _refuse(*_: object) -> None:
    raise ValueError("a document type is not expected")
