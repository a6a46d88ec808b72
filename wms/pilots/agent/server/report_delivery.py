"""Delivery of one report of a job to the server, after the files that belong to it.

Files that the server refuses are named in the report; a job whose end it refuses is given back. A
claim may go with a report that is sent at once.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from .client import Client, NodeFault, Rejected, Superseded

#: The server bounds what it reads. It finds out itself which outputs it did not receive.
NAMES_IN_REPORT = 100
BYTES_OF_NAMES = 64 * 1024
REASON_LENGTH = 2000

log = logging.getLogger("pilot")


@dataclass(frozen=True)
class Upload:
    """A file that is sent before a report. `output` is its name where it is an output of the job.

    When the server refuses it the report says so: in its `reason`, after `label`, and for an output
    in its `missing_outputs`.
    """

    path: str
    source: Path
    label: str
    output: str = ""


@dataclass(frozen=True)
class AttachedFields:
    """Fields sent with a report if it goes now, and the client with the credential for them."""

    fields: Mapping[str, Any]
    client: Client


class ReportDelivery:
    """Sends files and a report in as many tries as it takes; what has arrived is not sent again."""

    def __init__(self, client: Client, path: str, uploads: Sequence[Upload] = ()) -> None:
        self.path = path
        #: The files that are still to be sent.
        self.uploads = tuple(uploads)
        self._client = client
        self._refused: list[tuple[Upload, str]] = []

    def move(self, sources: Sequence[Path]) -> None:
        """Set the new paths of the files that are still to be sent."""
        moved = enumerate(self.uploads)
        self.uploads = tuple(replace(each, source=sources[index]) for index, each in moved)

    def send(
        self, body: dict[str, Any], *, retry_s: float = 0.0, attached: AttachedFields | None = None
    ) -> dict[str, Any]:
        """Send the rest, each part once unless `retry_s` is given; return the last answer.

        A job whose end the server refuses is given back: its attempt must not stay open. The answer
        is empty then.
        """
        while self.uploads:
            self._upload(self.uploads[0], retry_s)
            self.uploads = self.uploads[1:]
        report = _with_refused(body, self._refused)
        client = self._client
        if attached is not None:
            client, report = attached.client, {**report, **attached.fields}
        try:
            return client.call(self.path, report, retry_s=retry_s)
        except Superseded:
            raise
        except Rejected as error:
            if not is_end_report(body):
                raise
            log.error("%s was not accepted: %s", self.path, error)
            self.give_back(f"the server refused how it ended: {error}", retry_s=retry_s)
            return {}

    def give_back(self, reason: str, *, retry_s: float = 0.0) -> None:
        """Report the job as not run, in place of how it ended."""
        report = {"event": "not_run", "reason": reason[:REASON_LENGTH]}
        self._client.call(self.path, report, retry_s=retry_s)

    def _upload(self, each: Upload, retry_s: float) -> None:
        try:
            self._client.upload(each.path, each.source, retry_s=retry_s)
        except Superseded:
            raise
        except (Rejected, NodeFault) as error:
            self._refused.append((each, f"{each.label} was not stored: {error}"))


def is_end_report(body: Mapping[str, Any]) -> bool:
    """Whether a report tells how a payload ended."""
    return body.get("event") == "ended"


def bounded_names(names: Iterable[str]) -> list[str]:
    """Names, as many as a report may carry."""
    kept: list[str] = []
    left = BYTES_OF_NAMES
    for name in islice(names, NAMES_IN_REPORT):
        left -= len(json.dumps(name))
        if left < 0:
            break
        kept.append(name)
    return kept


def _with_refused(body: dict[str, Any], refused: Sequence[tuple[Upload, str]]) -> dict[str, Any]:
    """Report with the names and reasons of the files that the server refused."""
    if not refused:
        return body
    reasons = [body.get("reason", ""), *(why for _, why in refused)]
    missing = [*body.get("missing_outputs", ()), *(each.output for each, _ in refused)]
    return {
        **body,
        "reason": "; ".join(filter(None, reasons))[:REASON_LENGTH],
        "missing_outputs": bounded_names(filter(None, missing)),
    }
