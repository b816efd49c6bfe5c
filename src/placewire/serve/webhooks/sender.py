"""Send one delivery to a webhook as a signed POST, to public addresses only.

The host is resolved for every connection and all its addresses are checked. The connection goes to
one of these, so a DNS answer that changes in between has no effect.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import socket
import ssl
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import httpcore
import httpx
import msgspec

from placewire import __version__
from placewire.model.errors import one_line
from placewire.serve import Refused
from placewire.serve.ledger import ResultEntry
from placewire.serve.ledger.rows import DELIVERED, FAILED, GONE, WebhookDelivery

MAX_URL = 2_048
WEB_PORTS = (80, 443)
OWN_PORTS = 1_024  # unprivileged ports start here
RESOLVERS = 32  # threads; a slow name server blocks one

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

TIMEOUT_S = 15.0  # in total: DNS, connection, request, response
CONNECT_S = 5.0  # per address
REPLY_S = 1.0  # for the response body, which is ignored
MAX_REPLY_BYTES = 4_096
MAX_ERROR = 200  # characters of an error that are kept
GONE_STATUS = 410


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
        raise Refused(422, f"{where}: must be printable ASCII without spaces")
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
        raise Refused(422, f"{where}: must not contain a user or password")
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


def encode_delivery(delivery: WebhookDelivery, entries: Sequence[ResultEntry]) -> bytes:
    """The request body, identical for every attempt."""
    results = b",".join(
        b'{"number":%d,"id":%b,"result":%b}'
        % (entry.number, msgspec.json.encode(entry.id), entry.body)
        for entry in entries
    )
    name = msgspec.json.encode(delivery.subscription)
    return b'{"subscription":' + name + b',"results":[' + results + b"]}"


def delivery_headers(delivery: WebhookDelivery, body: bytes, now_s: int) -> list[tuple[str, str]]:
    """Headers that identify, date and sign a delivery."""
    moment = str(now_s)
    return [
        ("content-type", "application/json"),
        ("content-length", str(len(body))),
        ("user-agent", f"placewire/{__version__}"),
        ("placewire-delivery", delivery.id),
        ("placewire-attempt", str(delivery.attempts + 1)),
        ("placewire-timestamp", moment),
        ("placewire-signature", f"v1={sign(delivery.secret, moment, body)}"),
    ]


def sign(secret: str, moment: str, body: bytes) -> str:
    """HMAC-SHA256 signature of a timestamp and a body."""
    return hmac.new(secret.encode(), moment.encode() + b"." + body, "sha256").hexdigest()


class Sender:
    """Sends each delivery over a new connection, without redirects or proxies."""

    def __init__(
        self, allow_private: bool, timeout_s: float = TIMEOUT_S, tls: ssl.SSLContext | None = None
    ) -> None:
        self.timeout_s = timeout_s
        self._network = CheckedNetwork(allow_private)
        self._tls = tls or httpcore.default_ssl_context()

    async def send(self, delivery: WebhookDelivery, body: bytes) -> tuple[str, str]:
        """Send a delivery; returns its outcome and an error text."""
        try:
            async with asyncio.timeout(self.timeout_s):
                status = await self._post(delivery, body)
        except TimeoutError:
            return FAILED, f"no reply within {self.timeout_s:g} s"
        except ForbiddenAddress as error:
            return FAILED, str(error)
        except (httpcore.NetworkError, httpcore.TimeoutException) as error:
            return FAILED, f"cannot be reached: {one_line(error)[:MAX_ERROR]}"
        except (httpcore.ProtocolError, httpcore.UnsupportedProtocol) as error:
            return FAILED, f"did not reply as HTTP has it: {one_line(error)[:MAX_ERROR]}"
        except (OSError, ValueError, httpx.InvalidURL) as error:
            return FAILED, f"cannot be sent: {one_line(error)[:MAX_ERROR]}"
        if 200 <= status < 300:
            return DELIVERED, ""
        if status == GONE_STATUS:
            return GONE, f"replied {status}: wants no more"
        also = ", and redirects are not followed" if 300 <= status < 400 else ""
        return FAILED, f"replied {status}{also}"

    async def _post(self, delivery: WebhookDelivery, body: bytes) -> int:
        url = httpx.URL(delivery.url)
        port = port_of(url)
        host = url.raw_host.decode("ascii")
        named = f"[{host}]" if ":" in host else host
        own = named if url.port is None else f"{named}:{port}"
        address = httpcore.URL(scheme=url.scheme, host=host, port=port, target=url.raw_path)
        headers = [("host", own), *delivery_headers(delivery, body, int(time.time()))]
        async with (
            httpcore.AsyncConnectionPool(
                ssl_context=self._tls, network_backend=self._network, http2=False
            ) as connections,
            connections.stream(
                "POST",
                address,
                headers=headers,
                content=body,
                extensions={"timeout": {"connect": CONNECT_S}},
            ) as reply,
        ):
            await drain_reply(reply)
            return int(reply.status)

    def close(self) -> None:
        self._network.close()


async def drain_reply(reply: httpcore.Response) -> None:
    """Read a short response body, so that the receiver sees an orderly close."""
    left = MAX_REPLY_BYTES
    with suppress(TimeoutError, httpcore.NetworkError, httpcore.ProtocolError):
        async with asyncio.timeout(REPLY_S):
            async for piece in reply.aiter_stream():
                left -= len(piece)
                if left <= 0:
                    return
