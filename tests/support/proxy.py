"""A reverse proxy on loopback with a certificate. It forwards one path to a service, and refuses every other path."""

from __future__ import annotations

import http.client
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

OWN = {"connection", "transfer-encoding", "keep-alive", "server", "date"}  # headers of one connection


class Proxy(ThreadingHTTPServer):
    """Forwards `base` to `upstream`, with the path as it is or, with `strips`, without `base`; `outside` are other paths."""

    daemon_threads, upstream = True, ""

    def __init__(self, base: str, *, strips: bool) -> None:
        self.base, self.strips, self.outside = base, strips, list[str]()
        super().__init__(("127.0.0.1", 0), Forward)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.server_port}{self.base}"


class Forward(BaseHTTPRequestHandler):
    """One connection of a browser."""

    protocol_version = "HTTP/1.1"
    server: Proxy

    def forward(self) -> None:
        base, path = self.server.base, self.path
        if path.partition("?")[0] != base and not path.startswith(f"{base}/"):
            self.server.outside.append(path)
            self.send_error(404)
            return
        upstream = http.client.HTTPConnection(urlsplit(self.server.upstream).netloc, timeout=60)
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        target = (path.removeprefix(base) or "/") if self.server.strips else path
        upstream.request(self.command, target, body or None, dict(self.headers.items()))
        response = upstream.getresponse()
        content = response.read()
        self.send_response_only(response.status)
        for name, value in response.getheaders():
            if name.lower() not in {*OWN, "content-length"}:
                self.send_header(name, value)
        if response.status not in (204, 304):
            self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        upstream.close()

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = forward

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@contextmanager
def proxy_in(folder: Path, base: str, *, strips: bool) -> Iterator[Proxy]:
    """Run a proxy. The caller sets `upstream` before the first request."""
    about = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=127.0.0.1"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "certificate.pem")]
    subprocess.run(["openssl", "req", "-x509", "-days", "2", *about, *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    with Proxy(base, strips=strips) as proxy:
        proxy.socket = context.wrap_socket(proxy.socket, server_side=True)
        thread = threading.Thread(target=proxy.serve_forever, daemon=True)
        thread.start()
        yield proxy
        proxy.shutdown()
        thread.join(10)
