"""Client of the pilot API: one pilot's requests, for tests."""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse
from django.test import Client

from wms.pilots.models import Pilot

SECRET = "once"
TOKEN = "ab" * 32
NODE = {
    "hostname": "wn1",
    "platform": "linux-x86_64",
    "cores": 8,
    "memory_mb": 16000,
    "disk_mb": 50000,
    "slot_cores": 8,
    "slot_memory_mb": 16000,
    "slot_gpus": 0,
    "python": "3.9.2",
    "agent_version": "0.1.0",
}
OFFER = {
    "cpu_time_s": 3600,
    "cores": 1,
    "memory_mb": 2000,
    "disk_mb": 1000,
    "gpus": 0,
    "platform": "linux-x86_64",
    "tags": [],
    "required_tags": [],
}
ENDED = {
    "event": "ended",
    "exit_code": 0,
    "signal": None,
    "wall_s": 1.5,
    "cpu_s": 1.0,
    "max_rss_mb": 12,
    "reason": "",
    "missing_outputs": [],
}


@dataclass
class PilotClient:
    """A pilot in the form of its requests."""

    pilot: Pilot
    token: str = TOKEN

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> HttpResponse:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        credential = {"Authorization": f"Bearer {self.pilot.uuid}:{self.token}"} | headers
        return Client(enforce_csrf_checks=True, headers=credential).generic(
            method, f"/pilot/v1/{path}", content, content_type="application/json"
        )

    def post(self, path: str, body: Any) -> HttpResponse:
        return self.request("POST", path, body)

    def put(self, path: str, content: bytes, sha256: str | None = None) -> HttpResponse:
        digest = hashlib.sha256(content).hexdigest() if sha256 is None else sha256
        return self.request("PUT", path, content, **{"X-Content-SHA256": digest})

    def register(self, **changes: Any) -> HttpResponse:
        body = {"pilot": str(self.pilot.uuid), "secret": SECRET, "token": self.token, "node": NODE}
        return self.post("register", body | changes)

    def ask(self, **changes: Any) -> HttpResponse:
        """Ask for a job, with a key of its own where none is given."""
        return self.post("claim", OFFER | {"claim": secrets.token_hex(16)} | changes)

    def claim(self, **changes: Any) -> dict[str, Any]:
        job: dict[str, Any] = self.ask(**changes).json()["job"]
        return job
