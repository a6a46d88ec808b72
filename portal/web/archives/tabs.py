"""Template contexts of the tabs nodes, events and files of the page of an archive.

Each shows some rows of the file from a number on, and looks through a bounded number of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from django.http import QueryDict

from wms.archives.models import ArchivedDag
from wms.archives.reading import ArchiveFile, opened_file
from wms.archives.row_kinds import KINDS

_SHOWN: Final = 100
_TIMES: Final = ("created_at", "state_since", "modified_at")
#: The most digits of a number of a row.
_DIGITS: Final = 12


def overview_tab(archive: ArchivedDag, query: QueryDict) -> Mapping[str, Any]:
    """Overview: all of it is in the row of the archive."""
    counts = archive.row_counts
    return {
        "failures": [_shown(row) for row in archive.failures],
        "kinds": {kind: counts[kind] for kind in KINDS if kind in counts},
    }


def nodes_tab(archive: ArchivedDag, query: QueryDict) -> Mapping[str, Any]:
    """Nodes in the order of the DAG files; a state or a part of the name narrows them."""
    name, state = query.get("q", "").strip(), query.get("state", "")

    def wanted(row: Mapping[str, Any]) -> bool:
        return (not state or row["state"] == state) and name in row["name"]

    with opened_file(archive) as file:
        return {"q": name, "chosen_state": state, **_page(file, "nodes", query, wanted)}


def events_tab(archive: ArchivedDag, query: QueryDict) -> Mapping[str, Any]:
    """Events in the order of their times, DAG by DAG, and the logs to be downloaded."""
    with opened_file(archive) as file:
        logs = [each for each in file.manifest.members if each.name.startswith("logs/")]
        return {"logs": logs[:_SHOWN], **_page(file, "events", query, lambda row: True)}


def files_tab(archive: ArchivedDag, query: QueryDict) -> Mapping[str, Any]:
    """Files of the workspace by their paths: outputs of jobs, or those that no job made."""
    name, which = query.get("q", "").strip(), query.get("which", "outputs")

    def wanted(row: Mapping[str, Any]) -> bool:
        return (row["job"] is not None) == (which != "submitted") and name in row["path"]

    with opened_file(archive) as file:
        return {"q": name, "which": which, **_page(file, "files", query, wanted)}


def _page(
    file: ArchiveFile, kind: str, query: QueryDict, wanted: Callable[[Any], bool]
) -> Mapping[str, Any]:
    text = query.get("from", "")
    is_number = text.isascii() and text.isdigit() and len(text) <= _DIGITS
    start = int(text) if is_number else 0
    found = file.page(kind, start=start, most=_SHOWN, wanted=wanted)
    return {
        "rows": [_shown(row) for row in found.rows],
        "total": file.manifest.rows.get(kind, 0),
        "first": _way(query, None) if start else "",
        "following": "" if found.following is None else _way(query, found.following),
    }


def _way(query: QueryDict, start: int | None) -> str:
    way = query.copy()
    way.pop("from", None)
    if start is not None:
        way["from"] = str(start)
    return f"?{way.urlencode()}#tab"


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with its times as times."""
    return {
        name: datetime.fromisoformat(value) if name in _TIMES else value
        for name, value in row.items()
    }


TABS: Final[Mapping[str, Callable[[ArchivedDag, QueryDict], Mapping[str, Any]]]] = {
    "overview": overview_tab,
    "nodes": nodes_tab,
    "events": events_tab,
    "files": files_tab,
}
