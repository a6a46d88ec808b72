"""Actions as they are declared: what is in the way is the same for a row and for the database."""

from __future__ import annotations

import pytest
from django.db.models import Exists, Q

from tests import factories
from wms.actions.actions import Action
from wms.actions.allocations import ALLOCATIONS
from wms.actions.arguments import Argument, ArgumentType
from wms.actions.dags import DAGS
from wms.actions.failures import FAILURES
from wms.actions.jobs import JOBS
from wms.actions.obstacles import holds
from wms.actions.registry import ALL_KINDS, KINDS
from wms.actions.sites_and_pilots import PILOTS, PLACEMENTS, SITES, SUSPECTED_NODES
from wms.core.actors import Actor
from wms.dags.models import Dag
from wms.dags.services.dags import halt_dags, hold_dags


@pytest.mark.slow
@pytest.mark.django_db
def test_a_row_and_the_database_agree_on_what_is_in_the_way() -> None:
    alice = factories.people().alice
    actor = Actor.person(alice)
    held, halted = factories.running_dag(alice), factories.running_dag(alice)
    hold_dags([held.pk], actor=actor, reason="look")
    halt_dags([halted.pk], actor=actor, reason="look")
    factories.running_dag(alice)
    factories.dag(alice)

    for action in DAGS.on_page:
        told = dict(Dag.objects.annotate(why=action.obstacle()).values_list("pk", "why"))
        assert {dag.pk: action.is_possible(dag) for dag in Dag.objects.all()} == {
            pk: not why for pk, why in told.items()
        }


def test_conditions_are_negated_and_joined() -> None:
    dag = Dag(state="held", failed_count=0)

    assert holds(Q(state="held") & ~Q(failed_count=1), dag)
    assert holds(Q(state="idle") | Q(site__isnull=True), dag)
    assert not holds(~(Q(state__in=["held"]) | Q(failed_count=1)), dag)


@pytest.mark.parametrize(
    "condition", [Q(failed_count__gt=1), Q(Exists(Dag.objects.all())), Q(events=1)]
)
def test_what_a_row_does_not_tell_is_refused(condition: Q) -> None:
    with pytest.raises(ValueError, match=r"column|compared"):
        holds(condition, Dag(state="held"))


@pytest.mark.parametrize("kind", ALL_KINDS.values(), ids=lambda kind: kind.name)
def test_whatever_a_face_offers_can_be_carried_out(kind) -> None:
    for action in kind.actions.values():
        assert action.page or action.api or action.shell or action.bulk
        assert bool(action.one) == bool(action.page or action.api or action.shell)
        assert not action.needs_reason or action.takes_reason


@pytest.mark.parametrize(
    "kind",
    [ALLOCATIONS, DAGS, FAILURES, PILOTS, PLACEMENTS, SITES, SUSPECTED_NODES],
    ids=lambda kind: kind.name,
)
def test_pages_that_judge_a_row_can_judge_all_that_they_offer(kind) -> None:
    for action in kind.on_page:
        assert action.is_possible(kind.model()) in {True, False}


@pytest.mark.django_db
def test_jobs_are_judged_by_the_database() -> None:
    waiting = factories.job(factories.people().alice)

    rows = JOBS.model.objects.annotate(why=JOBS.actions["peek"].obstacle())

    assert rows.get(pk=waiting.pk).why


def test_people_give_minutes_and_the_service_gets_seconds() -> None:
    minutes = Argument("rest_min", "Rest", ArgumentType.WHOLE, None, parameter="rest_s", factor=60)
    action = Action("rest", "Rest", arguments=(minutes,))

    assert action.for_service({"rest_min": 2}) == {"rest_s": 120}
    assert action.for_service({}) == {"rest_s": None}


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_arguments_in_bulk_are_of_types_that_lists_can_ask_for(kind) -> None:
    for action in kind.in_bulk:
        assert {each.type for each in action.arguments} <= {
            ArgumentType.YES_NO,
            ArgumentType.WHOLE,
            ArgumentType.NAMES,
        }
