"""Bytes to a front and from it, as no client would send them."""

from __future__ import annotations

import socket

from tests.proxies.front import Front


def exchange(front: Front, text: bytes) -> bytes:
    """Send bytes as they are, and return what comes until the other side closes."""
    address = ("127.0.0.1", front.ports.recipients)
    with (
        socket.create_connection(address, 30) as sock,
        front.tls().wrap_socket(sock, server_hostname="localhost") as tls,
    ):
        tls.sendall(text)
        pieces = b""
        while piece := tls.recv(65536):
            pieces += piece
        return pieces
