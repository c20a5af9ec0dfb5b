"""The names by which requests may call this server (``Host``: RFC 9110 section 7.2).

A page of a stranger's site can make the browser read what a server on this machine answers: its own name, looked up
once more, leads to 127.0.0.1 (DNS rebinding), and for the browser page and server are one origin then. The ``Host`` of
such a request is the stranger's name, so a server that answers to its own names only is not deceived.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

from constrain.server.http.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from starlette.datastructures import Headers

ANY_HOST = "*"

_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{0,5}))?")
"""``host`` or ``host:port`` (RFC 3986 section 3.2), with names as browsers send them: in ASCII."""

_PRIVATE = (".internal", ".local", ".home.arpa")
"""Ends of names that nobody can register in the public DNS (RFC 6762, RFC 8375, ICANN's reservation of 2024)."""


@dataclass(frozen=True, slots=True)
class Hosts:
    """The names that a server answers to.

    Attributes:
        names: as ``host_of`` writes them, beside ``localhost`` and the addresses of this machine alone.
        answers_private: whether it answers to all addresses, and to all names that nobody can register in the public
            DNS: a network has many names for a machine, and no stranger's site has one of these.
        answers_any: whether it answers to every name.
    """

    names: frozenset[str] = frozenset()
    answers_private: bool = False
    answers_any: bool = False

    def require(self, headers: Headers) -> None:
        """Raises ``ApiError`` for a request that calls the server by another name.

        Every browser sends a ``Host``. Where there is none, the client is a program that speaks HTTP/1.0.
        """
        if self.answers_any:
            return
        for given in headers.getlist("host"):
            found = split_authority(given)
            if found is None or not self._answers(found[0]):
                raise ApiError(
                    f"This server does not answer to the host {given!r:.200}, which may be another site's name for "
                    "this machine. If it is a name of this server, start it with --allowed-host and that name, without "
                    "the port.",
                    status=403,
                    code="host_not_allowed",
                )

    def _answers(self, host: str) -> bool:
        if host == "localhost" or host in self.names:
            return True
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return self.answers_private and ("." not in host or host.endswith(_PRIVATE))
        return self.answers_private or address.is_loopback


def hosts_for(host: str, addresses: Iterable[str], allowed: Sequence[str], *, has_keys: bool) -> Hosts:
    """The names that a server answers to.

    Args:
        host: name or address that it was told to listen on.
        addresses: that it listens on.
        allowed: more names; ``"*"`` for every one.
        has_keys: whether requests need a key. A stranger's page has none, so a server for a network, whose names nobody
            lists, answers to all then.
    """
    is_local = all(ipaddress.ip_address(address.partition("%")[0]).is_loopback for address in addresses)
    own = [host] if is_local else [host, socket.gethostname()]
    found = {named for name in (*own, *allowed) if (named := host_of(name)) is not None}
    answers_any = ANY_HOST in allowed or (has_keys and not is_local)
    return Hosts(frozenset(found), answers_private=not is_local, answers_any=answers_any)


def host_of(text: str) -> str | None:
    """A host in the spelling that is compared; ``None`` if the text is more than a host, or none.

    IPv6 addresses may lack their brackets.
    """
    found = split_authority(f"[{text}]" if text.count(":") > 1 and "[" not in text else text)
    return None if found is None or found[1] else found[0]


def split_authority(text: str) -> tuple[str, str] | None:
    """Host and port of ``host:port``, the port ``""`` where it has none; ``None`` if the text is no such thing.

    The host is in small letters and without the dot that ends a full name; addresses are as Python writes them.
    """
    found = _AUTHORITY.fullmatch(text.strip(" \t"))
    if found is None:
        return None
    name, port = found[1].lower(), found[2] or ""
    try:
        if name.startswith("["):
            address = ipaddress.IPv6Address(name[1:-1])
            return str(address.ipv4_mapped or address), port
    except ValueError:
        return None
    return name.removesuffix(".") or name, port
