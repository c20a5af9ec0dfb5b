"""The names by which requests may call this server (``Host``: RFC 9110 section 7.2).

A page of a foreign site can make the browser read answers of a server on this machine: the site's own name, looked up
again, leads to 127.0.0.1 (DNS rebinding), and then page and server have one origin for the browser. The ``Host`` of
such a request is the foreign name. So this server answers only to its own names.
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
"""``host`` or ``host:port`` (RFC 3986 section 3.2), with names in ASCII, as browsers send them."""

_PRIVATE = (".localhost", ".internal", ".local", ".home.arpa")
"""Ends of names that nobody can register in the public DNS (RFC 6761, RFC 6762, RFC 8375, ICANN's reservation of 2024).

No foreign site has such a name. Containers call their machine ``host.docker.internal`` or ``host.containers.internal``.
"""


@dataclass(frozen=True, slots=True)
class Hosts:
    """The names that a server answers to.

    Attributes:
        names: names in the spelling of ``host_of``, in addition to ``localhost``, this machine's loopback addresses,
            and names that nobody can register in the public DNS.
        answers_private: whether the server answers to all addresses, and to all names of one label, which a network has
            for its machines.
        answers_any: whether the server answers to every name.
    """

    names: frozenset[str] = frozenset()
    answers_private: bool = False
    answers_any: bool = False

    def require(self, headers: Headers) -> None:
        """Raises ``ApiError`` for a request that calls the server by another name.

        Every browser sends a ``Host``. A client without one is a program that speaks HTTP/1.0.
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
        if host == "localhost" or host in self.names or host.endswith(_PRIVATE):
            return True
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return self.answers_private and "." not in host
        return self.answers_private or address.is_loopback


def hosts_for(host: str, addresses: Iterable[str], allowed: Sequence[str], *, has_keys: bool) -> Hosts:
    """Returns the names that a server answers to; the name of this machine is one of them, with and without its domain.

    Args:
        host: name or address of ``--host``.
        addresses: addresses that the server listens on.
        allowed: further names; ``"*"`` for every name.
        has_keys: whether requests need a key. A foreign page has none, so a server on a network with keys and without
            listed names answers to every name.
    """
    is_local = all(ipaddress.ip_address(address.partition("%")[0]).is_loopback for address in addresses)
    machine = socket.gethostname()
    own = (host, machine, machine.partition(".")[0])
    found = {named for name in (*own, *allowed) if (named := host_of(name)) is not None}
    answers_any = ANY_HOST in allowed or (has_keys and not is_local)
    return Hosts(frozenset(found), answers_private=not is_local, answers_any=answers_any)


def host_of(text: str) -> str | None:
    """Returns a host in the spelling used for comparisons; ``None`` if the text is not exactly a host.

    IPv6 addresses may lack their brackets.
    """
    found = split_authority(f"[{text}]" if text.count(":") > 1 and "[" not in text else text)
    return None if found is None or found[1] else found[0]


def split_authority(text: str) -> tuple[str, str] | None:
    """Splits ``host:port``; the port is ``""`` if there is none. Returns ``None`` for other texts.

    The host is in lower case and without a full name's final dot; addresses are as Python writes them.
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
