from __future__ import annotations

from gateway.demo.embedded_s3 import Ports, commands

COMMANDS = commands(Ports(*range(11_001, 11_009)))


def test_every_part_listens_on_loopback_only():
    assert all({"-ip=127.0.0.1", "-ip.bind=127.0.0.1"} <= set(command) for command in COMMANDS)
    # Left out, these are opened on fixed ports.
    assert {"-port.iceberg=0", "-port.lance=0"} <= set(COMMANDS[-1])


def test_no_part_chooses_a_port():
    ports = {
        word.partition("=")[2]
        for command in COMMANDS
        for word in command
        if ".port" in word or "-port" in word
    }
    assert ports - {"0"} == set(map(str, range(11_001, 11_009)))


def test_store_calls_nobody():
    assert "-telemetry=false" in COMMANDS[0]


def test_every_part_is_called_by_names_below_its_own_directory():
    assert not [word for command in COMMANDS for word in command if "=/" in word]
    # Left out, they lie in /tmp.
    assert "-localSocket=filer.sock" in COMMANDS[-2]
    assert "-localSocket=s3.sock" in COMMANDS[-1]


def test_parts_are_processes_of_their_own():
    # In one process they open sockets in /tmp, whatever is said.
    assert [command[0] for command in COMMANDS] == ["master", "volume", "filer", "s3"]
