from __future__ import annotations

import itertools
import json
import sys
from typing import Any

import celpy
import pytest
from celpy import celtypes
from celpy.adapter import json_to_cel
from hypothesis import assume, example, given
from hypothesis import strategies as st

from gateway.domain.location import Location, parse_location
from gateway.errors import InvalidArgument, Unsupported
from tests.cases import each_case
from vendors.gcp.boundary import access_boundary, cel_string

BUCKET = "projects/_/buckets/lake"
INJECTION = "x') || ('1'=='1"

# What a location may be spelled with.
spelled = st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"], exclude_characters="/\\")
names = st.text(spelled, min_size=1, max_size=6).filter(lambda name: name.strip() and name[-1] != ".")
# Spellings that a careless serializer would let out of the literal, beside any others.
segments = st.one_of(
    st.sampled_from(["orders", "ör ders", "a'b", '"', INJECTION, "*", "%41", "${x}", "r'", "💧", "o'\"'"]),
    names,
)
paths = st.lists(segments, min_size=1, max_size=3).map("/".join)
# What Location refuses, the serializer must stand by itself.
characters = st.one_of(st.characters(), st.sampled_from("\\'\"\b\f\n\r\t\0\a\x7f\x85\u2028"))


def at(path: str) -> Location:
    try:
        return parse_location(f"gs://lake/{path}")
    except InvalidArgument:
        assume(False)
        raise


def rule_of(location: Location) -> Any:
    (rule,) = access_boundary(location)["accessBoundary"]["accessBoundaryRules"]
    return rule


def cel_environment() -> celpy.Environment:
    limit = sys.getrecursionlimit()
    try:
        return celpy.Environment()
    finally:
        # celpy raises it for the whole process, which hypothesis does not like.
        sys.setrecursionlimit(limit)


def allows(location: Location, name: str, *, list_prefix: str | None = None) -> bool:
    """Evaluate the condition as IAM would, by another's evaluator."""
    environment = cel_environment()

    def attribute(api: object, key: str, default: celtypes.StringType) -> celtypes.StringType:
        assert key == "storage.googleapis.com/objectListPrefix"
        return default if list_prefix is None else celtypes.StringType(list_prefix)

    program = environment.program(
        environment.compile(rule_of(location)["availabilityCondition"]["expression"]),
        functions={"getAttribute": attribute},
    )
    resource = {"name": celtypes.StringType(name)}
    return bool(program.evaluate({"resource": json_to_cel(resource), "api": json_to_cel({})}))


@given(paths, st.text(max_size=12))
@example("orders", "part-0.parquet")
@example(INJECTION, "x")
def test_objects_and_folders_below_the_path_are_open(path, below):
    location = at(path)

    for kind in ("objects", "managedFolders", "folders"):
        assert allows(location, f"{BUCKET}/{kind}/{location.path}/{below}")


@given(paths, st.text(max_size=12))
@example("orders", "2/part-0.parquet")
@example("orders", "")
@example(INJECTION, "")
def test_what_only_begins_alike_is_closed(path, rest):
    location = at(path)
    assume(not rest.startswith("/"))

    for kind in ("objects", "managedFolders", "folders"):
        assert not allows(location, f"{BUCKET}/{kind}/{location.path}{rest}")


@given(paths, paths)
@example(INJECTION, "victim/part-0.parquet")
def test_any_other_name_is_open_exactly_when_it_lies_below(path, other):
    location = at(path)

    assert allows(location, f"{BUCKET}/objects/{other}") == other.startswith(f"{location.path}/")


@each_case(
    "name",
    [
        BUCKET,
        f"{BUCKET}/objects/sales",
        f"{BUCKET}/objects/sales/",
        f"{BUCKET}2/objects/sales/orders/x",
        "projects/_/buckets/other/objects/sales/orders/x",
        f"{BUCKET}/objects/other/sales/orders/x",
        "sales/orders/x",
    ],
)
def test_bucket_parent_and_other_buckets_are_closed(name):
    assert not allows(at("sales/orders"), name)


@given(paths, st.text(max_size=12))
@example("orders", "")
@example("orders", "2/")
@example("orders", "/_delta_log/")
def test_listing_is_open_for_prefixes_past_the_slash_only(path, rest):
    location = at(path)

    listed = allows(location, BUCKET, list_prefix=location.path + rest)

    assert listed == rest.startswith("/")


@each_case("prefix", [None, "", "sales", "sales/", "sales/orders", "sales/order", "/sales/orders/"])
def test_listing_above_or_beside_is_closed(prefix):
    assert not allows(at("sales/orders"), BUCKET, list_prefix=prefix)


@given(st.text(characters, max_size=20))
@example(INJECTION)
@example("\\'")
@example("\\\\' || true || '")
@example("\n\t\r\b\f")
def test_literal_means_its_text_or_is_refused(text):
    try:
        literal = cel_string(text)
    except Unsupported:
        assume(False)
    environment = cel_environment()

    assert environment.program(environment.compile(literal)).evaluate({}) == text


@each_case("character", ["\0", "\a", "\v", "\x1b", "\x7f", "\x85", "\u2028", "\udc00"])
def test_characters_without_an_escape_are_refused(character):
    with pytest.raises(Unsupported):
        cel_string(f"a{character}b")
    with pytest.raises(Unsupported):
        access_boundary(Location(scheme="gs", authority="lake", path=f"a{character}b", text="gs://lake/a"))


def test_rule_is_one_and_reads_only():
    rule = rule_of(at("sales/orders"))

    assert rule == {
        "availablePermissions": ["inRole:roles/storage.objectViewer"],
        "availableResource": "//storage.googleapis.com/projects/_/buckets/lake",
        "availabilityCondition": {
            "expression": "resource.name.startsWith('projects/_/buckets/lake/objects/sales/orders/')"
            " || resource.name.startsWith('projects/_/buckets/lake/managedFolders/sales/orders/')"
            " || resource.name.startsWith('projects/_/buckets/lake/folders/sales/orders/')"
            " || api.getAttribute('storage.googleapis.com/objectListPrefix', '').startsWith('sales/orders/')"
        },
    }


@each_case("character", ["a", "'", "ö", "💧"])
def test_boundary_that_google_would_not_take_is_refused_and_never_weakened(character):
    fits = next(count for count in itertools.count(1) if not is_taken(character * (count + 1)))

    (rule,) = access_boundary(at(character * fits))["accessBoundary"]["accessBoundaryRules"]
    taken = len(json.dumps({"accessBoundaryRules": [rule]}))
    # Not far from the limit: one character is there four times, escaped twice.
    assert 2048 - 4 * 12 < taken <= 2048
    assert rule["availabilityCondition"]["expression"].count("startsWith") == 4
    with pytest.raises(Unsupported, match="of 2048 characters"):
        access_boundary(at(character * (fits + 1)))


def is_taken(path: str) -> bool:
    try:
        access_boundary(at(path))
    except Unsupported:
        return False
    return True


def test_only_the_root_has_no_condition():
    assert "availabilityCondition" not in rule_of(parse_location("gs://lake"))
    assert "availabilityCondition" in rule_of(parse_location("gs://lake/a"))
