from __future__ import annotations

import asyncio
import errno
import json
import os
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from yarl import URL

from gateway.domain import local_url
from gateway.domain.file_path import Paths, encode_path
from gateway.domain.key import Key, Keys
from gateway.domain.location import parse_location
from gateway.domain.window import Window
from gateway.edge.app import EdgePorts, EdgeSettings, Rate, build
from gateway.edge.handlers.files import FilesHandler
from gateway.ports import StorageSettings
from tests.cases import each_case
from tests.fakes.audit import FakeAuditLog, FakeHttpMetrics
from tests.fakes.file_server import files_app
from tests.fakes.http_connection import MemoryConnection, MemoryServer, Reply, memory_server
from tests.fakes.services import World, fake_services
from vendors.local.signer import LocalSigner

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
END = NOON + timedelta(hours=1)
PUBLIC = "https://share.example"
KEYS = Keys(current=Key(id="k1", secret=b"s" * 32), previous=Key(id="k0", secret=b"p" * 32))
CONTENT = bytes(range(256)) * 4
REFUSED = {
    "errorCode": "PERMISSION_DENIED",
    "message": "the URL is not valid or has expired; query the table again for another",
}


@dataclass
class Files:
    """A lake with a table, beside it what must not be served, and an edge in front."""

    root: Path
    server: MemoryServer
    prefix: str
    clock: list[datetime]

    @property
    def table(self) -> Path:
        return self.root / "sales" / "orders"

    async def sign(
        self, path: str, *, storage: str = "lake", keys: Keys = KEYS, table: Path | None = None
    ) -> str:
        """Return a request target for a file of the table."""
        settings = StorageSettings(
            name=storage,
            prefix=parse_location(str(self.root)),
            public_url=PUBLIC + self.prefix,
            url_keys=keys,
        )
        location = parse_location(str(table or self.table))
        window = Window(NOON, NOON + timedelta(minutes=15), END)
        signed = await LocalSigner(settings, keys).sign(location, Paths.of([encode_path(path)]), window)
        signature = signed.signatures.decode()
        return f"{signed.origin}{encode_path(path)}?{signed.query}{signature}".removeprefix(PUBLIC)

    async def get(self, target: str, **headers: str) -> Reply:
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.server.get(target, fields)

    async def head(self, target: str, **headers: str) -> Reply:
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.connect().request("HEAD", target, fields)

    def connect(self) -> MemoryConnection:
        return self.server.connect()


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    root = tmp_path / "lake"
    (root / "sales" / "orders" / "date=2021-04-28").mkdir(parents=True)
    (root / "sales" / "orders" / "part-0.parquet").write_bytes(CONTENT)
    (root / "sales" / "orders" / "part-1.parquet").write_bytes(b"another")
    (root / "sales" / "orders2").mkdir()
    (root / "sales" / "orders2" / "part-0.parquet").write_bytes(b"sibling")
    (tmp_path / "secret").write_bytes(b"secret")
    return root


@pytest.fixture
def clock() -> list[datetime]:
    return [NOON]


@pytest.fixture
def handler(lake, clock) -> FilesHandler:
    roots = {"lake": lake, "other": lake.parent}
    return FilesHandler(roots=roots.get, keys=KEYS, clock=lambda: clock[0])


@pytest.fixture
async def files(lake, clock, handler) -> AsyncIterator[Files]:
    async with memory_server(files_app(handler, "/delta-sharing")) as server:
        yield Files(root=lake, server=server, prefix="/delta-sharing", clock=clock)


def open_descriptors() -> int:
    with os.scandir("/dev/fd") as entries:
        return len(list(entries))


def assert_refused(reply: Reply) -> None:
    assert reply.status == 403
    assert json.loads(reply.body) == REFUSED


async def test_signed_url_serves_its_file_whole_without_a_token(files):
    reply = await files.get(await files.sign("part-0.parquet"))

    assert (reply.status, reply.body) == (200, CONTENT)
    assert reply.headers["Content-Type"] == "application/octet-stream"
    assert reply.headers["Content-Length"] == "1024"
    assert reply.headers["Accept-Ranges"] == "bytes"
    assert reply.headers["Cache-Control"] == "private, no-store"


