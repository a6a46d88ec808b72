"""Remarks are permitted, reasoned, audited and kept; care of a subject follows from them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import Exists
from django.utils import timezone

from tests import factories
from tests.portal.walled_world import walled_world
from wms.core.actors import Actor
from wms.core.errors import Conflict, InvalidInput, NotFound, NotPermitted, ReasonRequired
from wms.core.models import AuditEntry
from wms.dags.models import Dag
from wms.dags.services.dags import hold_dags
from wms.remarks import services
from wms.remarks.models import Handling, Remark
from wms.remarks.selectors import acknowledged, assigned, care_of, visible_remarks
from wms.sites.models import Site


@pytest.fixture
def people(db: None) -> Any:
    return factories.people()


@pytest.fixture
def dag(people: Any) -> Dag:
    """A DAG of Alice's."""
    return factories.dag(people.alice)


def care(dag: Dag, *, after: timedelta = timedelta(0)) -> str:
    dag.refresh_from_db()
    return str(care_of("dag", dag, now=timezone.now() + after))


def is_found(dag: Dag, condition: Exists) -> bool:
    return Dag.objects.filter(condition, pk=dag.pk).exists()


def test_every_step_is_kept_and_audited_and_the_last_ones_hold(people: Any, dag: Dag) -> None:
    sam, olga = Actor.person(people.sam), Actor.person(people.olga)

    services.note("dag", [dag.pk], actor=sam, reason="broken input", ticket="https://t.org/1")
    services.acknowledge("dag", [dag.pk], actor=sam, reason="asked its owner", for_s=3600)
    services.assign("dag", [dag.pk], actor=olga, person="alice")

    assert care(dag) == "acknowledged by sam, assigned to alice"
    assert care(dag, after=timedelta(hours=2)) == "assigned to alice"
    assert is_found(dag, acknowledged("dag", now=timezone.now()))
    assert not is_found(dag, acknowledged("dag", now=timezone.now() + timedelta(hours=2)))
    assert is_found(dag, assigned("dag", [people.alice.pk]))
    services.hand_back("dag", [dag.pk], actor=sam)
    assert care(dag) == "looked after by nobody"
    assert not services.hand_back("dag", [dag.pk], actor=sam).changed
    told = Remark.objects.order_by("pk").values_list("event", "author__username", "subject_name")
    assert list(told) == [
        ("note", "sam", dag.name), ("acknowledge", "sam", dag.name),
        ("assign", "olga", dag.name), ("hand_back", "sam", dag.name),
    ]  # fmt: skip
    audited = AuditEntry.objects.filter(target=f"DAG {dag.pk}", action__in=[
        "note DAG", "acknowledge DAG", "assign DAG", "hand back DAG",
    ])  # fmt: skip
    assert audited.count() == 4
    assert audited.get(action="assign DAG").facts == {"person": "alice"}


def test_a_change_of_state_ends_an_acknowledgement_and_no_assignment(people: Any, dag: Dag) -> None:
    sam = Actor.person(people.sam)
    services.acknowledge("dag", [dag.pk], actor=sam, reason="known")
    services.assign("dag", [dag.pk], actor=sam)

    hold_dags([dag.pk], actor=sam, reason="it fills the disk")
    Dag.objects.filter(pk=dag.pk).update(state_since=timezone.now() + timedelta(seconds=1))

    assert care(dag) == "assigned to sam"
    assert not is_found(dag, acknowledged("dag", now=timezone.now()))


def test_owners_write_about_their_own_and_shifters_about_all(people: Any, dag: Dag) -> None:
    site = Site.objects.create(name="UW")
    services.note("dag", [dag.pk], actor=Actor.person(people.alice), reason="mine")

    with pytest.raises(NotPermitted):
        services.note("dag", [dag.pk], actor=Actor.person(people.bob), reason="not mine")
    with pytest.raises(NotPermitted):
        services.note("site", [site.pk], actor=Actor.person(people.alice), reason="no")
    with pytest.raises(NotPermitted):
        services.write_log(actor=Actor.person(people.alice), text="no")
    services.note("site", [site.pk], actor=Actor.person(people.sam), reason="its disk is full")
    services.write_log(actor=Actor.person(people.sam), text="a quiet night")
    assert Remark.objects.count() == 3


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"reason": " "}, ReasonRequired),
        ({"reason": "x" * 1001}, InvalidInput),
        ({"ticket": "javascript:alert(1)"}, InvalidInput),
        ({"ticket": "https://sam:secret@t.org/1"}, InvalidInput),
        ({"ticket": "https://t.org/a b"}, InvalidInput),
        ({"for_s": 0}, InvalidInput),
        ({"seen": "acknowledged by olga"}, Conflict),
        ({"kind": "job"}, NotFound),
        ({"ids": [0]}, NotFound),
    ],
)
def test_what_cannot_be_kept_is_refused_and_changes_nothing(
    given: dict[str, Any], error: type[Exception], people: Any, dag: Dag
) -> None:
    asked = {"kind": "dag", "ids": [dag.pk], "reason": "known", **given}

    with pytest.raises(error):
        services.acknowledge(asked.pop("kind"), asked.pop("ids"), actor=Actor.person(people.sam),
                             **asked)  # fmt: skip

    assert not Remark.objects.exists()
    assert not Handling.objects.exists()


def test_nobody_reads_or_is_given_what_is_behind_a_wall(db: None) -> None:
    world = walled_world()
    people, amy = world.b.people, world.people["user"]
    services.note("dag", [world.b.dag.pk], actor=Actor.person(people.sam), reason="theirs")
    services.note("dag", [world.dag.pk], actor=Actor.person(people.sam), reason="ours")
    services.write_log(actor=Actor.person(people.sam), text="whose?")

    seen = {name: set(visible_remarks(user).values_list("text", flat=True))
            for name, user in (("amy", amy), ("sam", people.sam))}  # fmt: skip

    assert seen["amy"] == {"ours"}
    assert seen["sam"] >= {"theirs", "ours", "whose?"}
    with pytest.raises(NotFound):
        services.note("dag", [world.b.dag.pk], actor=Actor.person(amy), reason="no")
    with pytest.raises(InvalidInput):
        services.assign("dag", [world.b.dag.pk], actor=Actor.person(people.sam),
                        person=amy.username)  # fmt: skip


def test_a_remark_outlives_its_subject_with_the_name_it_had(people: Any) -> None:
    site = Site.objects.create(name="gone")
    services.note("site", [site.pk], actor=Actor.person(people.sam), reason="closes for good")

    site.delete()

    assert visible_remarks(people.sam).get().subject_name == "gone"
