"""Ban, drain and unban by hand."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from wms.core.actors import Actor
from wms.core.errors import Conflict, NotFound, NotPermitted, ReasonRequired
from wms.core.models import AuditEntry, User
from wms.sites.models import Site, SiteEvent
from wms.sites.selectors import enabled_queues
from wms.sites.services import ban_site, drain_site, save_site, unban_site
from wms.sites.standing import standings

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


@pytest.fixture
def shifter(sam: User) -> Actor:
    return Actor.person(sam)


def queues() -> list[str]:
    return [queue.site.name for queue in enabled_queues(NOW)]


def test_a_banned_site_gets_neither_dags_nor_pilots(make_site, shifter: Actor) -> None:
    site = make_site()

    ban_site("site-a", actor=shifter, reason="eats jobs")

    standing = standings(NOW)[site.pk]
    assert standing.kind == "banned"
    assert "sam" in standing.reason
    assert standing.reason.endswith(": eats jobs")
    assert queues() == []


def test_a_draining_site_gets_pilots_for_what_it_has(make_site, shifter: Actor) -> None:
    site = make_site()

    drain_site("site-a", actor=shifter, reason="moves house")

    assert standings(NOW)[site.pk].kind == "draining"
    assert queues() == ["site-a"]


def test_an_unbanned_site_is_open_again(make_site, shifter: Actor) -> None:
    site = make_site()
    ban_site("site-a", actor=shifter, reason="eats jobs")
    drain_site("site-a", actor=shifter, reason="better")

    opened = unban_site("site-a", actor=shifter, reason="repaired")

    assert (opened.state, opened.state_reason, opened.state_by) == ("open", "repaired", "sam")
    assert standings(NOW)[site.pk].kind == ""
    assert queues() == ["site-a"]


def test_every_decision_is_an_event_and_audited(make_site, shifter: Actor) -> None:
    make_site()
    ban_site("site-a", actor=shifter, reason="eats jobs")
    unban_site("site-a", actor=shifter, reason="repaired")

    events = SiteEvent.objects.filter(event__in=["ban", "unban"]).order_by("pk")
    assert list(events.values_list("event", "from_state", "to_state", "actor", "reason")) == [
        ("ban", "open", "banned", "sam", "eats jobs"),
        ("unban", "banned", "open", "sam", "repaired"),
    ]
    entries = AuditEntry.objects.filter(actor="sam").order_by("pk")
    assert list(entries.values_list("action", "target", "reason")) == [
        ("ban site", "site site-a", "eats jobs"),
        ("unban site", "site site-a", "repaired"),
    ]


@pytest.mark.parametrize("change", [ban_site, drain_site, unban_site])
def test_a_decision_needs_a_reason_a_site_and_the_role(
    make_site, shifter: Actor, alice: User, change
) -> None:
    make_site()

    with pytest.raises(ReasonRequired):
        change("site-a", actor=shifter, reason="  ")
    with pytest.raises(NotFound):
        change("nowhere", actor=shifter, reason="why")
    with pytest.raises(NotPermitted, match="shifter"):
        change("site-a", actor=Actor.person(alice), reason="why")
    assert Site.objects.get().state == "open"


def test_what_changes_nothing_is_a_conflict(make_site, shifter: Actor) -> None:
    make_site()
    with pytest.raises(Conflict, match="site-a is open"):
        unban_site("site-a", actor=shifter, reason="why")

    ban_site("site-a", actor=shifter, reason="eats jobs")
    with pytest.raises(Conflict, match="site-a is banned"):
        ban_site("site-a", actor=shifter, reason="again")


def test_configuring_a_site_keeps_what_was_decided_meanwhile(
    make_site, shifter: Actor, olga: User
) -> None:
    stale = make_site()
    ban_site("site-a", actor=shifter, reason="eats jobs")
    stale.max_matches = 9

    save_site(stale, actor=Actor.person(olga))

    site = Site.objects.get()
    assert (site.state, site.max_matches) == ("banned", 9)
    assert make_site(max_matches=7).state == "banned"


def test_sites_that_are_off_or_without_a_queue_stand_so(make_site) -> None:
    off = make_site("off", is_enabled=False)
    bare = make_site("bare", queue={"is_enabled": False})

    standing = standings(NOW)

    assert (standing[off.pk].kind, standing[bare.pk].kind) == ("disabled", "no queue")
    assert {each.allowance for each in standing.values()} == {None}
