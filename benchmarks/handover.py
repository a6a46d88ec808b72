"""Benchmark of the time from a node's end to its child's start, and of an idle portal's CPU use.

A chain of nodes runs through one pilot. The start of a child is its end less its wall time. What it
costs counts the processor time of the portal's processes, its servers and an idle pilot.
"""

from __future__ import annotations

import itertools
import os
import statistics
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from benchmarks import base
from benchmarks.loops import client_of
from portal.cli.child import ChildPortal
from portal.cli.client import Part
from portal.cli.state_directory import StateDirectory

LINKS = 40
QUICK_LINKS = 10
IDLE_S = 60.0
QUICK_IDLE_S = 15.0
#: Until nothing has happened for so long that the loops take longer turns.
_SETTLING_S = 60.0
_LIMIT_S = 600.0
_POLL_S = 0.2
_DESCRIPTION = "executable = /bin/true\nqueue\n"
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def measure(is_quick: bool) -> dict[str, Any]:
    """Run the chain, then look at the idle portal."""
    place = StateDirectory.from_environment()
    links = QUICK_LINKS if is_quick else LINKS
    with ChildPortal(place) as portal, tempfile.TemporaryDirectory() as folder:
        client = client_of(place, portal, slots=1)
        lines = [f"JOB N{at} short.sub" for at in range(links)]
        lines += [f"PARENT N{at} CHILD N{at + 1}" for at in range(links - 1)]
        dag = Path(folder) / "chain.dag"
        dag.write_text("\n".join(lines) + "\n")
        dag.with_name("short.sub").write_text(_DESCRIPTION)
        parts = [Part("dag", dag), Part("file", dag.with_name("short.sub"))]
        told = _handovers(int(client.post_files("dags/", parts, key="benchmark")["id"]))
        time.sleep(_SETTLING_S)
        idle_s = QUICK_IDLE_S if is_quick else IDLE_S
        told["idle"] = _idle_shares(idle_s)
    base.close_connections()
    return {"links": links, **told}


def _handovers(dag_id: int) -> dict[str, Any]:
    from wms.dags.models import Dag
    from wms.jobs.models import Attempt

    until_s = time.monotonic() + _LIMIT_S
    while Dag.objects.filter(pk=dag_id, ended_at=None).exists():
        if time.monotonic() > until_s:
            raise SystemExit("the DAG did not end in time")
        time.sleep(_POLL_S)
    runs = list(
        Attempt.objects.order_by("ended_at").values_list("matched_at", "ended_at", "wall_s")
    )
    claims_s, starts_s = [], []
    for (_, before, _), (matched_at, ended_at, wall_s) in itertools.pairwise(runs):
        claims_s.append((matched_at - before).total_seconds())
        starts_s.append((ended_at - timedelta(seconds=wall_s) - before).total_seconds())
    return {"end_to_claim_s": _spread(claims_s), "end_to_start_s": _spread(starts_s)}


def _spread(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {
        "median": round(statistics.median(ordered), 3),
        "p90": round(ordered[int(0.9 * (len(ordered) - 1))], 3),
        "largest": round(ordered[-1], 3),
    }


def _idle_shares(seconds: float) -> dict[str, float]:
    """The shares of one processor, by program and in all."""
    before, began_s = _times(), time.monotonic()
    time.sleep(seconds)
    after, took_s = _times(), time.monotonic() - began_s
    shares: dict[str, float] = {}
    for pid, (name, used_s) in after.items():
        earlier_s = before[pid][1] if pid in before else 0.0
        shares[name] = shares.get(name, 0.0) + (used_s - earlier_s) / took_s
    told = {name: round(share, 4) for name, share in sorted(shares.items()) if share >= 0.0005}
    return {"all": round(sum(shares.values()), 4), **told}


def _times() -> dict[int, tuple[str, float]]:
    """The name and processor seconds of each process below this one, with its ended children's."""
    found: dict[int, tuple[int, str, float]] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            words = (folder / "cmdline").read_text().split("\0")
        except OSError:
            continue
        used_s = sum(map(int, fields[11:15])) / _TICKS_PER_S
        found[int(folder.name)] = (int(fields[1]), _name(words), used_s)
    mine = {os.getpid()}
    for pid in sorted(found):
        if found[pid][0] in mine:
            mine.add(pid)
    return {pid: found[pid][1:] for pid in mine - {os.getpid()} if pid in found}


def _name(words: list[str]) -> str:
    known = (
        "gunicorn",
        "beat",
        "engine",
        "scripts",
        "placement",
        "elements",
        "worker",
        "guard_host_pilots",
    )
    plain = [word for word in words if not word.startswith("--")]
    return next(
        (name for name in known if any(name in word for word in plain)), Path(words[0]).name
    )


if __name__ == "__main__":
    base.main("handover", measure, __doc__)
