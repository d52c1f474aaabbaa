"""Addresses and places in one spelling: networks of callers, locations of tables."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as sf

UNKNOWN_NETWORK: Final = "unknown"

# As gRPC spells a peer: ipv4:10.0.0.7:52114, ipv6:%5B2001:db8::7%5D:52114.
_IPV4: Final = r"(?:^|[^0-9A-Za-z.])(\d{1,3}\.\d{1,3}\.\d{1,3})\.\d{1,3}(?:$|[^0-9A-Za-z.])"
_IPV6: Final = r"^(?:ipv6:(?:\[|%5B))?([0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7})(?:$|\]|%)"


def network_of(remote: Column) -> Column:
    """Return the network of an address: the first 24 bits of IPv4, the first 48 of IPv6."""
    four, six = sf.regexp_extract(remote, _IPV4, 1), sf.regexp_extract(remote, _IPV6, 1)
    return (
        sf.when(four != "", sf.concat(four, sf.lit(".0/24")))
        .when(six != "", _ipv6_network(sf.lower(six)))
        .otherwise(UNKNOWN_NETWORK)
    )


def place_of(location: Column) -> Column:
    """Return the one spelling of a location, as ``gateway.domain.location`` holds two for the same."""
    place = sf.regexp_replace(location, r"^(?i)file:/*(?!/)", "/")
    place = sf.regexp_replace(place, r"^(?=/)", "file://")
    place = sf.regexp_replace(place, r"^(?i)s3[an]?://", "s3://")
    place = sf.regexp_replace(place, r"^(?i)gs://", "gs://")
    azure = sf.regexp_extract(place, r"^(?i)(?:abfss?|wasbs?)://([^/]*)", 1)
    below = sf.regexp_replace(place, r"^(?i)(?:abfss?|wasbs?)://[^/]*", "")
    host = sf.regexp_replace(sf.lower(azure), r"\.blob\.", ".dfs.")
    place = sf.when(azure != "", sf.concat(sf.lit("abfss://"), host, below)).otherwise(place)
    return sf.regexp_replace(place, r"(?<=[^/])/$", "")


def _ipv6_network(address: Column) -> Column:
    # What "::" leaves out are zeros: nothing of what stands behind it is among the first three groups,
    # unless nearly nothing is left out.
    head = sf.split(sf.substring_index(address, "::", 1), ":")
    tail = sf.when(sf.instr(address, "::") > 0, sf.split(sf.substring_index(address, "::", -1), ":"))
    tail = sf.coalesce(sf.filter(tail, lambda group: group != ""), sf.array().cast("array<string>"))
    head = sf.filter(head, lambda group: group != "")
    zeros = sf.array_repeat(sf.lit("0"), 8 - sf.size(head) - sf.size(tail))
    groups = sf.transform(
        sf.slice(sf.concat(head, zeros, tail), 1, 3),
        lambda group: sf.regexp_replace(group, r"^0+(?=.)", ""),
    )
    return sf.concat(sf.array_join(groups, ":"), sf.lit("::/48"))
