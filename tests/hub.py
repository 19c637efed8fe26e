"""A stand-in for the Hub on loopback: it serves one repository and refuses others in the Hub's own ways."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

SHA = "0123456789abcdef0123456789abcdef01234567"
REPO = "someone/tiny"
REFUSED = {
    "someone/gated": (403, "GatedRepo"),
    "someone/absent": (404, "RepoNotFound"),
    "someone/private": (401, ""),
    "someone/broken": (500, ""),
}


class _Handler(BaseHTTPRequestHandler):
    folder: Path

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _answer(self, *, body: bool) -> None:
        path = urlsplit(self.path).path.removeprefix("/api/models").strip("/")
        repo, rest = "/".join(path.split("/")[:2]), path.split("/")[2:]
        if repo in REFUSED:
            status, code = REFUSED[repo]
            return self._send(status, b"{}", {"X-Error-Code": code} if code else {}, body)
        if repo != REPO:
            return self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"}, body)
        match rest:
            case ["revision", "main"] | ["revision", "v1"]:
                self._json({"id": REPO, "sha": SHA, "siblings": []}, body)
            case ["revision", _]:
                self._send(404, b"{}", {"X-Error-Code": "RevisionNotFound"}, body)
            case ["tree", _]:
                self._json([self._entry(file) for file in sorted(self.folder.iterdir())], body)
            case ["resolve", _, name] if (self.folder / name).is_file():
                data = (self.folder / name).read_bytes()
                self._send(200, data, {"ETag": f'"{_etag(data)}"', "X-Repo-Commit": SHA}, body)
            case _:
                self._send(404, b"", {"X-Error-Code": "EntryNotFound"}, body)

    def _entry(self, file: Path) -> dict[str, object]:
        return {"type": "file", "path": file.name, "size": file.stat().st_size, "oid": _etag(file.read_bytes())}

    def _json(self, value: object, body: bool) -> None:
        self._send(200, json.dumps(value).encode(), {"Content-Type": "application/json"}, body)

    def _send(self, status: int, data: bytes, headers: dict[str, str], body: bool) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(data)


def _etag(data: bytes) -> str:
    return hashlib.sha1(data).hexdigest()


@contextmanager
def hub(folder: Path) -> Iterator[str]:
    """Serves a folder as `REPO`; gives the address."""
    handler = type("Handler", (_Handler,), {"folder": folder})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
