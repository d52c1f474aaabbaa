from __future__ import annotations

from gateway.adapters.series import Spread, counter, histogram, labelled_counter


def test_a_spread_tells_how_many_were_at_most_so_large():
    spread = Spread((1.0, 10.0))
    for value in (0.5, 1.0, 5.0, 100.0):
        spread.observe(value)
    assert spread.buckets() == [("1.0", 2), ("10.0", 3), ("+Inf", 4)]
    assert spread.total == 106.5


def test_counters_have_a_label_for_their_storage():
    (sample,) = counter("waits", "Waits.", [("lake", 3)]).samples
    assert (sample.name, sample.labels, sample.value) == ("sluice_waits_total", {"storage": "lake"}, 3)
    (sample,) = labelled_counter("urls", "URLs.", "source", [("lake", [("memory", 4)])]).samples
    assert (sample.labels, sample.value) == ({"storage": "lake", "source": "memory"}, 4)


def test_histograms_have_a_bucket_for_each_bound_and_one_for_all():
    spread = Spread((1.0,))
    spread.observe(2.0)
    samples = histogram("seconds", "Of it.", [("lake", spread)]).samples
    by_bound = {sample.labels["le"]: sample.value for sample in samples if "le" in sample.labels}
    assert by_bound == {"1.0": 0, "+Inf": 1}
