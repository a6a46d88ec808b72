"""Archive files that are made by hand, of DAGs that are nowhere, and one that is kept."""

from __future__ import annotations

import io
import json
from typing import Any

from wms.archives import layout
from wms.archives.models import ArchivedDag
from wms.archives.row_kinds import KINDS, Type
from wms.archives.services import import_archive
from wms.archives.zip_stream import ZipStream
from wms.core.actors import Actor
from wms.core.models import User

_TIME = "2026-11-20T12:00:00.000000Z"
_VALUES: dict[Type, Any] = {
    Type.TEXT: "", Type.WHOLE: 1, Type.AMOUNT: 1.5, Type.FLAG: False, Type.TIME: _TIME,
    Type.LIST: [], Type.OBJECT: {},
}  # fmt: skip


def row(kind: str, /, **values: Any) -> dict[str, Any]:
    """A row of a kind with these values; what may be null is null else."""
    usual = {
        name: None if field.is_nullable else _VALUES[field.type]
        for name, field in KINDS[kind].items()
    }
    return {**usual, **values}


def archive_file(dag_id: int, rows: dict[str, list[dict[str, Any]]], **of_dag: Any) -> bytes:
    """An archive of a DAG with these nodes, events and files; what it counts is counted."""
    dag = row(
        "dags", id=dag_id, name=f"elsewhere{dag_id}", owner="somebody", state="failed",
        ended_at=_TIME, state_reason="node B failed", **of_dag,
    )  # fmt: skip
    every = {"dags": [dag], **rows}
    archive = ZipStream()
    parts: list[bytes] = []
    for kind, some in every.items():
        lines = [json.dumps(each).encode() + b"\n" for each in some]
        parts += archive.add(layout.chunk_name(kind, 1), lines, rows=len(lines))
    states = [each["state"] for each in rows.get("nodes", ())]
    manifest = {
        "format": layout.FORMAT, "version": layout.VERSION,
        "installation": "https://elsewhere.example", "product_version": "1.0", "dag": dag,
        "rows": {kind: len(some) for kind, some in every.items()},
        "node_states": {state: states.count(state) for state in states}, "job_states": {},
        "failures": [each for each in rows.get("events", ()) if each["event"] == "fail"],
        "members": [each.as_json() for each in archive.members],
    }  # fmt: skip
    parts += archive.add(layout.MANIFEST, [json.dumps(manifest).encode()])
    return b"".join([*parts, archive.end()])


def kept_archive(by: User, *, dag_id: int = 7, node_count: int = 1) -> ArchivedDag:
    """An archive of a DAG of another installation, whose last node has failed."""
    states = ["done"] * (node_count - 1) + ["failed"]
    nodes = [
        row("nodes", dag=dag_id, id=number, name=f"N{number}", kind="job", state=state)
        for number, state in enumerate(states)
    ]
    failure = row(
        "events", dag=dag_id, node=nodes[-1]["name"], event="fail", from_state="submitted",
        to_state="failed", actor="system:dag-engine", reason="its job failed with exit code 3",
    )  # fmt: skip
    file = row("files", path="out/result.root", size_bytes=10**9, sha256="0" * 64, job=5)
    content = archive_file(dag_id, {"nodes": nodes, "events": [failure], "files": [file]})
    return import_archive(io.BytesIO(content), actor=Actor.person(by)).archive