@pytest.mark.parametrize("prefix", ["/delta-sharing", "", "/a/files/b"])
async def test_edge_serves_files_below_its_prefix(lake, clock, handler, prefix):
    app = build(
        EdgeSettings(prefix=prefix, rate_of=lambda _: Rate(requests_per_second=1, burst=1)),
        fake_services(World(shares=[], tables=[], recipients=[])).stubs,
        EdgePorts(audit=FakeAuditLog(), metrics=FakeHttpMetrics(), files=handler, clock=lambda: clock[0]),
    )
    async with memory_server(app) as server:
        files = Files(root=lake, server=server, prefix=prefix, clock=clock)

        assert (await files.get(await files.sign("part-0.parquet"))).body == CONTENT
        assert_refused(await files.get((await files.sign("part-0.parquet")).replace("sdd=2", "sdd=1")))
        assert (await files.connect().request("PUT", await files.sign("part-0.parquet"))).status == 405


async def test_head_tells_of_the_file_and_sends_nothing(files):
    target = await files.sign("part-0.parquet")
    connection = files.connect()

    reply = await connection.request("HEAD", target, {"Range": "bytes=0-3"})
    following = await connection.request("GET", target)

    assert (reply.status, reply.headers["Content-Length"]) == (200, "1024")
    assert reply.headers["ETag"] == following.headers["ETag"]
    assert following.body == CONTENT


@pytest.mark.parametrize(
    ("header", "content_range", "body"),
    [
        ("bytes=0-3", "bytes 0-3/1024", CONTENT[:4]),
        ("bytes=1000-", "bytes 1000-1023/1024", CONTENT[1000:]),
        ("bytes=-4", "bytes 1020-1023/1024", CONTENT[-4:]),
        ("bytes=1020-5000", "bytes 1020-1023/1024", CONTENT[-4:]),
        ("bytes=0-", "bytes 0-1023/1024", CONTENT),
    ],
)
async def test_range_is_served_as_partial_content(files, header, content_range, body):
    reply = await files.get(await files.sign("part-0.parquet"), Range=header)

    assert (reply.status, reply.body) == (206, body)
    assert reply.headers["Content-Range"] == content_range
    assert reply.headers["Content-Length"] == str(len(body))


@pytest.mark.parametrize("header", ["bytes=1024-", "bytes=5000-6000", "bytes=-0"])
async def test_range_outside_of_the_file_is_refused_with_its_size(files, header):
    reply = await files.get(await files.sign("part-0.parquet"), Range=header)

    assert reply.status == 416
    assert reply.headers["Content-Range"] == "bytes */1024"


@pytest.mark.parametrize("header", ["bytes=0-1,4-5", "bytes=9-1", "lines=1-2", "nonsense"])
async def test_several_ranges_and_none_are_answered_with_the_whole(files, header):
    reply = await files.get(await files.sign("part-0.parquet"), Range=header)

    assert (reply.status, reply.body) == (200, CONTENT)
    assert "Content-Range" not in reply.headers


async def test_version_that_the_client_has_is_not_sent_again(files):
    target = await files.sign("part-0.parquet")
    first = await files.get(target)

    by_tag = await files.get(target, If_None_Match=first.headers["ETag"])
    by_time = await files.get(target, If_Modified_Since=first.headers["Last-Modified"])
    by_head = await files.head(target, If_None_Match=first.headers["ETag"])

    assert [by_tag.status, by_time.status, by_head.status] == [304, 304, 304]
    assert by_tag.body == b""
    assert by_tag.headers["ETag"] == first.headers["ETag"]


async def test_tag_changes_when_the_file_does(files):
    target = await files.sign("part-0.parquet")
    first = await files.get(target)
    (files.table / "part-0.parquet").write_bytes(b"changed")

    again = await files.get(target, If_None_Match=first.headers["ETag"])
    rest = await files.get(target, Range="bytes=4-", If_Range=first.headers["ETag"])
    other = await files.get(target, If_Match=first.headers["ETag"])

    assert (again.status, again.body) == (200, b"changed")
    assert (rest.status, rest.body) == (200, b"changed")
    assert other.status == 412


async def test_range_of_the_same_version_is_served(files):
    target = await files.sign("part-0.parquet")
    first = await files.get(target)

    reply = await files.get(target, Range="bytes=4-7", If_Range=first.headers["ETag"])

    assert (reply.status, reply.body) == (206, CONTENT[4:8])


