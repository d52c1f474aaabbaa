"""Runs in a process of its own: a Spark Connect server on a port of loopback, until its input ends."""

from __future__ import annotations

import sys

from pipeline.session import SparkSettings, open_session
from tests.spark import FOR_SPEED

if __name__ == "__main__":
    port = sys.argv[1]
    conf = {
        **FOR_SPEED,
        "spark.driver.memory": "1g",
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
    }
    session = open_session(SparkSettings(master="local[2]", conf=conf))
    sys.stdin.read()
    session.stop()
