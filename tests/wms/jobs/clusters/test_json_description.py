"""Descriptions in JSON: any value is taken or refused with its member, and breaks nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.wms.jobs.clusters.samples import cycle, go_on, submit
from wms.core.actors import Actor
from wms.core.errors import InvalidInput
from wms.core.models import User
from wms.jobs.clusters.checking import check_cluster
from wms.jobs.clusters.json_description import _MEMBERS, read_json
from wms.jobs.clusters.options import NAMES
from wms.jobs.clusters.rerun import rerun_cluster
from wms.jobs.clusters.states import ClusterCause, ClusterState
from wms.jobs.content.blobs import store_bytes
from wms.jobs.models import Cluster, Job
from wms.jobs.services import kill_jobs

_TEXTS = st.one_of(
    st.text(max_size=8),
    st.sampled_from(["$(x)", "$(Process)", "it's", '"', "$$(A)", "$ENV(B)", "a\\", "-1", "../x",
                     "\ud800", "x\x00", "[0:1]", "$(", "$INT(x,%d)", "2031-01-01T00:00:00Z"]),
)  # fmt: skip
_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), _TEXTS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=6,
)
_PARAMETERS = st.fixed_dictionaries(
    {"columns": st.just(["x", "y"]) | _VALUES},
    optional={
        "rows": st.lists(st.lists(_TEXTS, min_size=2, max_size=2), max_size=3) | _VALUES,
        "file": _TEXTS,
        "matching": st.lists(_TEXTS, max_size=2),
        "slice": _TEXTS,
    },
)
_DESCRIPTIONS = st.fixed_dictionaries(
    {"executable": st.just("/bin/true") | _VALUES},
    optional={
        **{
            name: _VALUES
            for name in [*_MEMBERS, *NAMES, "attributes", "commands"]
            if name != "executable"
        },
        "parameters": _PARAMETERS,
        "queue": st.integers(0, 3) | _VALUES,
    },
)


@pytest.mark.slow
@settings(max_examples=300, suppress_health_check=list(HealthCheck), deadline=None)
@given(description=_DESCRIPTIONS)
def test_anything_is_checked_or_refused_with_its_place(
    alice: User, description: dict[str, Any]
) -> None:
    checked = check_cluster(
        description, options={}, files={}, owner=alice, cluster_id=7, file="job.sub"
    )

    assert all(finding.field for finding in checked.findings)
    assert bool(checked.findings) or checked.size >= 1


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"memory_mb": "x"}, "memory_mb"),
        ({"memory_mb": True}, "memory_mb"),
        ({"memory_mb": "$(y)"}, "memory_mb"),
        ({"cores": 0}, "cores"),
        ({"priority": "$(x"}, "priority"),
        ({"unheard": 1}, "unheard"),
        ({"arguments": ["a", 1.5, None]}, "arguments[2]"),
        ({"environment": {"A B": "1"}}, "environment.A B"),
        ({"environment": {"A": "1\n2"}}, "environment.A"),
        ({"inputs": ["a,b"]}, "inputs[0]"),
        ({"inputs": ["missing.dat"]}, "inputs"),
        ({"sites": "A"}, "sites"),
        ({"sites": ["A"], "banned_sites": ["A"]}, "sites"),
        ({"requirements": "a =="}, "requirements"),
        ({"requirements": "false"}, "requirements"),
        ({"attributes": {"A": "1 +"}}, "attributes.A"),
        ({"commands": {"queue": "5"}}, "commands.queue"),
        ({"commands": {"priority": "5"}}, "commands.priority"),
        ({"commands": {"accounting_group": "a"}}, "commands.accounting_group"),
        ({"commands": {"periodic_hold": "a =="}}, "commands.periodic_hold"),
        ({"queue": 0}, "queue"),
        ({"queue": 10**12}, "queue"),
        ({"eager": True, "queue": 100_001}, "eager"),
        ({"labels": ["a b"]}, "labels"),
        ({"deadline": "2001-01-01T00:00:00Z"}, "deadline"),
        ({"deadline": "tomorrow"}, "deadline"),
        ({"deadline": "9999-12-31T23:59:59Z"}, "deadline"),
        ({"deadline": "9999-12-31T23:59:59-12:00"}, "deadline"),
        ({"max_idle": 0}, "max_idle"),
        ({"group": "nobody"}, "group"),
        ({"parameters": {"columns": ["x", "X"], "rows": []}}, "parameters.columns[1]"),
        ({"parameters": {"columns": ["x"], "rows": []}}, "parameters.rows"),
        ({"parameters": {"columns": ["x"]}}, "parameters"),
        ({"parameters": {"columns": ["x"], "rows": [["1"], ["1", "2"]]}}, "parameters.rows[1]"),
        ({"parameters": {"columns": ["x"], "rows": [{"x": 1}, {"y": 2}]}}, "parameters.rows[1]"),
        ({"parameters": {"columns": ["x"], "rows": [["1"], [None]]}}, "parameters.rows[1][0]"),
        ({"parameters": {"columns": ["x"], "file": "t"}}, "parameters.file"),
        ({"parameters": {"columns": ["x"], "rows": [["1"]], "slice": "1"}}, "parameters.slice"),
        ({"parameters": {"columns": ["x"], "rows": [["1"]], "slice": {"a": 1}}},
         "parameters.slice"),
        ({"arguments": "\"'$(x)'\"", "parameters": {"columns": ["x"], "rows": [["1"], ["'"]]}},
         "parameters.rows[1]"),
        ({"memory_mb": "$(x)", "parameters": {"columns": ["x"], "rows": [["1"], ["b"]]}},
         "parameters.rows[1]"),
        ({"arguments": ["$(z)"], "parameters": {"columns": ["x"], "rows": [["1"]]}}, "arguments"),
    ],
)  # fmt: skip
def test_a_fault_is_told_with_its_member_and_nothing_is_stored(
    alice: User, changes: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        submit(alice, {"executable": "/bin/true", **changes})

    assert {each.field for each in refused.value.findings} == {field}
    assert not Cluster.objects.exists()
    assert not Job.objects.exists()


def test_all_faults_are_told_at_once() -> None:
    found = read_json({"executable": 1, "memory_mb": [], "x": 1, "queue": -1}).findings

    assert [each.field for each in found] == ["x", "memory_mb", "queue"]


def test_many_rows_become_a_content_of_their_own(alice: User) -> None:
    rows = [[f"v{number}", f" {number}"] for number in range(3_000)]
    description = {
        "executable": "/bin/true",
        "environment": {"A": "$(a)", "B": "$(b)"},
        "parameters": {"columns": ["a", "b"], "rows": rows, "slice": "[1::2]"},
    }
    cluster = submit(alice, description).cluster

    [table] = cluster.tables.all()
    assert (table.items, table.row_count) == (None, 1_500)
    job = Job.objects.get(cluster_id=cluster.pk, process=7)
    assert job.environment == {"A": "v15", "B": " 15"}


def test_jobs_that_are_made_later_have_the_values_of_their_rows(alice: User) -> None:
    description = {
        "executable": "/bin/true",
        "arguments": ["$(a)", "$(b)"],
        "parameters": {"rows": [{"a": f"v{n}", "b": n} for n in range(2_100)]},
    }
    cluster = go_on(submit(alice, description, options={"max_idle": 5_000}).cluster)

    assert cluster.next_process == 2_100
    jobs = Job.objects.filter(cluster_id=cluster.pk).select_related("description")
    assert {job.process: job.arguments for job in jobs} == {
        n: [f"v{n}", str(n)] for n in range(2_100)
    }


def test_jobs_that_run_again_have_the_values_of_their_rows(alice: User) -> None:
    description = {
        "executable": "/bin/true",
        "arguments": ["$(a)"],
        "parameters": {"columns": ["a"], "rows": [["x"], ["y"]]},
    }
    cluster = submit(alice, description).cluster
    killed, alices = Job.objects.get(cluster_id=cluster.pk, process=1), Actor.person(alice)
    kill_jobs([killed.pk], actor=alices, reason="x")

    rerun = go_on(rerun_cluster(cluster.pk, actor=alices, reason="again", with_killed=True))

    [job] = Job.objects.filter(cluster_id=rerun.pk)
    assert (job.process, job.arguments) == (1, ["y"])


def test_a_cluster_whose_description_can_be_read_no_more_is_held(alice: User) -> None:
    description = {"executable": "/bin/true", "queue": 3}
    cluster = submit(alice, description, options={"eager": False}).cluster
    Cluster.objects.update(description=store_bytes(b'{"executable": [], "queue": 3}'))

    cycle(cluster)

    assert (cluster.state, cluster.state_cause) == (ClusterState.HELD, ClusterCause.MATERIALISER)
    assert not Job.objects.exists()


def test_other_commands_of_submit_language_are_given_by_their_names(alice: User) -> None:
    description = {"executable": "/bin/true", "commands": {"periodic_remove": "NumHolds > 2"}}
    cluster = submit(alice, description).cluster

    job = Job.objects.get(cluster_id=cluster.pk)
    assert job.periodic == {"remove": "NumHolds > 2"}
