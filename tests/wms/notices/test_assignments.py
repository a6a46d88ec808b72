"""Notices to whom something is assigned, who need not have subscribed."""

from __future__ import annotations

from types import SimpleNamespace

from tests import factories
from tests.wms.notices.hearing import told
from wms.core.actors import Actor
from wms.core.models import InboxEntry
from wms.notices.models import Notice
from wms.remarks.services import assign, hand_back, note


def test_who_is_assigned_something_by_another_is_told_once(people: SimpleNamespace) -> None:
    sam, olga = Actor.person(people.sam), Actor.person(people.olga)
    dag, site = factories.dag(people.alice), factories.site("UW")

    note("dag", [dag.pk], actor=sam, reason="broken input")
    assign("dag", [dag.pk], actor=sam, person="alice", reason="look", ticket="https://t.org/1")
    assign("dag", [dag.pk], actor=olga, person="alice")
    assign("site", [site.pk], actor=sam)
    hand_back("site", [site.pk], actor=sam)
    assign("site", [site.pk], actor=olga, person="sam")

    assert [kind for kind, _ in told(people.alice)] == ["assigned"]
    [notice] = Notice.objects.filter(user=people.alice)
    assert (notice.subject_kind, notice.subject_id) == ("dag", str(dag.pk))
    assert notice.text == "look https://t.org/1"
    assert [kind for kind, _ in told(people.sam)] == ["assigned"]
    assert Notice.objects.get(user=people.sam).subject_id == "UW"
    assert not Notice.objects.filter(user=people.olga).exists()
    assert not InboxEntry.objects.filter(topic="remark-assigned").exists()


def test_who_may_not_see_it_any_more_is_told_nothing(people: SimpleNamespace) -> None:
    dag = factories.dag(people.alice)
    assign("dag", [dag.pk], actor=Actor.person(people.sam), person="bob")
    people.bob.is_active = False
    people.bob.save(update_fields=["is_active"])

    assert told(people.bob) == []
