"""Remarks as values: entries of the shift log, about a DAG, a site, a failure group, or none."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from .model import Raw, time_of


@dataclass(frozen=True)
class Remark:
    """A remark; `subject_kind` is dag, site, failure or log, and of log the id is None."""

    id: int
    author: str
    event: str
    subject_kind: str
    subject_id: int | None
    subject_name: str
    text: str
    ticket: str
    person: str
    until: datetime | None
    created_at: datetime | None
    raw: Raw = field(repr=False, compare=False)

    @classmethod
    def of(cls, raw: Raw) -> Remark:
        """Remark that the API tells so."""
        return cls(
            id=raw["id"],
            author=raw["author"],
            event=raw["event"],
            subject_kind=raw["subject_kind"],
            subject_id=raw.get("subject_id"),
            subject_name=raw.get("subject_name") or "",
            text=raw.get("text") or "",
            ticket=raw.get("ticket") or "",
            person=raw.get("person") or "",
            until=time_of(raw.get("until")),
            created_at=time_of(raw.get("created_at")),
            raw=raw,
        )
