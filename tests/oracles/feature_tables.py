"""Runs in the clients' environment: a table for each thing that a log or a file may hold."""

from __future__ import annotations

from collections.abc import Mapping

from tests.oracles.feed_tables import FEED_TABLES
from tests.oracles.file_tables import FILE_TABLES
from tests.oracles.log_tables import LOG_TABLES
from tests.oracles.statements import Write
from tests.oracles.type_tables import TYPE_TABLES

FEATURE_TABLES: Mapping[str, Write] = {**TYPE_TABLES, **FILE_TABLES, **LOG_TABLES, **FEED_TABLES}
