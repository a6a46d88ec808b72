"""Writing of the archive of a DAG, as a stream of bytes: rows, logs, files, and the manifest last.

Memory is bounded: a chunk of rows, or a kept content, at a time. As long as neither the DAG's rows
nor its workspace change, one release writes the same bytes for it again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

from django.utils import timezone

from wms.archives import layout
from wms.archives.live_rows import READERS, Row, dag_row, tree_of
from wms.archives.values import utc_text
from wms.archives.zip_stream import ZipStream
from wms.core.conf import conf
from wms.core.errors import Conflict
from wms.dags.exports.event_log import lines as event_log
from wms.dags.exports.jobstate import lines as jobstate_log
from wms.dags.models import Dag
from wms.dags.reading.dag_jobs import jobs_of
from wms.dags.states import DAG_TERMINAL
from wms.jobs.content.blobs import open_blob
from wms.jobs.models import Attempt, WorkspaceFile
from wms.jobs.selectors import files_of_workspace
from wms.jobs.states import TERMINAL

_LOGS: Final = {"nodes": event_log, "jobstate": jobstate_log}
_PIECE_BYTES: Final = 256 * 1024


def require_archivable(dag: Dag) -> None:
    """Raise Conflict for a DAG that is inside of another one, or of which anything goes on."""
    if dag.root_id is not None:
        raise Conflict(
            f"DAG {dag.pk} is inside of DAG {dag.root_id}, and is part of the archive of that one."
        )
    if dag.state not in DAG_TERMINAL or dag.ended_at is None:
        raise Conflict(f"DAG {dag.pk} is {dag.state}: only a DAG that has ended is archived.")
    tree = list(tree_of(dag).values_list("pk", flat=True))
    jobs = jobs_of(*tree)
    is_under_way = (
        tree_of(dag).exclude(state__in=DAG_TERMINAL).exists()
        or jobs.exclude(state__in=TERMINAL).exists()
        or Attempt.objects.filter(outcome="", job__in=jobs).exists()
    )
    if is_under_way:
        raise Conflict(
            f"DAG {dag.pk} has ended, but jobs or DAGs of it have not: archive it a little later."
        )


def stream_archive(dag: Dag, *, product_version: str) -> Iterator[bytes]:
    """The archive of a DAG. Raises Conflict before the first byte, as `require_archivable`."""
    require_archivable(dag)
    return _Writing(dag, product_version).pieces()


class _Writing:
    """One archive while it is written: what the manifest will tell."""

    def __init__(self, dag: Dag, product_version: str) -> None:
        self._dag, self._product_version = dag, product_version
        self._zip = ZipStream()
        self._rows = Counter[str]()
        self._states: dict[str, Counter[str]] = {"nodes": Counter(), "jobs": Counter()}
        self._failures: list[Row] = []
        self._kept, self._kept_bytes = set[str](), 0

    def pieces(self) -> Iterator[bytes]:
        """All bytes of the file."""
        tree = list(tree_of(self._dag))
        self._rows["dags"] = len(tree)
        yield from self._chunks("dags", map(dag_row, tree))
        for kind, read in READERS.items():
            yield from self._chunks(kind, self._noted(kind, (row for d in tree for row in read(d))))
        yield from self._chunks("files", self._file_rows())
        for each in tree:
            for name, lines in _LOGS.items():
                text = (line.encode() for line in lines(each, timezone.now()))
                yield from self._zip.add(f"logs/{each.pk}.{name}.log", _joined(text))
        for sha256 in sorted(self._kept):
            yield from self._zip.add(layout.content_name(sha256), _content(sha256))
        manifest = json.dumps(self._manifest(tree[0]), ensure_ascii=False, indent=1)
        yield from self._zip.add(layout.MANIFEST, [manifest.encode()])
        yield self._zip.end()

    def _noted(self, kind: str, rows: Iterable[Row]) -> Iterator[Row]:
        """The rows, of which the manifest gets counts by state and the first failures."""
        for row in rows:
            self._rows[kind] += 1
            if kind == "jobs" or (kind == "nodes" and row["dag"] == self._dag.pk):
                self._states[kind][row["state"]] += 1
            if is_failure(kind, row) and len(self._failures) < layout.FAILURES_TOLD:
                self._failures.append(row)
            yield row

    def _chunks(self, kind: str, rows: Iterable[Row]) -> Iterator[bytes]:
        lines, size_bytes, number = list[bytes](), 0, 1
        for row in rows:
            line = json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
            is_full = len(lines) == layout.CHUNK_ROWS
            if lines and (is_full or size_bytes + len(line) > layout.CHUNK_BYTES):
                yield from self._add_chunk(kind, number, lines)
                lines, size_bytes, number = [], 0, number + 1
            lines.append(line)
            size_bytes += len(line)
        if lines:
            yield from self._add_chunk(kind, number, lines)

    def _add_chunk(self, kind: str, number: int, lines: list[bytes]) -> Iterator[bytes]:
        yield from self._zip.add(layout.chunk_name(kind, number), lines, rows=len(lines))

    def _file_rows(self) -> Iterator[Row]:
        files = files_of_workspace(self._dag.workspace_id)
        for file in files.iterator(chunk_size=layout.CHUNK_ROWS):
            self._rows["files"] += 1
            yield {
                "path": file.path,
                "size_bytes": file.blob.size_bytes,
                "sha256": file.blob_id,
                "job": file.attempt.job_id if file.attempt else None,
                "modified_at": utc_text(file.modified_at),
                "content": layout.content_name(file.blob_id) if self._keeps(file) else None,
            }

    def _keeps(self, file: WorkspaceFile) -> bool:
        """Whether the content of a file is part of the archive: it is small, and no output."""
        size_bytes = file.blob.size_bytes
        if file.attempt is not None or size_bytes > layout.CONTENT_BYTES:
            return False
        if file.blob_id in self._kept:
            return True
        has_room = (
            len(self._kept) < layout.MOST_CONTENTS
            and self._kept_bytes + size_bytes <= layout.CONTENTS_BYTES
        )
        if has_room:
            self._kept.add(file.blob_id)
            self._kept_bytes += size_bytes
        return has_room

    def _manifest(self, dag: Dag) -> dict[str, Any]:
        return {
            "format": layout.FORMAT,
            "version": layout.VERSION,
            "installation": conf().public_url,
            "product_version": self._product_version,
            "dag": dag_row(dag),
            "rows": dict(self._rows),
            "node_states": dict(self._states["nodes"]),
            "job_states": dict(self._states["jobs"]),
            "failures": self._failures,
            "members": [each.as_json() for each in self._zip.members],
        }


def is_failure(kind: str, row: Row) -> bool:
    """Whether a row is the event of a failed node, or of an attempt of one."""
    return kind == "events" and row["node"] is not None and row["event"] in ("fail", "retry")


def _joined(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Lines in pieces of some size."""
    waiting, size_bytes = list[bytes](), 0
    for line in lines:
        waiting.append(line)
        size_bytes += len(line)
        if size_bytes >= _PIECE_BYTES:
            yield b"".join(waiting)
            waiting, size_bytes = [], 0
    yield b"".join(waiting)


def _content(sha256: str) -> Iterator[bytes]:
    with open_blob(sha256) as stream:
        while piece := stream.read(_PIECE_BYTES):
            yield piece