async def test_empty_file_is_served_and_has_no_ranges(files):
    (files.table / "empty").write_bytes(b"")
    target = await files.sign("empty")

    assert (await files.get(target)).headers["Content-Length"] == "0"
    assert (await files.get(target, Range="bytes=0-")).status == 416


async def test_file_larger_than_a_piece_is_served_whole(files):
    content = os.urandom(1_000_003)
    (files.table / "large").write_bytes(content)
    target = await files.sign("large")

    assert (await files.get(target)).body == content
    assert (await files.get(target, Range="bytes=3-700000")).body == content[3:700_001]


async def test_file_that_becomes_shorter_is_cut_off_and_does_not_look_complete(files, monkeypatch):
    path = files.table / "shrinking"
    path.write_bytes(b"x" * 1_000_000)
    real = os.pread

    def shrink(descriptor: int, length: int, offset: int) -> bytes:
        path.write_bytes(b"x" * 300_000)
        return real(descriptor, length, offset)

    monkeypatch.setattr(os, "pread", shrink)

    reply = await files.get(await files.sign("shrinking"))

    assert not reply.complete
    assert len(reply.body) <= 300_000


async def test_file_that_cannot_be_read_to_its_end_is_cut_off_and_nothing_is_put_in_its_place(
    files, monkeypatch
):
    (files.table / "failing").write_bytes(b"x" * 1_000_000)
    real = os.pread

    def fail(descriptor: int, length: int, offset: int) -> bytes:
        if offset:
            raise OSError(errno.EIO, "input/output error")
        return real(descriptor, length, offset)

    monkeypatch.setattr(os, "pread", fail)

    reply = await files.get(await files.sign("failing"))

    assert not reply.complete
    assert set(reply.body) <= set(b"x")


async def test_no_answer_leaves_a_file_open(files):
    target = await files.sign("part-0.parquet")
    # One thread does one thing after another: what comes last comes after every close.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    await asyncio.to_thread(int)
    before = open_descriptors()

    await files.get(target)
    await files.head(target)
    await files.get(target, Range="bytes=9999-")
    await files.get(target, If_None_Match="*")
    await files.get(await files.sign("date=2021-04-28"))
    await asyncio.to_thread(int)

    assert open_descriptors() == before


async def test_table_at_the_root_of_its_storage_is_served(files):
    (files.root / "at-root").write_bytes(b"root")

    assert (await files.get(await files.sign("at-root", table=files.root))).body == b"root"


@each_case(
    "name",
    [
        "date=2021-04-28/part 0.parquet",
        "100%.parquet",
        "a%20b.parquet",
        "a+b&c=d;e,f'g(h)*!$@:~.parquet",
        "q?x#y.parquet",
        "é\u2028😀.parquet",
        "...",
    ],
)
async def test_file_of_any_name_is_served_also_in_the_spelling_of_a_client(files, name):
    (files.table / name).write_bytes(name.encode())
    target = await files.sign(name)

    assert (await files.get(target)).body == name.encode()
    # This is what an aiohttp client makes of a URL that it is given as text.
    assert (await files.get(URL(PUBLIC + target).raw_path_qs)).body == name.encode()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_other_methods_are_not_allowed(files, method):
    reply = await files.connect().request(method, await files.sign("part-0.parquet"))

    assert reply.status == 405
    assert set(reply.headers["Allow"].replace(" ", "").split(",")) == {"GET", "HEAD"}


async def test_file_that_is_gone_is_not_found(files):
    reply = await files.get(await files.sign("part-9.parquet"))

    assert reply.status == 404
    assert json.loads(reply.body)["errorCode"] == "RESOURCE_DOES_NOT_EXIST"
    assert "part-9" not in reply.body.decode()


async def test_the_operator_is_told_once_of_a_file_that_is_gone(files, caplog):
    for _ in range(3):
        await files.get(await files.sign("part-9.parquet"))
    await files.get(await files.sign("part-8.parquet"))

    told = [record.getMessage() for record in caplog.records if "does not exist" in record.getMessage()]
    assert [name for text in told for name in ("part-9", "part-8") if name in text] == ["part-9", "part-8"]
    assert all("storage lake" in text for text in told)


