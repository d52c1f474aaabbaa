from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.demo.schema import Field, schema_string
from gateway.errors import Unsupported
from gateway.services.snapshot.answer.negotiation import choose_format
from gateway.services.snapshot.log.protocol import Protocol
from gateway.v1 import snapshot_pb2 as pb
from tests.cases import each_case
from tests.fakes.grants import GRANT
from tests.unit.services.snapshot.answer.pages import snapshot_of

_PARQUET, _DELTA = pb.RESPONSE_FORMAT_PARQUET, pb.RESPONSE_FORMAT_DELTA
_NTZ = schema_string([Field("a", "timestamp_ntz")])


def table(*features: str, reader: int = 3, **fields):
    protocol = Protocol(min_reader_version=reader, min_writer_version=7, reader_features=features)
    return snapshot_of({"path": "a"}, protocol=protocol, **fields)


PLAIN = snapshot_of({"path": "a"})
# Everything is listed and nothing is in use.
LISTED = table("deletionVectors", "columnMapping", "timestampNtz", "v2Checkpoint")
MAPPED = table("deletionVectors", "columnMapping", configuration={"delta.columnMapping.mode": "name"})
BOTH = table("columnMapping", "timestampNtz", schema=_NTZ, configuration={"delta.columnMapping.mode": "name"})


def choose(snapshot, *formats, features=(), discovery=False):
    capabilities = pb.ReaderCapabilities(response_formats=formats, reader_features=features)
    return choose_format(snapshot, capabilities, GRANT, discovery=discovery)


def refusal(snapshot, *formats, features=(), discovery=False) -> str:
    with pytest.raises(Unsupported) as caught:
        choose(snapshot, *formats, features=features, discovery=discovery)
    assert caught.value.error_code == "UNSUPPORTED_OPERATION"
    assert "retail.sales.orders" in caught.value.message
    return caught.value.message


@each_case("formats", [[], [_PARQUET], [pb.RESPONSE_FORMAT_UNSPECIFIED]])
@each_case("snapshot", [PLAIN, LISTED])
def test_who_names_no_other_format_gets_parquet(formats, snapshot):
    assert choose(snapshot, *formats) == _PARQUET


@pytest.mark.parametrize("snapshot", [PLAIN, LISTED])
def test_who_takes_delta_alone_gets_delta(snapshot):
    assert choose(snapshot, _DELTA) == _DELTA


@each_case("formats", [[_DELTA, _PARQUET], [_PARQUET, _DELTA]])
@each_case("snapshot", [PLAIN, LISTED])
def test_who_takes_both_gets_parquet_where_no_feature_is_in_use(formats, snapshot):
    assert choose(snapshot, *formats) == _PARQUET


def test_who_takes_both_gets_delta_where_a_feature_is_in_use():
    assert choose(MAPPED, _PARQUET, _DELTA, features=["columnmapping"]) == _DELTA


def test_a_feature_is_known_however_the_table_spells_it():
    spelled = table("COLUMNmapping", configuration={"delta.columnMapping.mode": "name"})

    assert choose(spelled, _DELTA, features=["columnmapping"]) == _DELTA
    assert "uses COLUMNmapping, which the request does not declare" in refusal(spelled, _DELTA)


@pytest.mark.parametrize("discovery", [True, False])
def test_parquet_alone_is_refused_with_the_features_in_the_way_and_the_header_that_helps(discovery):
    message = refusal(BOTH, _PARQUET, discovery=discovery)

    assert message.startswith("Unsupported Delta Table Properties: ")
    assert "uses columnMapping, timestampNtz," in message
    assert message.endswith(
        "delta-sharing-capabilities: responseformat=delta;readerfeatures=columnmapping,timestampntz"
    )


@pytest.mark.parametrize("formats", [[_DELTA], [_DELTA, _PARQUET]])
def test_a_query_without_a_declaration_is_refused_with_what_is_missing_and_the_whole_header(formats):
    message = refusal(BOTH, *formats, features=["columnmapping"])

    assert message.startswith("Unsupported Delta Table Properties: ")
    assert "uses timestampNtz, which the request does not declare" in message
    assert "responseformat=delta;readerfeatures=columnmapping,timestampntz" in message


@pytest.mark.parametrize("formats", [[_DELTA], [_DELTA, _PARQUET]])
def test_a_discovery_is_answered_whatever_is_declared(formats):
    assert choose(BOTH, *formats, discovery=True) == _DELTA


def test_files_with_deletion_vectors_need_them_declared():
    vector = {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}
    snapshot = snapshot_of({"path": "a", "deletionVector": vector})

    assert "uses deletionVectors" in refusal(snapshot)
    assert choose(snapshot, _DELTA, features=["deletionvectors"]) == _DELTA


@each_case("feature", ["catalogManaged", "catalogOwned-preview", "somethingNew"])
@each_case("formats", [[_PARQUET], [_DELTA], [_DELTA, _PARQUET]])
def test_a_feature_that_the_gateway_does_not_know_is_refused_by_name_to_everyone(feature, formats):
    message = refusal(table(feature), *formats, features=[feature.lower()], discovery=True)

    assert f"reader features {feature}," in message


def test_a_reader_version_from_the_future_is_refused():
    assert "a reader of version 4" in refusal(table(reader=4), _DELTA, discovery=True)


def test_another_file_format_is_refused():
    assert "a format other than parquet" in refusal(table(provider="orc"), _DELTA, discovery=True)


_FEATURES = ["deletionVectors", "columnMapping", "timestampNtz"]


@given(
    st.sets(st.sampled_from(_FEATURES)),
    st.lists(st.sampled_from([_PARQUET, _DELTA])),
    st.sets(st.sampled_from(_FEATURES)),
    st.booleans(),
)
def test_no_client_gets_what_it_cannot_read(used, formats, declared, discovery):
    snapshot = table(
        *_FEATURES,
        schema=_NTZ if "timestampNtz" in used else _NTZ.replace("timestamp_ntz", "long"),
        configuration={
            "delta.columnMapping.mode": "id" if "columnMapping" in used else "none",
            "delta.enableDeletionVectors": str("deletionVectors" in used),
        },
    )
    features = [name.lower() for name in declared]

    try:
        chosen = choose(snapshot, *formats, features=features, discovery=discovery)
    except Unsupported:
        assert used
        assert not discovery or _DELTA not in formats
        assert _DELTA not in formats or not used <= declared
    else:
        assert chosen in (formats or [_PARQUET])
        assert chosen == _DELTA or not used
        assert discovery or chosen == _PARQUET or used <= declared


def test_a_refusal_names_a_few_unknown_features_of_many():
    hostile = table(*(f"foo{n}" for n in range(10_000)))

    with pytest.raises(Unsupported, match=r"foo0, foo1, .* and 9984 others") as refused:
        choose_format(hostile, pb.ReaderCapabilities(), GRANT, discovery=True)

    assert len(refused.value.message) < 1000
