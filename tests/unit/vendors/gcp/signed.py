"""URLs as recipients put them together, and what they were signed for."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import cache
from urllib.parse import urlsplit

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import strategies as st

from gateway.domain.file_path import Paths, encode_path
from gateway.domain.location import Location, parse_location
from gateway.domain.window import Window
from gateway.ports import Signatures, Signer
from tests.doubles.gcp_signed_url import SignedUrl, read_signed_url
from tests.unit.vendors.gcp.google import NOON
from vendors.gcp.v4 import Place

GATEWAY = "gateway@project.iam.gserviceaccount.com"
HOUR = timedelta(hours=1)
WINDOW = Window(NOON, NOON + HOUR / 4, NOON + HOUR)
PLACE = Place.at("https://storage.googleapis.com")

# What a URL, an escape or a client could take for something else.
_AWKWARD = (
    *("date=2021-04-28/part 0+é.parquet", "a//b///c", "50%", "%41bc", "%2F%2e%25", "a%20b", "~-._", "#1?x=y"),
    *("\"quoted\" 'twice'", "a,b;c&d=e:@!$()*[]", "{}|^`<>\\", "日本/💧", "\x7f\x00\t", "../up/./", " ", "/"),
)
_CHARACTERS = " %+=#?&'\"!$()*,:;@[]<>{}|^`~-._/\\0129abfAZéßø日💧\u2028\n"
# The keys of one example come out of one text: so it is quick to make.
KEYS = st.text(_CHARACTERS, min_size=40, max_size=400).map(
    lambda text: [*(key for key in text.split("\n") if key), *_AWKWARD]
)
TABLES = st.sampled_from(
    [
        parse_location("gs://lake"),
        parse_location("gs://lake/sales/orders"),
        parse_location("gs://a.b-c_d/50%20off/é=1 +&'/it's ~?#"),
    ]
)
LIVES = st.integers(1, 604_800).map(lambda seconds: timedelta(seconds=seconds))


def window_of(life: timedelta) -> Window:
    return Window(NOON, NOON + life / 4, NOON + life)


async def urls_of(signer: Signer, table: Location, *paths: str, window: Window = WINDOW) -> list[str]:
    """Return the URLs of files, which are named as they are stored."""
    encoded = Paths.of(encode_path(path) for path in paths)
    return spliced(await signer.sign(table, encoded, window), encoded)


def spliced(signed: Signatures, paths: Paths) -> list[str]:
    pairs = zip(paths.split(), signed.signatures.split(b"\n") if signed.signatures else [], strict=True)
    return [f"{signed.origin}{path.decode()}?{signed.query}{signature.decode()}" for path, signature in pairs]


def read(url: str, method: str = "GET") -> SignedUrl:
    """Return what Google reads in a URL that is asked for."""
    parts = urlsplit(url)
    return read_signed_url(method, parts.path, parts.query, {"Host": parts.netloc})


@cache
def small_key() -> rsa.RSAPrivateKey:
    """Return a key that is too short for use, and therefore quick."""
    return rsa.generate_private_key(public_exponent=65537, key_size=1024)


def key_file(key: rsa.RSAPrivateKey | None = None, email: str = GATEWAY) -> str:
    pem = (key or small_key()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return json.dumps(
        {
            "type": "service_account",
            "client_email": email,
            "private_key": pem.decode(),
            "token_uri": "https://oauth2.googleapis.com/token",
        }
    )
