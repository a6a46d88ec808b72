"""Benchmark of negotiation with many idle DAGs and sites: the decision alone, and whole cycles.

Costs should grow with groups x sites plus matches, not with DAGs x sites: 1,000, 10,000 and 100,000
DAGs in 100 groups of equal requirements show it. DAGs that are all alike, and all different, are
the best and the worst case; a cycle that had no time for all of them tells how many were unseen.
Each scenario is measured in a process of its own, so that its peak of memory is its own.
"""

from __future__ import annotations

import multiprocessing
import resource
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from benchmarks import base

_USERS = 20
_PLACES = 20
_NODES = 50
_BATCH = 5000
#: Sites near the same data: DAGs with inputs are tied to those of one region.
_REGIONS = 5


@dataclass(frozen=True, slots=True)
class Scenario:
    """Numbers of idle DAGs, of groups of them with equal requirements, and of sites.

    With inputs each DAG has input data of its own, near the sites of a region.
    """

    dags: int
    groups: int
    sites: int
    runs: int = 3
    has_inputs: bool = False


FULL = (
    Scenario(1_000, 100, 500),
    Scenario(10_000, 100, 500),
    Scenario(10_000, 100, 500, has_inputs=True),
    Scenario(100_000, 100, 500, runs=1),
    Scenario(100_000, 100, 1_000, runs=1),
    Scenario(10_000, 1, 500),
    Scenario(1_000, 1_000, 500),
    Scenario(10_000, 10_000, 500, runs=1),
)
QUICK = (
    Scenario(200, 10, 20, runs=1),
    Scenario(200, 10, 20, runs=1, has_inputs=True),
    Scenario(200, 200, 20, runs=1),
)


def measure(is_quick: bool) -> dict[str, Any]:
    """Run all scenarios, one after another."""
    _in_a_process(_migrate)
    return {"scenarios": [_run(scenario) for scenario in (QUICK if is_quick else FULL)]}


def _run(scenario: Scenario) -> dict[str, Any]:
    _in_a_process(_prepare, scenario)
    found: dict[str, Any] = _in_a_process(_measure, scenario)
    return found


def _in_a_process(work: Callable[..., Any], *arguments: Any) -> Any:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


def _migrate() -> None:
    base.load_django()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)


def _prepare(scenario: Scenario) -> None:
    """Fill the database anew: sites with two queues each, idle DAGs with needs, without nodes."""
    base.load_django()
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "TRUNCATE core_user, sites_site, jobs_workspace, jobs_inputset, core_inboxentry,"
            " dags_negotiationcycle CASCADE"
        )
    _make_sites(scenario)
    _make_dags(scenario)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def _make_sites(scenario: Scenario) -> None:
    from wms.sites.models import Queue, Site

    sites = Site.objects.bulk_create(
        Site(
            name=f"site-{number:04}",
            max_matches=_PLACES,
            requirements="(CurMatches < MaxMatches) && (TARGET.WANT_USCMS_MATCHMAKER =?= TRUE)",
            environment="SiteWorkingArea=/scratch/work\nSiteExportDir=/scratch/export",
            attributes=f"Is_USCMS_Site = True\nMemory = {1024 * (number % 64 + 1)}",
        )
        for number in range(scenario.sites)
    )
    Queue.objects.bulk_create(
        Queue(
            site=site,
            name=name,
            element="host",
            cores=cores,
            memory_mb=1024 * (number % 64 + 1),
            platform="linux-x86_64",
            tags=["cvmfs"],
        )
        for number, site in enumerate(sites)
        for name, cores in (("main", 8), ("short", 1))
    )


def _make_dags(scenario: Scenario) -> None:
    from wms.core.models import User
    from wms.dags.models import Dag
    from wms.jobs.models import Workspace

    users = User.objects.bulk_create(User(username=f"user-{n:02}") for n in range(_USERS))
    numbers = iter(range(scenario.dags))
    while batch := list(islice(numbers, _BATCH)):
        workspaces = Workspace.objects.bulk_create(
            Workspace(owner=users[number % _USERS]) for number in batch
        )
        inputs = _inputs(scenario, batch, users) if scenario.has_inputs else {}
        Dag.objects.bulk_create(
            _dag(scenario, number, workspace, inputs.get(number))
            for number, workspace in zip(batch, workspaces, strict=True)
        )


