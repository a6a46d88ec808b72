"""Commands that list: q, history, sites, pilots."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import Any

from ..client import Client
from ..errors import UsageError
from ..model import Cluster, Dag, Job
from .printing import Column, Row, print_rows, short_time
from .targets import target

_ACTIVE_DAGS = ("idle", "running", "held", "halted")
_ENDED_DAGS = ("completed", "failed", "removed")
_ACTIVE_CLUSTERS = ("active", "held")
_ENDED_CLUSTERS = ("completed", "removed")
_ENDED_PILOTS = ("!done", "!failed", "!aborted", "!removed")
#: Of a list with a constraint so many objects are looked at.
_LOOKED_AT = 10_000

_RUNS: Sequence[Column] = (
    ("ID", lambda row: row["ref"]),
    ("OWNER", lambda row: row["owner"]),
    ("NAME", lambda row: row["name"]),
    ("STATE", lambda row: row["state"]),
    ("SITE", lambda row: row.get("site")),
    ("DONE", lambda row: row["counts"]["done"]),
    ("RUN", lambda row: row["counts"]["under_way"]),
    ("FAILED", lambda row: row["counts"]["failed"]),
    ("TOTAL", lambda row: row["counts"]["total"]),
    ("SUBMITTED", lambda row: short_time(row["created_at"])),
    ("WHY", lambda row: row.get("unmatched_reason") or row.get("state_reason") or lack_of(row)),
)
_JOBS: Sequence[Column] = (
    ("ID", lambda row: row["ref"]),
    ("OWNER", lambda row: row["owner"]),
    ("NAME", lambda row: row["name"]),
    ("STATE", lambda row: row["state"]),
    ("ATTEMPT", lambda row: f"{row['attempt_number']}/{row['max_attempts']}"),
    ("SINCE", lambda row: short_time(row["state_since"])),
    ("WHY", lambda row: row.get("state_reason")),
)
_SITES: Sequence[Column] = (
    ("NAME", lambda row: row["name"]),
    ("STATE", lambda row: row["standing"]["kind"] or "open"),
    ("QUEUES", lambda row: ", ".join(queue["name"] for queue in row["queues"])),
    ("MAX MATCHES", lambda row: row["max_matches"]),
    ("WHY", lambda row: row["standing"]["reason"] if row["standing"]["kind"] else ""),
)
_PILOTS: Sequence[Column] = (
    ("UUID", lambda row: row["uuid"]),
    ("SITE", lambda row: row["site"]),
    ("QUEUE", lambda row: row["queue"]),
    ("STATE", lambda row: row["state"]),
    ("BATCH ID", lambda row: row["native_id"]),
    ("HEARTBEAT", lambda row: short_time(row["heartbeat_at"])),
    ("WHY", lambda row: row["state_reason"] or row.get("unanswered")),
)


def dag_row(dag: Dag) -> Row:
    """Row of a DAG: what the API tells, its name on the command line, and counts."""
    counts = {
        "done": dag.nodes.done,
        "under_way": dag.nodes.submitted,
        "failed": dag.nodes.failed,
        "total": dag.nodes.total,
    }
    return {"ref": f"d{dag.id}", "kind": "dag", "counts": counts, **dag.raw}


def cluster_row(cluster: Cluster) -> Row:
    """Row of a cluster, as `dag_row`."""
    ended = cluster.done + cluster.failed + cluster.killed
    counts = {
        "done": cluster.done,
        "under_way": max(0, cluster.made - cluster.faulty - ended),
        "failed": cluster.failed + cluster.faulty,
        "total": cluster.size,
    }
    return {"ref": f"c{cluster.id}", "kind": "cluster", "counts": counts, **cluster.raw}


def lack_of(row: Row) -> str:
    """Jobs without which a cluster is completed, in words; empty for none, and for a DAG."""
    counts = row["counts"]
    lacking = counts["total"] - counts["done"]
    if row["kind"] != "cluster" or row["state"] != "completed" or not lacking:
        return ""
    return f"{lacking} of {counts['total']} jobs are not done"


def job_row(job: Job) -> Row:
    """Row of a job."""
    return {"ref": f"j{job.id}", "kind": "job", **job.raw}


def q(client: Client, options: Namespace) -> int:
    """List DAGs and clusters that have not ended, named ones, or their jobs."""
    if options.targets:
        rows, columns = _named(client, options)
    elif options.jobs:
        filters = _filters(client, options, {"state": ("!done", "!failed", "!killed")})
        rows = [job_row(job) for job in client.jobs(limit=fetched(options), **filters)]
        columns = _JOBS
    else:
        rows, columns = _runs(client, options, _ACTIVE_DAGS, _ACTIVE_CLUSTERS), _RUNS
    print_rows(rows, columns, options)
    return 0


def history(client: Client, options: Namespace) -> int:
    """List DAGs and clusters that have ended, the latest first."""
    rows = _runs(client, options, _ENDED_DAGS, _ENDED_CLUSTERS)
    rows.sort(key=lambda row: str(row["state_since"]), reverse=True)
    print_rows(rows, _RUNS, options)
    return 0


def sites(client: Client, options: Namespace) -> int:
    """List sites."""
    found = client.sites(limit=fetched(options), **pairs(options.filter))
    print_rows([site.raw for site in found], _SITES, options)
    return 0


def pilots(client: Client, options: Namespace) -> int:
    """List pilots."""
    filters: dict[str, Any] = {} if options.all else {"state": _ENDED_PILOTS}
    filters |= {"site": options.site} if options.site else {}
    found = client.pilots(limit=fetched(options), **{**filters, **pairs(options.filter)})
    print_rows([pilot.raw for pilot in found], _PILOTS, options)
    return 0


def _runs(
    client: Client, options: Namespace, dag_states: Sequence[str], cluster_states: Sequence[str]
) -> list[Row]:
    limit = fetched(options)
    common = _filters(client, options, {})
    dags = client.dags(limit=limit, **{"state": dag_states, **common})
    rows = [dag_row(dag) for dag in dags]
    # Filters that only DAGs have choose no clusters.
    if set(common) <= {
        "owner",
        "since",
        "state",
        "group",
        "label",
        "name",
        "reason",
        "created",
        "id",
    }:
        clusters = client.clusters(limit=limit, **{"state": cluster_states, **common})
        rows += [cluster_row(cluster) for cluster in clusters]
    return rows


def _named(client: Client, options: Namespace) -> tuple[list[Row], Sequence[Column]]:
    named = [target(text, "dag", "cluster", "job") for text in options.targets]
    if not options.jobs and all(each.kind != "job" for each in named):
        runs = [
            dag_row(client.dag(each.id))
            if each.kind == "dag"
            else cluster_row(client.cluster(each.id))
            for each in named
        ]
        return runs, _RUNS
    rows: list[Row] = []
    for each in named:
        if each.kind == "job":
            rows.append(job_row(client.job(each.id)))
        else:
            chosen = {each.kind: each.id, **pairs(options.filter)}
            rows += [job_row(job) for job in client.jobs(limit=fetched(options), **chosen)]
    return rows, _JOBS


def _filters(client: Client, options: Namespace, usual: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = dict(usual)
    if options.owner:
        found["owner"] = options.owner
    elif not options.all_owners and (own := client.username()):
        found["owner"] = own
    if getattr(options, "since", None):
        found["since"] = options.since
    return {**found, **pairs(options.filter)}


def fetched(options: Namespace) -> int | None:
    """Number of objects asked for; more than are shown, if a constraint drops some."""
    if options.constraint:
        return _LOOKED_AT
    return options.limit or None


def pairs(texts: Sequence[str]) -> dict[str, str]:
    """Filters as `--filter` gives them, by their names. Raises UsageError."""
    parts = [text.partition("=") for text in texts]
    for name, sign, _ in parts:
        if not sign or not name:
            raise UsageError(f"--filter {name}: write it as NAME=VALUE.")
    return {name: value for name, _, value in parts}
