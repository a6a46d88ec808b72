"""Gates are opened and closed by those who may, and tolerated failures are counted rightly."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests import factories
from tests.wms.dags.driving import NOW, advance, assert_log_agrees, match, run_all, run_one, states
from wms.core.actors import Actor
from wms.core.errors import Conflict, InvalidInput, NotPermitted, ReasonRequired
from wms.core.models import AuditEntry, Role
from wms.dags.engine.gates import gate_of
from wms.dags.models import Dag, NodeEvent, NodeTimer, NodeWork
from wms.dags.policy import may_decide
from wms.dags.reading.gate_selectors import asked_by, gates_to_decide
from wms.dags.reading.obstacles import obstacles_of
from wms.dags.reading.selectors import needing_attention
from wms.dags.services.dags import hold_dags, release_dags
from wms.dags.services.gates import decide_gates
from wms.dags.services.nodes import change_nodes, mark_nodes, rerun_nodes
from wms.notices import fanout
from wms.notices.gate_notices import gates_of
from wms.notices.models import Notice

GATED = "JOB A step.sub\nGATE g{who}\nJOB B step.sub\nPARENT A CHILD g\nPARENT g CHILD B\n"
SIM = "JOB A step.sub\nJOB B step.sub\nJOB M step.sub\nPARENT A B CHILD M\n"
TOLERANT = f"{SIM}CATEGORY A sim\nCATEGORY B sim\nTOLERANCE CATEGORY sim 1\n"
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _site(make_site) -> None:
    make_site()


def opened(dag: Dag, user, *names: str, opens: bool = True, reason: str = "it looks well"):
    return decide_gates(
        dag.pk, names or ["g"], opens=opens, actor=Actor.person(user), reason=reason
    )


def waiting(submit, who: str = "") -> Dag:
    dag = run_all(match(submit(GATED.format(who=who))))
    assert states(dag) == {"A": "done", "g": "ready", "B": "waiting"}
    return dag


def test_a_gate_tells_that_it_waits_and_goes_on_when_it_is_opened(submit, alice) -> None:
    dag = waiting(submit, " DEADLINE 2d")
    gate = dag.nodes.select_related("dag", "work").get(name="g")
    assert [each.kind for each in obstacles_of(gate, now=NOW)] == ["gate"]
    assert gate.work.waits_since is not None
    assert NodeTimer.objects.get().due_at == gate.work.waits_since + timedelta(days=2)
    [notice] = _told(alice)
    assert (notice.kind, notice.subject_id) == ("gate-waits", str(dag.pk))
    assert [each.node.pk for each in gates_of(alice, [notice]).values()] == [gate.pk]

    assert opened(dag, alice).changed == [gate.pk]

    assert gates_of(alice, [notice]) == {}
    assert not NodeTimer.objects.exists()
    event = NodeEvent.objects.get(node=gate, event="succeed")
    assert (event.actor, event.reason, event.cause) == ("alice", "it looks well", "person")
    assert AuditEntry.objects.get(action="open gate").target == f"DAG {dag.pk}, node g"
    assert run_all(dag).state == "completed"
    # Whoever says so once more has lost nothing, and done nothing.
    with pytest.raises(Conflict):
        opened(dag, alice)
    assert_log_agrees(dag)


def _told(*people) -> list[Notice]:
    fanout.run_cycle(NOW)
    told = Notice.objects.filter(user__in=people, kind=Notice.Kind.WAITING)
    return list(told.order_by("user"))


def test_a_second_yes_is_skipped_and_a_no_after_it_refused(submit, alice) -> None:
    dag = waiting(submit)
    gate = dag.nodes.get(name="g")
    opened(dag, alice)

    assert opened(dag, alice).skipped == [gate.pk]
    with pytest.raises(InvalidInput):
        opened(dag, alice, opens=False)
    assert NodeEvent.objects.filter(node=gate).count() == 3


@pytest.mark.slow
def test_a_gate_is_opened_by_those_whom_it_names_and_by_nobody_else(
    submit, alice, charlie, olga
) -> None:
    bob = factories.person("bob")
    factories.accounting(bob, "quality")
    sheila = factories.person("sheila", Role.SHIFTER)
    dag = waiting(submit, " BY group:quality,user:charlie")

    assert {each.user for each in _told(alice, bob, charlie, sheila)} == {bob, charlie}
    for other in (alice, sheila, olga):
        with pytest.raises(NotPermitted):
            opened(dag, other)
    opened(dag, bob)
    assert states(dag)["g"] == "done"

    by_role = waiting(submit, " BY role:shifter")
    with pytest.raises(NotPermitted):
        opened(by_role, alice)
    opened(by_role, sheila, opens=False)
    assert states(advance(by_role)) == {"A": "done", "g": "failed", "B": "futile"}
    assert by_role.state == "failed"


def test_what_waits_for_the_yes_of_a_user_is_what_the_user_may_decide(
    submit, alice, charlie, olga
) -> None:
    bob, sheila = factories.person("bob"), factories.person("sheila", Role.SHIFTER)
    factories.accounting(bob, "quality")
    people = [alice, bob, charlie, olga, sheila, factories.person("vera", Role.VIEWER)]
    people.append(factories.person("ada", Role.ADMIN))
    lines = ["", " DEADLINE 2d", " BY user:charlie", " BY group:quality,role:operator"]
    lines += [" BY role:user", " BY role:shifter DEADLINE 1h THEN OPEN"]
    text = "".join(f"GATE g{at}{line}\n" for at, line in enumerate(lines))
    dag = match(submit(text + "GATE t UNTIL 2090-01-01T00:00Z\nJOB B step.sub\n"))
    gates = {gate.name: gate_of(gate) for gate in dag.nodes.filter(kind="gate")}

    for user in people:
        told = gates_to_decide(user, only_asked=False, limit=20)
        assert {each.node.name for each in told} == {
            name
            for name, gate in gates.items()
            if gate.opens_at is None and may_decide(user, dag, gate.who)
        }
        asked = gates_to_decide(user, only_asked=True, limit=20)
        assert {each.node.name for each in asked} == {
            each.node.name for each in told if user.pk in asked_by(each.node, alice.pk)
        }

    [*_, last] = gates_to_decide(sheila, only_asked=False, limit=20)
    assert (last.node.name, last.opens_then) == ("g5", True)
    assert last.due_at == last.waits_since + timedelta(hours=1)
    assert len(gates_to_decide(alice, only_asked=False, limit=1)) == 1
    opened(dag, alice, "g0", "g1")
    assert [each.node.name for each in gates_to_decide(alice, only_asked=True, limit=9)] == ["g4"]


def test_a_gate_that_names_nobody_is_its_owners_and_the_shifters(submit, charlie) -> None:
    dag = waiting(submit)
    for other in (charlie, factories.person("vera", Role.VIEWER)):
        with pytest.raises(NotPermitted):
            opened(dag, other)
    opened(dag, factories.person("sheila", Role.SHIFTER))


def test_only_what_waits_is_opened_and_only_with_a_reason(submit, alice) -> None:
    dag = match(submit(GATED.format(who="") + "GATE t UNTIL 2090-01-01T00:00Z\n"))
    for names in (["A"], ["nobody"], ["g"], ["t"], []):
        with pytest.raises(InvalidInput):
            opened(dag, alice, *names) if names else decide_gates(
                dag.pk, names, opens=True, actor=Actor.person(alice), reason="so"
            )
    with pytest.raises(ReasonRequired):
        opened(dag, alice, reason=" ")
    assert _told(alice) == []


def test_a_gate_is_not_marked_or_changed_past_those_who_decide(submit, alice) -> None:
    dag, why = waiting(submit), {"actor": Actor.person(alice), "reason": "in a hurry"}
    with pytest.raises(InvalidInput):
        mark_nodes(dag.pk, ["g"], as_done=True, **why)
    with pytest.raises(InvalidInput):
        change_nodes(dag.pk, ["g"], priority=5, **why)


def test_a_gate_of_a_held_dag_may_be_opened_and_runs_nothing_before_the_release(
    submit, alice
) -> None:
    dag, why = waiting(submit), {"actor": Actor.person(alice), "reason": "a downtime"}
    hold_dags([dag.pk], **why)

    opened(dag, alice)

    assert states(advance(dag))["B"] == "ready"
    release_dags([dag.pk], actor=Actor.person(alice))
    assert run_all(dag).state == "completed"
    assert_log_agrees(dag)


@pytest.mark.slow
def test_a_gate_that_runs_again_asks_again(submit, alice) -> None:
    dag = waiting(submit)
    opened(dag, alice, opens=False)
    advance(dag)
    rerun_nodes(dag.pk, ["g"], actor=Actor.person(alice), reason="asked too early")

    match(dag)

    assert states(dag)["g"] == "ready"
    assert len(_told(alice)) == 2
    opened(dag, alice)
    assert run_all(dag).state == "completed"
    assert_log_agrees(dag)


def test_a_gate_whose_people_there_are_not_is_refused_at_submission(submit) -> None:
    with pytest.raises(InvalidInput) as refused:
        submit("GATE g BY user:nobody,group:nothing,role:shifter\n")
    assert [(each.line, each.command) for each in refused.value.findings] == [(1, "GATE")] * 2


@pytest.mark.slow
def test_a_tolerated_failure_is_counted_and_forgotten_when_it_runs_again(submit, alice) -> None:
    dag = run_all(match(submit(TOLERANT)), {"A": 1})
    assert states(dag) == {"A": "failed", "B": "done", "M": "done"}
    assert (dag.state, dag.state_cause, dag.status, dag.exit_code) == (
        "completed", "tolerated", 0, 0,
    )  # fmt: skip
    assert "A" in dag.state_reason
    assert dag.category_counts[" tolerated sim"] == 1
    fanout.run_cycle(NOW)
    assert not Notice.objects.filter(kind=Notice.Kind.FAILING).exists()

    rerun_nodes(
        dag.pk, ["A"], actor=Actor.person(alice), reason="once more", with_descendants=False
    )
    dag.refresh_from_db()
    assert dag.category_counts[" tolerated sim"] == 0
    assert_log_agrees(dag)
    run_all(match(dag), {"A": 1})
    assert (dag.state, dag.category_counts[" tolerated sim"]) == ("completed", 1)
    assert_log_agrees(dag)


def test_a_dag_needs_attention_for_failures_that_it_does_not_tolerate_and_for_no_others(
    submit,
) -> None:
    needy = needing_attention(Dag.objects.all(), now=NOW)
    dag = match(submit(f"{TOLERANT}JOB X step.sub\nJOB Y step.sub\n"))
    run_one("A", 1)
    advance(dag)
    assert (dag.state, dag.failed_count) == ("running", 1)
    assert not needy.exists()

    run_one("X", 1)
    advance(dag)

    assert (dag.state, dag.failed_count) == ("running", 2)
    assert list(needy.all()) == [dag]


def test_nodes_that_people_mark_use_the_tolerance_up_and_give_it_back(submit, alice) -> None:
    why = {"actor": Actor.person(alice), "reason": "by hand"}
    dag = match(submit(f"GATE g\n{TOLERANT}PARENT g CHILD A B\n"))
    mark_nodes(dag.pk, ["A"], as_done=False, **why)
    assert states(dag)["M"] == "waiting"
    assert_log_agrees(dag)

    mark_nodes(dag.pk, ["A"], as_done=True, **why)
    assert not NodeWork.objects.filter(is_tolerated=True).exists()
    mark_nodes(dag.pk, ["B"], as_done=False, **why)
    assert states(dag)["B"] == "failed"

    opened(dag, alice)
    assert run_all(dag).state == "completed"
    assert states(dag)["M"] == "done"
    assert_log_agrees(dag)
