"""Sending a parcel to a webhook: one signed POST, and what its receiver says to it."""

from __future__ import annotations

import asyncio
import hmac
import ssl
import time
from collections.abc import Sequence
from contextlib import suppress

import httpcore
import httpx
import msgspec

from placewire import __version__
from placewire.serve.ledger import Entry
from placewire.serve.ledger.rows import DELIVERED, FAILED, GONE, Parcel
from placewire.serve.webhooks.addresses import CheckedNetwork, Forbidden, port_of

TIMEOUT_S = 15.0  # for everything: name, connection, body, reply
CONNECT_S = 5.0  # to one address of a name
REPLY_S = 1.0  # for the body of a reply, which nobody needs
MOST_REPLY_BYTES = 4_096
GONE_STATUS = 410


def encode_parcel(parcel: Parcel, entries: Sequence[Entry]) -> bytes:
    """The body: the same for every attempt."""
    results = b",".join(
        b'{"number":%d,"id":%b,"result":%b}'
        % (entry.number, msgspec.json.encode(entry.id), entry.body)
        for entry in entries
    )
    name = msgspec.json.encode(parcel.subscription)
    return b'{"subscription":' + name + b',"results":[' + results + b"]}"


def headers_of(parcel: Parcel, body: bytes, now_s: int) -> list[tuple[str, str]]:
    """What tells a receiver who sent it, when, and whether it had it before."""
    moment = str(now_s)
    return [
        ("content-type", "application/json"),
        ("content-length", str(len(body))),
        ("user-agent", f"placewire/{__version__}"),
        ("placewire-delivery", parcel.id),
        ("placewire-attempt", str(parcel.attempts + 1)),
        ("placewire-timestamp", moment),
        ("placewire-signature", f"v1={sign(parcel.secret, moment, body)}"),
    ]


def sign(secret: str, moment: str, body: bytes) -> str:
    """The signature of something that is sent out."""
    return hmac.new(secret.encode(), moment.encode() + b"." + body, "sha256").hexdigest()


class Sender:
    """Sends parcels, each by a connection of its own; follows no redirects, asks no proxies."""

    def __init__(
        self, allow_private: bool, timeout_s: float = TIMEOUT_S, tls: ssl.SSLContext | None = None
    ) -> None:
        self.timeout_s = timeout_s
        self._network = CheckedNetwork(allow_private)
        self._tls = tls or httpcore.default_ssl_context()

    async def send(self, parcel: Parcel, body: bytes) -> tuple[str, str]:
        """Send a parcel; gives what became of it, and what was wrong."""
        try:
            async with asyncio.timeout(self.timeout_s):
                status = await self._post(parcel, body)
        except TimeoutError:
            return FAILED, f"no reply within {self.timeout_s:g} s"
        except Forbidden as error:
            return FAILED, str(error)
        except (httpcore.NetworkError, httpcore.TimeoutException) as error:
            return FAILED, f"cannot be reached: {in_one_line(error)}"
        except (httpcore.ProtocolError, httpcore.UnsupportedProtocol) as error:
            return FAILED, f"did not reply as HTTP has it: {in_one_line(error)}"
        except (OSError, ValueError, httpx.InvalidURL) as error:
            return FAILED, f"cannot be sent: {in_one_line(error)}"
        if 200 <= status < 300:
            return DELIVERED, ""
        if status == GONE_STATUS:
            return GONE, f"replied {status}: wants no more"
        also = ", and redirects are not followed" if 300 <= status < 400 else ""
        return FAILED, f"replied {status}{also}"

    async def _post(self, parcel: Parcel, body: bytes) -> int:
        url = httpx.URL(parcel.url)
        port = port_of(url)
        host = url.raw_host.decode("ascii")
        named = f"[{host}]" if ":" in host else host
        own = named if url.port is None else f"{named}:{port}"
        address = httpcore.URL(scheme=url.scheme, host=host, port=port, target=url.raw_path)
        headers = [("host", own), *headers_of(parcel, body, int(time.time()))]
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
            await read_little(reply)
            return int(reply.status)

    def close(self) -> None:
        self._network.close()


async def read_little(reply: httpcore.Response) -> None:
    """Take a short body off the wire, so that its sender sees an orderly end."""
    left = MOST_REPLY_BYTES
    with suppress(TimeoutError, httpcore.NetworkError, httpcore.ProtocolError):
        async with asyncio.timeout(REPLY_S):
            async for piece in reply.aiter_stream():
                left -= len(piece)
                if left <= 0:
                    return


def in_one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
