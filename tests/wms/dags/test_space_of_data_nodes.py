"""Data nodes that take space: in such an order that no DAG waits for ever for what others have."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.factories import SYSTEM, dag, site, turn
from wms.dags.models import Node
from wms.dags.services.dags import remove_dags
from wms.placement import runner
from wms.placement.models import PlacementAllocation, PlacementRequest
from wms.placement.operations import remove_requests
from wms.placement.services import submit_requests
from wms.placement.space_plans.models import SpacePlan
from wms.placement.storages.services import StorageSpec, create_storage

pytestmark = pytest.mark.django_db


@pytest.fixture
def pool(tmp_path, settings) -> Path:
    """A folder of which 1,000 KB may be allocated."""
    values = {"ROOTS": [str(tmp_path)]}
    settings.PILOTAGE = settings.PILOTAGE | {"PLACEMENT": settings.PILOTAGE["PLACEMENT"] | values}
    endpoint = f"file://{tmp_path}/"
    create_storage(StorageSpec("pool", [endpoint], space_bytes=1000 * 1024), actor=SYSTEM)
    site()
    return tmp_path


def _branch(name: str) -> str:
    """Two allocations one after the other, which are released together."""
    make = 'dap_type = "allocate"; dest_host = "pool"; size = "400KB"; duration = "1 hour"'
    give = 'dap_type = "release"; dest_host = "pool"'
    return "\n".join([
        f'DATA {name}1 {{\n[ {make}; allocation_id = "{name}-one" ]\n}}',
        f'DATA {name}2 {{\n[ {make}; allocation_id = "{name}-two" ]\n}}',
        f'DATA {name}3 {{\n[ {give}; allocation_id = "{name}-one" ]\n'
        f'[ {give}; allocation_id = "{name}-two" ]\n}}',
        f"PARENT {name}1 CHILD {name}2",
        f"PARENT {name}2 CHILD {name}3",
    ])  # fmt: skip


def _go_on() -> None:
    turn()
    runner.run_due()


def test_branches_that_would_wait_for_each_other_go_one_after_the_other(alice, pool: Path) -> None:
    made = dag(alice, node_count=0, commands=f"{_branch('A')}\n{_branch('B')}")
    _go_on()

    first = Node.objects.filter(dag=made, name__in=["A1", "B1"]).order_by("name")
    second = PlacementRequest.objects.exclude(state="completed").get()
    assert [node.state for node in first] == ["submitted", "submitted"]
    assert (second.state, second.attempt_number) == ("rescheduled", 0)
    assert second.attempts.count() == 0
    assert PlacementAllocation.objects.filter(released_at=None).count() == 1
    for _ in range(7):
        _go_on()

    made.refresh_from_db()
    assert (made.state, SpacePlan.objects.count()) == ("completed", 0)
    assert PlacementAllocation.objects.filter(released_at=None).count() == 0


def test_nobody_waits_for_space_that_a_node_has_ended_without(alice, pool: Path) -> None:
    """Some were done before the DAG began, as after a rescue, and some have no parent left."""
    missing = 'DATA X {\n[ dap_type = "stage"; src_url = "file:no" ]\n}\nPARENT X CHILD B1'
    ended = "DONE A1\nDONE A2\nDONE A3"
    branches = "\n".join(map(_branch, "ABC"))
    made = dag(alice, node_count=0, commands=f"{branches}\n{ended}\n{missing}\n")
    _go_on()
    remove_requests(
        PlacementRequest.objects.filter(kind="stage").values_list("pk", flat=True),
        actor=SYSTEM, reason="it is missing",
    )  # fmt: skip
    for _ in range(5):
        PlacementRequest.objects.filter(state="rescheduled").update(due_at=None)
        _go_on()

    states = dict(Node.objects.filter(dag=made).values_list("name", "state"))
    assert (states["X"], states["B1"], states["C3"]) == ("failed", "futile", "done")


def test_what_a_dag_needs_to_end_is_kept_from_other_requests(alice, charlie, pool: Path) -> None:
    dag(alice, node_count=0, commands=_branch("A"))
    _go_on()
    text = (
        '[dap_type = "allocate"; dest_host = "pool"; size = "SIZE"; duration = "1 hour"; '
        'allocation_id = "own"]'
    )
    [large] = submit_requests(text.replace("SIZE", "300KB"), actor=SYSTEM, owner=charlie).ids
    [small] = submit_requests(text.replace("SIZE", "200KB"), actor=SYSTEM, owner=charlie).ids
    runner.run_due()

    states = dict(PlacementRequest.objects.values_list("pk", "state"))
    assert (states[large], states[small]) == ("rescheduled", "completed")


def test_a_dag_for_which_no_order_fits_has_a_plan_without_claims(alice, pool: Path) -> None:
    dag(alice, node_count=0, commands=_branch("A").replace("400KB", "600KB"))
    _go_on()

    assert SpacePlan.objects.get().claims == []
    assert PlacementAllocation.objects.get().name == "A-one"


def test_a_removed_dag_leaves_no_plan_and_no_allocation(alice, pool: Path) -> None:
    made = dag(alice, node_count=0, commands=_branch("A"))
    _go_on()
    assert len(SpacePlan.objects.get().claims) == 2

    remove_dags([made.pk], actor=SYSTEM, reason="no longer needed")
    turn()
    assert SpacePlan.objects.count() == 0
    assert PlacementAllocation.objects.get().released_at is not None


def test_what_waits_for_space_is_locked_behind_all_that_a_release_waits_for(
    alice, pool: Path
) -> None:
    """Else a release and the removal of its DAG could each wait for a request of the other."""
    dag(alice, node_count=0, commands=f"{_branch('A')}\n{_branch('B')}")
    _go_on()
    for _ in range(2):
        turn()
        with CaptureQueriesContext(connection) as statements:
            runner.run_due()

    locks = [each["sql"] for each in statements if "FOR UPDATE" in each["sql"]]
    woken = [n for n, each in enumerate(locks) if "SKIP LOCKED" in each and "LIMIT 1000" in each]
    assert len(woken) == 2
    for place in woken:
        # Nothing is waited for before the next grant.
        assert all("SKIP LOCKED" in each for each in locks[place : place + 2])
