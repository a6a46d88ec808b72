"""Flows of the shift log: its entries, a note about something, and an entry about nothing."""

from __future__ import annotations

from ..remark import Remark
from ..wire import Flow
from ..wire import path as at
from .asking import listed, new_key, post

_LISTS = {"dag": "dags", "site": "sites", "failure": "failures"}


def remarks(*, limit: int | None = 200, **filters: object) -> Flow[list[Remark]]:
    """Entries of the shift log, the latest first, by the filters of the API's list."""
    return (yield from listed("remarks/", Remark.of, limit, filters))


def note(kind: str, subject: object, text: str, *, ticket: str = "", key: str = "") -> Flow[Remark]:
    """Note about a DAG, a site (by its name) or a failure group; `kind` is dag, site or failure."""
    if kind not in _LISTS:
        raise ValueError(f"kind is {kind!r}; there are {', '.join(_LISTS)}")
    content = {"reason": text, "ticket": ticket or None}
    where = at(_LISTS[kind], subject, "note")
    return Remark.of((yield from post(where, content, key or new_key())))


def write_log(text: str, *, ticket: str = "", key: str = "") -> Flow[Remark]:
    """Entry of the shift log that is about nothing; for shifters and above."""
    content = {"text": text, "ticket": ticket or None}
    return Remark.of((yield from post("remarks/", content, key or new_key())))
