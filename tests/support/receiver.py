"""A receiver of webhooks for tests: remembers what it got, and replies as it is told to."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple


class Got(NamedTuple):
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes
    at_s: float
    status: int

    @property
    def told(self) -> dict[str, Any]:
        return dict(json.loads(self.body))

    @property
    def numbers(self) -> list[int]:
        return [one["number"] for one in self.told["results"]]


class Receiver:
    """An HTTP server on this machine; `reply` says which status a path gets, after how long."""

    def __init__(self, reply: Callable[[str, int], int] = lambda path, seen: 200) -> None:
        self.got: list[Got] = []
        self.reply = reply
        self.wait_s = 0.0
        self._closed = threading.Event()
        self.headers: dict[str, str] = {}
        self.body = b"thank you"
        self.server_name: str | None = None
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                receiver.take(self)

            do_GET = do_POST

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def use_tls(self, certificate: Path) -> None:
        """Speak TLS from now on, and note the name that is asked for."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        context.sni_callback = lambda _, name, __: setattr(self, "server_name", name)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    def url(self, path: str = "/hook") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def of(self, path: str) -> list[Got]:
        return [one for one in self.got if one.path == path]

    def take(self, handler: BaseHTTPRequestHandler) -> None:
        size = int(handler.headers.get("content-length", 0))
        body = handler.rfile.read(size)
        if len(body) < size:
            return  # its sender has died
        status = self.reply(handler.path, len(self.of(handler.path)))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        self.got.append(Got(handler.path, headers, body, time.monotonic(), status))
        if "slow" in handler.path:
            self._closed.wait(self.wait_s)
        try:
            handler.send_response(status)
            for name, value in self.headers.items():
                handler.send_header(name, value)
            handler.end_headers()
            handler.wfile.write(self.body)
        except OSError:
            pass

    def close(self) -> None:
        self._closed.set()
        self._server.shutdown()
        self._server.server_close()
