"""Which URLs a webhook may have: public addresses only, checked at connection time.

The host is resolved for every connection and all its addresses are checked. The connection goes to
one of these, so a DNS answer that changes in between has no effect.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import httpcore
import httpx

from placewire.serve.errors import Refused

MAX_URL = 2_048
WEB_PORTS = (80, 443)
OWN_PORTS = 1_024  # unprivileged ports start here
RESOLVERS = 32  # threads; a slow name server blocks one

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class ForbiddenAddress(Exception):
    """An address that webhooks may not use."""


def embedded_addresses(address: Address) -> list[Address]:
    """The address itself, and IPv4 addresses that it embeds."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    inner = [address.sixtofour, *(address.teredo or ())]
    return [address, *(one for one in inner if one is not None)]


def is_public(text: str) -> bool:
    """Whether an address is public and unicast."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return all(
        one.is_global
        and not (one.is_multicast or one.is_reserved or one.is_unspecified)
        and not (one.is_loopback or one.is_link_local or getattr(one, "is_site_local", False))
        for one in embedded_addresses(address)
    )


def read_url(text: object, allow_private: bool) -> str:
    """Validate the URL of a webhook; raises Refused."""
    where = "webhook.url"
    if not isinstance(text, str) or not 1 <= len(text) <= MAX_URL:
        raise Refused(422, f"{where}: must be a text of 1 to {MAX_URL} characters")
    if not text.isascii() or not text.isprintable() or " " in text or "\\" in text:
        raise Refused(422, f"{where}: must be written in printable ASCII without spaces")
    try:
        url = httpx.URL(text)
        host = url.host  # raises for invalid host names
    except (httpx.InvalidURL, ValueError) as error:
        raise Refused(422, f"{where}: cannot be read: {error}") from None
    if url.scheme not in ("http", "https"):
        raise Refused(422, f"{where}: must begin with http:// or https://, got {text[:40]!r}")
    if not host:
        raise Refused(422, f"{where}: must name a host")
    if url.userinfo or "@" in text.split("/")[2]:
        raise Refused(422, f"{where}: must have no user or password in it")
    if url.fragment or "#" in text:
        raise Refused(422, f"{where}: must have no fragment")
    port = port_of(url)
    if not 1 <= port <= 65_535:
        raise Refused(422, f"{where}: the port must be 1..65535, got {port}")
    if not allow_private and port not in WEB_PORTS and port < OWN_PORTS:
        raise Refused(422, f"{where}: the port must be 80, 443 or at least 1024, got {port}")
    if not allow_private and (is_literal(url.host) and not is_public(url.host)):
        raise Refused(422, f"{where}: must not be a private address, got {url.host}")
    if not allow_private and url.host.rstrip(".").endswith("localhost"):
        raise Refused(422, f"{where}: must not be this machine, got {url.host}")
    return text


def is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def port_of(url: httpx.URL) -> int:
    return url.port if url.port is not None else 443 if url.scheme == "https" else 80


class CheckedNetwork(httpcore.AsyncNetworkBackend):
    """A network backend that connects to checked addresses only."""

    def __init__(self, allow_private: bool) -> None:
        self.allow_private = allow_private
        self._network = httpcore.AnyIOBackend()
        self._threads = ThreadPoolExecutor(RESOLVERS, "resolver")

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        addresses = await self.resolve(host, port)
        for last, address in enumerate(addresses, 1 - len(addresses)):
            try:
                return await self._network.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if last == 0:
                    raise
        raise AssertionError

    async def resolve(self, host: str, port: int) -> list[str]:
        """All addresses of a host; raises ForbiddenAddress if any is private, or ConnectError."""
        loop = asyncio.get_running_loop()
        try:
            found = await loop.run_in_executor(
                self._threads, socket.getaddrinfo, host, port, 0, socket.SOCK_STREAM
            )
        except (OSError, UnicodeError):
            raise httpcore.ConnectError("the name cannot be resolved") from None
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        if not self.allow_private and not all(is_public(address) for address in addresses):
            raise ForbiddenAddress("the name leads to a private address")
        if not addresses:
            raise httpcore.ConnectError("the name cannot be resolved")
        return addresses

    async def connect_unix_socket(self, *_: object, **__: object) -> httpcore.AsyncNetworkStream:
        raise ForbiddenAddress("sockets of this machine are no addresses")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