async def test_url_is_dead_in_the_second_it_expires(files):
    target = await files.sign("part-0.parquet")
    files.clock[0] = END - timedelta(seconds=1)
    assert (await files.get(target)).status == 200

    files.clock[0] = END
    assert_refused(await files.get(target))


async def test_url_of_the_previous_key_is_still_served(files):
    assert KEYS.previous is not None

    reply = await files.get(await files.sign("part-0.parquet", keys=Keys(current=KEYS.previous)))

    assert reply.status == 200


async def test_url_of_a_strange_key_is_refused(files):
    strange = Keys(current=Key(id="k1", secret=b"x" * 32))

    assert_refused(await files.get(await files.sign("part-0.parquet", keys=strange)))


async def test_refusal_is_the_same_whether_the_file_exists_or_not(files):
    there, gone = [
        await files.get((await files.sign(name)).replace("&sig=", "&sig=A"))
        for name in ("part-0.parquet", "gone.parquet")
    ]

    assert_refused(there)
    assert (there.status, there.body) == (gone.status, gone.body)
    assert {*there.headers} == {*gone.headers}


CHANGES = [
    ("/lake/", "/other/"),
    ("/lake/", "/nowhere/"),
    ("/lake/", "/Lake/"),
    ("/lake/", "/%6Cake/"),
    ("/lake/", "/lake//"),
    ("/lake/", "/lake/./"),
    ("/lake/", "/x/../lake/"),
    ("part-0", "part-1"),
    ("part-0", "PART-0"),
    ("orders/", "orders2/"),
    ("orders/", "orders/../orders2/"),
    ("orders/", "orders/%2e%2e/orders2/"),
    ("orders/", "orders/%2E%2E%2Forders2/"),
    ("orders/", "orders/..%5Corders2/"),
    ("orders/", "orders/%252e%252e/orders2/"),
    ("orders/", "orders/.%00./orders2/"),
    ("orders/", "orders/%C0%AE%C0%AE/orders2/"),
    ("orders/", "orders//"),
    ("orders/", "orders%2F"),
    ("orders/", "orders/./"),
    (".parquet", ".parquet/"),
    (".parquet", ".parquet%00"),
    (".parquet", ".parquet%00.txt"),
    (".parquet", ".parquet%3F"),
    (".parquet", ".parquet%23"),
    (".parquet", ".parquet%FF"),
    (".parquet", ".parquet%"),
    (".parquet", ".parquet%2"),
    (".parquet", ".parquet%zz"),
    (".parquet", ".parquet%20"),
    (".parquet", ".parquet+"),
    (".parquet", ".parquet;x=1"),
    (".parquet?", ".parquet%3F"),
    (".parquet?", ".parquet??"),
    (".parquet?", ".parquet?&"),
    (".parquet", "x" * 9000 + ".parquet"),
    ("/sales/orders/part-0.parquet", "/../secret"),
    ("/sales/orders/part-0.parquet", "/%2e%2e/secret"),
    ("/sales/orders/part-0.parquet", "/..%2fsecret"),
    ("/sales/orders/part-0.parquet", "//etc/passwd"),
    ("/sales/orders/part-0.parquet", "/%2Fetc%2Fpasswd"),
    ("sdd=2", "sdd=1"),
    ("sdd=2", "sdd=0"),
    ("sdd=2", "sdd=02"),
    ("sdd=2", "sdd=-2"),
    ("sdd=2", "sdd=9"),
    ("sdd=2", "sdd=2&sdd=2"),
    ("sdd=2&", ""),
    ("sp=r", "sp=w"),
    ("sp=r", "sp=rl"),
    ("sp=r", "sp=r&sp=w"),
    ("sp=r", "sp=%72"),
    ("&se=", "&se=1"),
    ("&se=", "&se=0"),
    ("kid=k1", "kid=k0"),
    ("kid=k1", "kid=k2"),
    ("kid=k1", "kid="),
    ("kid=k1&", ""),
    ("&sig=", "&sig=A"),
    ("&sig=", "&sig=%41"),
    ("&sig=", "&sig=&sig="),
    ("&sig=", "&x=1&sig="),
    ("&sig=", ";sig="),
]


