"""Commands of the shift log: note, log."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from ..client import Client
from ..remark import Remark
from .lists import fetched, pairs
from .printing import Column, Row, print_rows, say, say_json, short_time
from .targets import SHIFT_LOG, target

_ENTRIES: Sequence[Column] = (
    ("WHEN", lambda row: short_time(row["created_at"])),
    ("BY", lambda row: row["author"]),
    ("ABOUT", lambda row: row["ref"]),
    ("WHAT", lambda row: f"assign to {row['person']}" if row["person"] else row["event"]),
    ("TEXT", lambda row: row["text"]),
    ("TICKET", lambda row: row["ticket"]),
)


def note(client: Client, options: Namespace) -> int:
    """Write a note about a DAG, a site, a failure group, or the shift."""
    if options.subject == SHIFT_LOG:
        written = client.write_log(options.text, ticket=options.ticket, key=options.key)
    else:
        of = target(options.subject, "dag", "site", "failure")
        subject = of.name or of.id
        written = client.note(
            of.kind, subject, options.text, ticket=options.ticket, key=options.key
        )
    if options.json:
        say_json(written.raw)
    else:
        say(f"Entry {written.id} of the shift log, about {_ref(written)}")
    return 0


def log(client: Client, options: Namespace) -> int:
    """List entries of the shift log."""
    filters = {"created": options.since, **pairs(options.filter)}
    found = client.remarks(limit=fetched(options), **filters)
    rows: list[Row] = [{"ref": _ref(each), **each.raw} for each in found]
    print_rows(rows, _ENTRIES, options)
    return 0


def _ref(remark: Remark) -> str:
    """Subject as it is written on the command line."""
    if remark.subject_kind == "site":
        return f"s:{remark.subject_name}"
    letter = {"dag": "d", "failure": "f"}.get(remark.subject_kind)
    return f"{letter}{remark.subject_id}" if letter else SHIFT_LOG
