from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gateway.domain.location import Location, parse_location
from gateway.errors import NotFound, Unsupported
from gateway.ports import LogFile
from vendors.local.reader import LocalReader


@pytest.fixture
def lake(tmp_path):
    directory = tmp_path / "lake"
    directory.mkdir()
    (tmp_path / "secret.json").write_bytes(b"secret")
    return directory


@pytest.fixture
def reader(lake):
    return LocalReader(parse_location(str(lake)))


def table(directory: Path, **files: bytes) -> Location:
    log = directory / "_delta_log"
    log.mkdir(parents=True)
    for name, content in files.items():
        (log / name).write_bytes(content)
    return parse_location(str(directory))


async def names(reader: LocalReader, location: Location, start: str = "") -> list[str]:
    return [file.name for file in await reader.list_log(location, start=start)]


async def test_files_of_a_log_are_listed_by_name_with_size_and_time(lake, reader):
    location = table(lake / "a" / "t", **{"1.json": b"12", "0.json": b"1"})
    os.utime(lake / "a" / "t" / "_delta_log" / "0.json", (1_700_000_000, 1_700_000_000))

    listed = await reader.list_log(location, start="")

    assert [file.name for file in listed] == ["0.json", "1.json"]
    assert listed[0] == LogFile("0.json", 1, datetime.fromtimestamp(1_700_000_000, tz=UTC))


async def test_listing_starts_at_a_name_or_where_it_would_stand(lake, reader):
    location = table(lake / "t", **{f"{number}.json": b"" for number in range(4)})

    assert await names(reader, location, "2.json") == ["2.json", "3.json"]
    assert await names(reader, location, "1.k") == ["2.json", "3.json"]
    assert await names(reader, location, "9") == []


async def test_table_at_the_prefix_itself_is_read(lake, reader):
    location = table(lake, **{"0.json": b"{}"})

    assert await names(reader, location) == ["0.json"]
    assert await reader.read_log(location, "0.json") == b"{}"


async def test_table_or_log_that_is_not_there_has_no_files(lake, reader):
    (lake / "empty").mkdir()

    assert await names(reader, parse_location(f"{lake}/gone")) == []
    assert await names(reader, parse_location(f"{lake}/empty")) == []


async def test_directories_links_and_pipes_in_a_log_are_not_listed(lake, reader):
    location = table(lake / "t", **{"0.json": b""})
    log = lake / "t" / "_delta_log"
    (log / "_sidecars").mkdir()
    (log / "1.json").symlink_to("0.json")
    os.mkfifo(log / "2.json")

    assert await names(reader, location) == ["0.json"]


async def test_file_of_a_folder_below_the_log_is_read(lake, reader):
    location = table(lake / "t")
    (lake / "t" / "_delta_log" / "_sidecars").mkdir()
    (lake / "t" / "_delta_log" / "_sidecars" / "x.parquet").write_bytes(b"x")

    assert await reader.read_log(location, "_sidecars/x.parquet") == b"x"


async def test_log_file_that_is_gone_is_not_found(lake, reader):
    location = table(lake / "t")

    with pytest.raises(NotFound, match=r"0\.json") as raised:
        await reader.read_log(location, "0.json")

    assert str(lake) not in raised.value.message


@pytest.mark.parametrize(
    "name", ["../part-0.parquet", "../../../secret.json", "..", ".", "", "/etc/passwd", "a\0b"]
)
async def test_name_that_leaves_the_log_is_refused(lake, reader, name):
    location = table(lake / "t")
    (lake / "t" / "part-0.parquet").write_bytes(b"rows")

    with pytest.raises(Unsupported):
        await reader.read_log(location, name)


@pytest.mark.parametrize("name", ["link", "pipe", "folder"])
async def test_what_is_not_a_regular_file_is_not_read(lake, tmp_path, reader, name):
    location = table(lake / "t")
    log = lake / "t" / "_delta_log"
    (log / "link").symlink_to(tmp_path / "secret.json")
    os.mkfifo(log / "pipe")
    (log / "folder").mkdir()

    with pytest.raises((NotFound, Unsupported)):
        await reader.read_log(location, name)


@pytest.mark.parametrize("linked", ["t", "t/_delta_log"])
async def test_log_behind_a_link_is_refused(lake, tmp_path, reader, linked):
    table(tmp_path / "outside", **{"0.json": b"secret"})
    target = tmp_path / "outside" if linked == "t" else tmp_path / "outside" / "_delta_log"
    (lake / linked).parent.mkdir(exist_ok=True)
    (lake / linked).symlink_to(target)
    location = parse_location(f"{lake}/t")

    with pytest.raises(Unsupported, match="symbolic link"):
        await reader.list_log(location, start="")
    with pytest.raises(Unsupported, match="symbolic link"):
        await reader.read_log(location, "0.json")


async def test_link_on_the_way_to_the_prefix_is_followed(lake, tmp_path):
    table(lake / "t", **{"0.json": b"{}"})
    (tmp_path / "link").symlink_to(lake)

    reader = LocalReader(parse_location(f"{tmp_path}/link"))

    assert await names(reader, parse_location(f"{tmp_path}/link/t")) == ["0.json"]


async def test_location_with_percent_signs_and_spaces_is_a_plain_path(lake, reader):
    location = table(lake / "50%20off é", **{"0.json": b"{}"})

    assert await reader.read_log(location, "0.json") == b"{}"


async def test_errors_of_the_disk_do_not_show_paths(lake, reader):
    (lake / "t").write_bytes(b"not a directory")

    with pytest.raises(Unsupported) as raised:
        await reader.list_log(parse_location(f"{lake}/t"), start="")

    assert str(lake) not in raised.value.message
