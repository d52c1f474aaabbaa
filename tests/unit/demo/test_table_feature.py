from __future__ import annotations

from gateway.demo.table_feature import FEATURES, with_features
from tests.cases import each_case


def test_what_a_reader_must_know_is_in_both_lists():
    options = with_features("deletionVectors", "changeDataFeed")

    assert options["protocol"] == {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["deletionVectors", "changeDataFeed"],
    }
    assert options["metadata"]["configuration"] == {
        "delta.enableDeletionVectors": "true",
        "delta.enableChangeDataFeed": "true",
    }


def test_what_only_writers_must_know_asks_nothing_of_readers():
    protocol = with_features("inCommitTimestamp")["protocol"]

    assert protocol == {
        "minReaderVersion": 1,
        "minWriterVersion": 7,
        "writerFeatures": ["inCommitTimestamp"],
    }


@each_case("name", FEATURES)
def test_every_feature_can_be_asked_for(name):
    assert name in with_features(name)["protocol"]["writerFeatures"]