def _inputs(scenario: Scenario, numbers: list[int], users: list[Any]) -> dict[int, Any]:
    """Input data of DAGs by their numbers, resolved as a submission leaves them."""
    from wms.jobs.models import InputSet

    def made(number: int) -> InputSet:
        region = number // scenario.groups % _REGIONS
        return InputSet(
            key=f"{number:064}",
            owner=users[number % _USERS],
            names=[f"/run/{number}"],
            is_of_dag=True,
            sites=[f"site-{each:04}" for each in range(region, scenario.sites, _REGIONS)],
            cause="near",
            told=f"Its input data: lfn:/run/{number} is at se-{region}.",
        )

    sets = InputSet.objects.bulk_create(map(made, numbers))
    return dict(zip(numbers, sets, strict=True))


def _dag(scenario: Scenario, number: int, workspace: Any, inputs: Any = None) -> Any:
    """A DAG whose ad asks for memory, as does one of its two kinds of nodes."""
    from wms.dags.models import Dag

    memory_mb = 1024 * 48 * (number % scenario.groups) // scenario.groups
    return Dag(
        name=f"dag-{number}",
        owner=workspace.owner,
        workspace=workspace,
        node_count=_NODES,
        node_needs=[{"memory_mb": memory_mb, "tags": ["cvmfs"]}, {"cores": 8, "max_cores": 8}],
        need_nodes=[f"sim-{number}", f"merge-{number}"],
        near_inputs=inputs,
        input_node=f"sim-{number}" if inputs is not None else "",
        ad_attributes={
            "WANT_USCMS_MATCHMAKER": "True",
            "RequestMemory": str(memory_mb),
            "Requirements": "Is_USCMS_Site =?= True && TARGET.Memory >= RequestMemory",
            "Rank": "-CurMatches / real(MaxMatches)",
        },
    )


def _measure(scenario: Scenario) -> dict[str, Any]:
    base.load_django()
    from django.utils import timezone

    from wms.dags.models import NegotiationCycle
    from wms.dags.negotiation.cycle import run_cycle

    run_cycle(timezone.now())
    cycles: list[NegotiationCycle] = []
    seconds: list[float] = []
    for _ in range(scenario.runs):
        _make_idle_again()
        began = time.monotonic()
        run_cycle(timezone.now())
        seconds.append(time.monotonic() - began)
        cycles.append(NegotiationCycle.objects.latest("started_at"))
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    base.close_connections()
    return {
        "dags": scenario.dags,
        "groups": scenario.groups,
        "sites": scenario.sites,
        "has_inputs": scenario.has_inputs,
        "decide_s": _median(cycle.decide_s for cycle in cycles),
        "cycle_s": _median(seconds),
        "matched": cycles[-1].bound,
        "unseen": cycles[-1].reasons.get("not looked at yet", 0),
        "phases": {
            name: _median(getattr(cycle, name) for cycle in cycles)
            for name in ("publish_s", "read_s", "decide_s", "carry_out_s")
        },
        "autoclusters": cycles[-1].autoclusters,
        "peak_mb": round(peak_kib / 1024, 1),
    }


def _median(values: Iterator[float] | list[float]) -> float:
    return round(statistics.median(values), 3)


def _make_idle_again() -> None:
    """Take all matches back, as if the last cycle had not been; not part of what is measured."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE dags_matchrecord, dags_dagevent, core_inboxentry")
        cursor.execute(
            "UPDATE dags_dag SET state = 'idle', site_id = NULL, matched_at = NULL,"
            " match_attributes = '{}', environment = '{}', unmatched_reason = '', looked_at = NULL"
        )
        cursor.execute("VACUUM ANALYZE dags_dag")


if __name__ == "__main__":
    base.main("negotiation", measure, __doc__)
