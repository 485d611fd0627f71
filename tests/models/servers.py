"""A web server on this machine that plays the hub or a package index from a table of answers."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Answer:
    body: bytes
    content_type: str = "application/octet-stream"
    headers: dict[str, str] = field(default_factory=dict)
    status: int = 200


@dataclass
class Site:
    """What the server answers, and what it was asked.

    A path in ``stalled`` is sent by half; the rest follows when ``released`` is set.
    """

    url: str = ""
    answers: dict[str, Answer] = field(default_factory=dict)
    stalled: set[str] = field(default_factory=set)
    released: threading.Event = field(default_factory=threading.Event)
    half_sent: threading.Event = field(default_factory=threading.Event)
    asked: list[str] = field(default_factory=list)

    def add_json(self, path: str, value: object) -> None:
        self.answers[path] = Answer(json.dumps(value).encode(), "application/json")

    def add_repository(self, repo_id: str, folder: Path) -> None:
        """Offer a folder as a repository of the hub, at its branch main."""
        names = sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
        sizes = {name: (folder / name).stat().st_size for name in names}
        files = [{"rfilename": name, "size": sizes[name], "blobId": "0" * 40} for name in names]
        info = {"id": repo_id, "sha": COMMIT, "siblings": files}
        tree = [
            {"type": "file", "path": name, "size": sizes[name], "oid": _oid(folder / name)}
            for name in names
        ]
        self.add_json(f"/api/models/{repo_id}/revision/main", info)
        self.add_json(f"/api/models/{repo_id}/tree/{COMMIT}", tree)
        for name in names:
            headers = {"X-Repo-Commit": COMMIT, "ETag": f'"{_oid(folder / name)}"'}
            answer = Answer((folder / name).read_bytes(), headers=headers)
            self.answers[f"/{repo_id}/resolve/{COMMIT}/{name}"] = answer

    def add_wheel(self, wheel: Path) -> None:
        """Offer a wheel on the page of its project, as a package index does."""
        project = wheel.name.split("-")[0].replace("_", "-")
        page = f'<html><body><a href="/files/{wheel.name}">{wheel.name}</a></body></html>'
        self.answers[f"/simple/{project}/"] = Answer(page.encode(), "text/html")
        self.answers[f"/files/{wheel.name}"] = Answer(wheel.read_bytes())


def _oid(path: Path) -> str:
    return hashlib.sha1(path.read_bytes()).hexdigest()


@contextmanager
def serve() -> Iterator[Site]:
    """Run a site until the block ends."""
    site = Site()
    handler = type("Handler", (_Handler,), {"site": site})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    site.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield site
    finally:
        site.released.set()
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    site: ClassVar[Site]

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        path = urlsplit(self.path).path
        self.site.asked.append(f"{self.command} {path}")
        unknown = Answer(b"", status=404, headers={"X-Error-Code": "RepoNotFound"})
        answer = self.site.answers.get(path, unknown)
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            self._send(path, answer.body)

    def _send(self, path: str, body: bytes) -> None:
        if path in self.site.stalled:
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            self.site.half_sent.set()
            self.site.released.wait()
            body = body[len(body) // 2 :]
        try:
            self.wfile.write(body)
        except OSError:
            self.close_connection = True  # whoever asked has been killed

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""
