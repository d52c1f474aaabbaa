"""DataFrames for PySpark, through S3A with a credential of the table's own.

S3A keeps one file system for each scheme and bucket, with the settings of whoever asked first. So each table
gets a scheme of its own, and its settings go with the read, to driver and executors alike. Credentials come
from a command that the AWS SDK runs again before they expire; the file that names it holds no secret, and
Spark carries it to the executors.
"""

from __future__ import annotations

import hashlib
import shlex
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from sluice_recipient.access import DIR
from sluice_recipient.aws import aws_keys, profile_section
from sluice_recipient.credential import AwsKeys
from sluice_recipient.engines.official import load_spark
from sluice_recipient.errors import NotUsable
from sluice_recipient.private import write_private

if TYPE_CHECKING:
    from sluice_recipient.table import SharedTable

SCHEMES: Final = frozenset({"s3", "s3a"})
# Hadoop takes a variable from the JVM's properties, which the driver sets, else from its own settings.
_FOLDER: Final = "fs.sluice.folder"
_PROVIDER: Final = "org.apache.hadoop.fs.s3a.auth.ProfileAWSCredentialsProvider"
_FILE_SYSTEM: Final = "org.apache.hadoop.fs.s3a.S3AFileSystem"


def read_spark(table: SharedTable, spark: Any, *, command: str | None, options: Mapping[str, str]) -> Any:
    """Return a DataFrame."""
    if table.access_for("spark", SCHEMES) != DIR:
        return load_spark(table, options)
    context = _context_of(spark)
    section = profile_section("table", command or _command(table, context.master))
    credential = table.credentials()
    keys, (bucket, path) = aws_keys(credential), _parts(credential.location)
    # All that a file system depends on, because Spark keeps it for as long as it runs.
    content = "\n".join(map(str, (credential.location, keys.endpoint, keys.region, section)))
    scheme = f"sluice{hashlib.sha256(content.encode()).hexdigest()[:16]}"
    _hand_out(context, f"{scheme}.aws", section)
    settings = _settings(keys, scheme, bucket)
    return spark.read.format("delta").options(**settings, **options).load(f"{scheme}://{bucket}/{path}")


def _parts(location: str) -> tuple[str, str]:
    # Not by a parser of URLs: a key may have a ? or a # in it.
    bucket, _, path = location.partition("://")[2].partition("/")
    return bucket, path


def _context_of(spark: Any) -> Any:
    try:
        return spark.sparkContext
    except Exception as exc:
        raise NotUsable("a Spark Connect session has no files to hand out; use mode='url' there") from exc


def _command(table: SharedTable, master: str) -> str:
    if table.address is None:
        raise NotUsable("executors read the profile from a file; open the table by PROFILE#NAME")
    own = [sys.executable, "-m", "sluice_recipient"]
    # On other machines this interpreter may lie elsewhere.
    program = own if master.startswith("local") else ["sluice-recipient"]
    return shlex.join([*program, "credentials", table.address])


def _hand_out(context: Any, name: str, section: str) -> None:
    file = write_private(name, section)
    context.addFile(str(file))
    # An executor finds the file in the directory it runs in; the driver where it was written.
    context._jvm.java.lang.System.setProperty(_FOLDER, str(file.parent))  # noqa: SLF001 -- there is no other way


def _settings(keys: AwsKeys, scheme: str, bucket: str) -> dict[str, str]:
    own = {
        "aws.credentials.provider": _PROVIDER,
        "auth.profile.file": f"${{{_FOLDER}}}/{scheme}.aws",
        "auth.profile.name": "table",
        "endpoint": keys.endpoint,
        "endpoint.region": keys.region,
        "path.style.access": "true" if keys.endpoint else None,
    }
    # By bucket, because a cluster's settings by bucket would win over general ones.
    by_bucket = {f"fs.s3a.bucket.{bucket}.{name}": value for name, value in own.items() if value is not None}
    return {f"fs.{scheme}.impl": _FILE_SYSTEM, _FOLDER: ".", **by_bucket}