async def test_changed_url_is_refused_always_alike(files):
    target = await files.sign("part-0.parquet")
    wrong = {}
    for old, new in CHANGES:
        assert old in target
        head, _, tail = target.rpartition(old)
        reply = await files.get(head + new + tail)
        if reply.status != 403 or json.loads(reply.body) != REFUSED:
            wrong[old, new] = reply.status, reply.body

    assert wrong == {}


async def test_url_without_a_storage_is_nothing_at_all(files):
    target = await files.sign("part-0.parquet")

    assert (await files.get(target.replace("/lake/", "//lake/"))).status == 404
    assert (await files.get(target.replace("/lake/", "/"))).status == 403


@pytest.mark.parametrize("depth", [3, 4, 9])
async def test_file_that_is_not_below_its_tables_directory_is_refused(files, depth):
    path = "sales/orders/part-0.parquet"
    key = local_url.root_key(KEYS.current, str(files.root))
    (signature,) = local_url.sign(
        key, "lake", "", [path.encode()], depth=depth, expires_at=int(END.timestamp())
    )
    query = local_url.shared_query(KEYS.current, depth, int(END.timestamp())) + signature

    assert_refused(await files.get(f"/delta-sharing/files/lake/{path}?{query}"))


async def test_fragment_is_not_part_of_a_request(files):
    target = await files.sign("part-0.parquet")

    assert (await files.get(target + "#part-1.parquet")).status in {400, 403}
    assert (await files.get(target.replace("?", "#?"))).status in {400, 403}


async def test_bytes_that_are_not_ascii_are_refused(files):
    target = (await files.sign("part-0.parquet")).replace("part-0", "part-\udcff")

    assert (await files.get(target)).status in {400, 403}


async def test_signature_of_one_file_does_not_open_another(files):
    first, second = await files.sign("part-0.parquet"), await files.sign("part-1.parquet")
    swapped = second.partition("?")[0] + "?" + first.partition("?")[2]

    assert_refused(await files.get(swapped))


async def test_signature_for_one_storage_does_not_open_another(files):
    (files.root.parent / "sales" / "orders").mkdir(parents=True)
    (files.root.parent / "sales" / "orders" / "part-0.parquet").write_bytes(b"of the other storage")
    target = await files.sign("part-0.parquet")

    assert_refused(await files.get(target.replace("/lake/", "/other/")))


async def test_url_does_not_open_what_lies_where_its_storage_was_moved_to(files, lake, clock):
    target = await files.sign("part-0.parquet")
    (lake.parent / "moved" / "sales" / "orders").mkdir(parents=True)
    (lake.parent / "moved" / "sales" / "orders" / "part-0.parquet").write_bytes(b"of somebody else")
    moved = FilesHandler(roots={"lake": lake.parent / "moved"}.get, keys=KEYS, clock=lambda: clock[0])
    async with memory_server(files_app(moved, "/delta-sharing")) as server:
        assert_refused(await server.get(target, {}))


async def test_storage_that_was_removed_serves_no_more(files):
    assert_refused(await files.get(await files.sign("part-0.parquet", storage="removed")))


@pytest.mark.parametrize("target", ["../../../secret", "/etc/hostname", "part-0.parquet"])
async def test_link_in_the_table_is_refused_wherever_it_leads(files, target):
    (files.table / "link.parquet").symlink_to(target)

    assert_refused(await files.get(await files.sign("link.parquet")))


@pytest.mark.parametrize("target", ["../../..", "../orders2", "date=2021-04-28"])
async def test_linked_directory_in_the_table_is_refused_wherever_it_leads(files, target):
    (files.table / "link").symlink_to(target)
    (files.table / "date=2021-04-28" / "secret").write_bytes(b"")

    assert_refused(await files.get(await files.sign("link/secret")))


async def test_table_that_is_a_link_is_refused(files):
    (files.root / "sales" / "link").symlink_to("orders")

    assert_refused(await files.get(await files.sign("part-0.parquet", table=files.root / "sales" / "link")))


async def test_directory_and_pipe_are_refused_without_waiting(files):
    os.mkfifo(files.table / "pipe")

    assert_refused(await files.get(await files.sign("date=2021-04-28")))
    assert_refused(await files.get(await files.sign("pipe")))


async def test_path_too_long_for_the_disk_is_gone(files):
    assert (await files.get(await files.sign("x" * 300))).status == 404
