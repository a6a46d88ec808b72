"""Writer of HTCondor event logs for tests of followed DAGs: text of events, taken in by pieces.

`follow` begins to follow a DAG; `SAMPLE_RUNS` and `nodes_of` give real runs to compare with.
"""

from __future__ import annotations

import io
import re
from datetime import UTC, datetime
from typing import Any

from tests.wms.dags.files.samples import SAMPLES
from wms.core.actors import Actor
from wms.core.models import User
from wms.dags.engine.rebuild import rebuild_dag
from wms.dags.follow.runs import FollowRequest, follow_run
from wms.dags.follow.services import (
    LogProgress,
    ingest_chunk,
)
from wms.dags.models import Dag, FollowedLog

NOW = datetime(2026, 11, 22, tzinfo=UTC)
STAMP = "2026-11-20 14:00:00"


def follow(owner: User, text: str | None = None, *, name: str = "case.dag", **more: Any) -> Dag:
    """A followed DAG of this text, or of a sample with all DAG files beside it."""
    if text is None:
        folder = (SAMPLES / name).parent
        files = {path.name: path.read_text() for path in folder.glob("*.*")}
        name = name.rpartition("/")[2]
    else:
        files = {name: text}
    streams = {path: io.BytesIO(content.encode()) for path, content in files.items()}
    request = FollowRequest((name,), streams, f"{name}.nodes.log", **more)
    return follow_run(request, owner=owner, actor=Actor.person(owner), now=NOW).dag


def take(dag: Dag, data: bytes, offset: int = 0, actor: Actor | None = None) -> LogProgress:
    who = actor or Actor.person(dag.owner)
    return ingest_chunk(dag.pk, data, offset=offset, actor=who, now=NOW)


def say(dag: Dag, *events: str) -> LogProgress:
    """Go on with the log by these events."""
    data = "".join(events).encode()
    return take(dag, data, FollowedLog.objects.get(dag=dag).byte_offset)


def submit(job: str, node: str) -> str:
    return head(0, job, "Job submitted from host: <a>", f"    DAG Node: {node}\n")


def execute(job: str) -> str:
    return head(1, job, "Job executing on host: <b>")


def end(job: str, code: int = 0) -> str:
    how = f"(1) Normal termination (return value {code})"
    if code < 0:
        how = f"(0) Abnormal termination (signal {-code})"
    return head(5, job, "Job terminated.", f"\t{how}\n")


def abort(job: str) -> str:
    return head(9, job, "Job was aborted.", "\tvia condor_rm (by user user)\n")


def post(job: str, node: str, code: int = 0) -> str:
    body = f"\t(1) Normal termination (return value {code})\n    DAG Node: {node}\n"
    return head(16, job, "POST Script terminated.", body)


def skip(node: str) -> str:
    return head(
        34, "0.2147483647", "PRE script return value is PRE_SKIP value", f"    DAG Node: {node}\n"
    )


def head(number: int, job: str, text: str, body: str = "") -> str:
    cluster, process = job.split(".")
    return f"{number:03d} ({cluster}.{process}.000) {STAMP} {text}\n{body}...\n"


def states(dag: Dag) -> dict[str, str]:
    return dict(dag.nodes.order_by("ordinal").values_list("name", "state"))


def assert_log_agrees(dag: Dag) -> None:
    assert rebuild_dag(dag.pk).differences == ()


SAMPLE_RUNS = [
    ("all_outcomes/sample.dag", "all_outcomes/sample.status", {}),
    ("features/features.dag", "features/features.status", {}),
    ("rescued/sample.dag", "rescued/sample.status", {"rescue_number": 1}),
    ("recovery_and_removed/recovery.dag", "recovery_and_removed/recovery.status", {}),
]


def nodes_of(status_file: str) -> dict[str, tuple[str, str]]:
    """State and retries of every node, from a node status file."""
    found = re.findall(
        r'Node = "(.*)";\n  NodeStatus = (\d).*\n.*\n  RetryCount = (\d+);', status_file
    )
    return {name: (state, retries) for name, state, retries in found}
