"""Listening sockets and their URLs."""

from __future__ import annotations

import socket

_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - what they stand for, for clients on this machine


def listen(host: str, port: int) -> list[socket.socket]:
    """Returns sockets for all addresses of a host (name or address); ``port`` 0 means any free one.

    The sockets listen at once, so that no other program can take the port; early clients wait until they are served.
    Raises ``OSError`` with the address that cannot be used.
    """
    sockets: list[socket.socket] = []
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, address in dict.fromkeys((family, address[:2]) for family, _, _, _, address in found):
            # Named, as asyncio sends small pieces without delay (TCP_NODELAY) only where the protocol is known.
            one = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
            sockets.append(one)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            one.bind((address[0], port))
            one.listen()
            port = one.getsockname()[1]  # one port for all addresses
    except OSError as error:
        for one in sockets:
            one.close()
        raise OSError(f"cannot listen on {host}, port {port}: {error.strerror}") from error
    return sockets


def url_of(listening: socket.socket) -> str:
    """Returns the URL by which programs on this machine reach a socket."""
    host, port, *_ = listening.getsockname()
    host = _EVERYWHERE.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
