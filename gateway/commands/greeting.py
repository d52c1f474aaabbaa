"""What the demo says once it serves: things to paste, each of which works as it stands."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from gateway.demo.pipeline_sample import SCHEMA as VIEW_SCHEMA
from gateway.demo.pipeline_sample import VIEW
from gateway.demo.s3_access import BUCKET
from gateway.demo.s3_sample import S3_TABLES, SCHEMA
from gateway.demo.sample import SHARE

_FIRST_COMMIT = "_delta_log/00000000000000000000.json"


def header_file(profile: Path) -> Path:
    """Return where curl reads the token from, so that it stands in no command line."""
    return profile.with_suffix(".header")


@dataclass(frozen=True, slots=True, kw_only=True)
class Greeting:
    base_url: str
    profile: Path
    # host:port of metrics and health.
    metrics: str

    def to_text(self, *, with_s3: bool, with_pipeline: bool = False) -> str:
        parts = [
            self._url_access(),
            *([self._on_s3()] if with_s3 else []),
            *([self._with_worker()] if with_pipeline else []),
            self._addresses(),
        ]
        return "\n\n".join(parts)

    def _url_access(self) -> str:
        path = str(self.profile)
        return f"""\
Sluice serves the sample share at {self.base_url}

profile: {path}

Read a table with the official client (pip install delta-sharing):

import delta_sharing
table = {path + "#sample.sales.orders"!r}
print(delta_sharing.load_as_pandas(table))

The same for what changed in one, row by row:

changes = {path + "#sample.features.change_feed"!r}
print(delta_sharing.load_table_changes_as_pandas(changes, starting_version=0))

List the tables:

{self._curl("/shares/sample/all-tables")}"""

    def _on_s3(self) -> str:
        table, neighbour = S3_TABLES[0], S3_TABLES[1]
        credentials = f"/shares/sample/schemas/{SCHEMA}/tables/{table.name}/temporary-table-credentials"
        return f"""\
The tables of schema {SCHEMA} lie on an S3 store. Read one there with the same client, by signed URLs:

on_s3 = {f"{self.profile}#sample.{SCHEMA}.{table.name}"!r}
print(delta_sharing.load_as_pandas(on_s3))

They are also shared as directories. Get keys that open one:

{self._curl(credentials, "-X POST")}

Use such keys; the store itself refuses them the neighbour. Paste this into {_shown(sys.executable)}:

import json, urllib.request, boto3
profile = json.load(open({str(self.profile)!r}))
url = profile["endpoint"] + {credentials!r}
headers = {{"Authorization": "Bearer " + profile["bearerToken"]}}
answer = json.load(urllib.request.urlopen(urllib.request.Request(url, method="POST", headers=headers)))
keys = answer["credentials"]["awsTempCredentials"]
session = boto3.Session(keys["accessKeyId"], keys["secretAccessKey"], keys["sessionToken"], keys["region"])
s3 = session.client("s3", endpoint_url=keys["endpoint"])
for table in ({table.key!r}, {neighbour.key!r}):
    try:
        log = s3.get_object(Bucket={BUCKET!r}, Key=table + {"/" + _FIRST_COMMIT!r})
        print(table, "is open:", log["ContentLength"], "bytes of its log")
    except s3.exceptions.ClientError as refusal:
        print(table, "is closed:", refusal)

The package sluice-recipient does all of that, and renews the keys (pip install './recipient[polars]'):

import sluice_recipient
table = sluice_recipient.open_table({f"{self.profile}#sample.{SCHEMA}.{table.name}"!r})
print(table.to_polars().collect())

Prove that such keys open one directory and nothing else:

{self._sluice("verify-storage")}"""

    def _with_worker(self) -> str:
        page = shlex.quote(_shown(str(self.profile.with_name("usage.html"))))
        return f"""\
A view is shared that Spark has to make first, and usage is counted. In another terminal, start a worker:

{self._sluice("pipeline worker")} --metrics 127.0.0.1:0

Read the view; until it is made, the answer says to try again:

view = {f"{self.profile}#{SHARE}.{VIEW_SCHEMA}.{VIEW}"!r}
print(delta_sharing.load_as_pandas(view))

A minute later, see who was given what, as text and as a page:

{self._sluice("usage")} --html {page}"""

    def _addresses(self) -> str:
        return f"""\
API docs  {self.base_url}/docs
metrics   http://{self.metrics}/metrics
health    http://{self.metrics}/healthz and /readyz

Ctrl-C stops it."""

    def _sluice(self, command: str) -> str:
        sluice = str(Path(sys.executable).with_name("sluice"))
        config = str(self.profile.with_name("server.yaml"))
        return f"{_shown(sluice)} {command} --config {shlex.quote(_shown(config))}"

    def _curl(self, path: str, options: str = "") -> str:
        header = shlex.quote(f"@{header_file(self.profile)}")
        return f"curl {options}{' ' if options else ''}-H {header} {self.base_url}{path}"


def _shown(path: str) -> str:
    """Return a path as short as it can be typed here."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path
