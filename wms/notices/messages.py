"""Messages of notices as texts: JSON bodies of webhooks, subjects, headers and texts of e-mails.

Also the type of a message (notice, summary, digest, test) and the path of the page of a notice's
object.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from wms.accounting.frontends import DEFAULT_FRONTEND, DEFAULT_KEY
from wms.notices.models import Channel, Delivery, Notice, SubjectKind

#: A message tells so many notices; of the rest it says how many they are.
MAX_TOLD = 50
_PATHS: Mapping[str, str] = {
    SubjectKind.DAG: "/dags/{}/",
    SubjectKind.JOB: "/jobs/{}/",
    SubjectKind.FAILURES: "/errors/{}/",
    SubjectKind.SITE: "/sites/{}/",
    SubjectKind.FRONTEND: "/frontends/{}/",
    SubjectKind.LOOP: "/",
    SubjectKind.SCHEDULE: "/schedules/{}/",
    SubjectKind.CHANNEL: "/account/?tab=notifications",
}
_NAMES: Mapping[str, str] = {
    SubjectKind.DAG: "DAG {}",
    SubjectKind.JOB: "job {}",
    SubjectKind.FAILURES: "failure group {}",
    SubjectKind.SITE: "site {}",
    SubjectKind.FRONTEND: "frontend {}",
    SubjectKind.LOOP: "control loop {}",
    SubjectKind.SCHEDULE: "schedule {}",
    SubjectKind.CHANNEL: "channel {}",
}


def path_of(kind: str, subject_id: str) -> str:
    """Path of the object's page in the portal."""
    return _PATHS[kind].format(subject_id)


@dataclass(frozen=True, slots=True)
class Message:
    """One message to one user: its type, its object and its notices."""

    id: str
    type: str
    thread: str
    username: str
    portal: str
    notices: Sequence[Notice]
    #: Number of further notices, which were not read.
    more: int = 0

    @property
    def shown(self) -> Sequence[Notice]:
        """The latest notices, up to the limit of a message."""
        return self.notices[:MAX_TOLD]

    @property
    def left_out(self) -> int:
        """Number of notices left out for want of room."""
        return max(0, len(self.notices) - MAX_TOLD) + self.more


def type_of(delivery: Delivery, channel: Channel) -> str:
    """Type of the message, as webhooks name it."""
    if delivery.is_test:
        return "test"
    if channel.pace != Channel.Pace.NOW:
        return "digest"
    return "notice" if delivery.thread else "summary"


def json_of(message: Message) -> bytes:
    """The body of a webhook."""
    payload = {
        "id": message.id,
        "type": message.type,
        "portal": message.portal,
        "user": message.username,
        "notices": [_value_of(notice, message.portal) for notice in message.shown],
        "left_out": message.left_out,
    }
    return json.dumps(payload, sort_keys=True).encode()


def _value_of(notice: Notice, portal: str) -> dict[str, Any]:
    return {
        "id": notice.pk,
        "kind": notice.kind,
        "title": notice.title,
        "text": notice.text,
        "count": notice.count,
        "happened_at": notice.happened_at.isoformat(),
        "subject": {
            "kind": notice.subject_kind,
            "id": notice.subject_id,
            "url": portal + path_of(notice.subject_kind, notice.subject_id),
        },
    }


def subject_of(message: Message) -> str:
    """The subject line: the same for all messages about an object, so that they stay together."""
    if message.thread:
        kind, _, name = message.thread.partition(":")
        is_default = kind == SubjectKind.FRONTEND and name == DEFAULT_KEY
        return f"[Pilotage] {DEFAULT_FRONTEND if is_default else _NAMES[kind].format(name)}"
    return {
        "test": "[Pilotage] A test",
        "digest": "[Pilotage] Digest",
        "summary": "[Pilotage] Summary",
    }[message.type]


def headers_of(message: Message) -> dict[str, str]:
    """The headers by which mail programs keep messages about an object together."""
    host = urlsplit(message.portal).hostname or "localhost"
    thread = _plain(f"{message.thread or message.type}.{message.username}")
    root = f"<{thread}.notices@{host}>"
    return {
        "Message-ID": f"<{message.id}@{host}>",
        "In-Reply-To": root,
        "References": root,
        "Auto-Submitted": "auto-generated",
        "X-Pilotage-Delivery": message.id,
    }


def _plain(text: str) -> str:
    """The text in the characters that an id of a message may have."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "." for c in text)


def text_of(message: Message) -> str:
    """The text of an e-mail."""
    if message.type == "test":
        lines = ["This is a test: notices of Pilotage reach you here.", ""]
    else:
        lines = _intro(message)
        for notice in message.shown:
            lines += _lines_of(notice, message.portal)
    if message.left_out:
        lines += [f"... and {message.left_out} more: {message.portal}/notices/", ""]
    lines += [
        "--",
        f"You asked for this in Pilotage: {message.portal}/account/?tab=notifications",
    ]
    return "\n".join(lines) + "\n"


def _intro(message: Message) -> list[str]:
    if len(message.notices) == 1:
        return []
    return [f"{len(message.notices) + message.more} notices:", ""]


def _lines_of(notice: Notice, portal: str) -> list[str]:
    return [
        f"{notice.title} ({notice.happened_at:%Y-%m-%d %H:%M:%S} UTC)",
        *(f"  {line}" for line in notice.text.splitlines()),
        f"  {portal}{path_of(notice.subject_kind, notice.subject_id)}",
        "",
    ]
