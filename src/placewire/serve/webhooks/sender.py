"""Send one delivery to a webhook as a signed POST, and classify the response."""

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
from placewire.model.errors import one_line
from placewire.serve.ledger import ResultEntry
from placewire.serve.ledger.rows import DELIVERED, FAILED, GONE, WebhookDelivery
from placewire.serve.webhooks.addresses import CheckedNetwork, ForbiddenAddress, port_of

TIMEOUT_S = 15.0  # in total: DNS, connection, request, response
CONNECT_S = 5.0  # per address
REPLY_S = 1.0  # for the response body, which is ignored
MAX_REPLY_BYTES = 4_096
MAX_ERROR = 200  # characters of an error that are kept
GONE_STATUS = 410


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
