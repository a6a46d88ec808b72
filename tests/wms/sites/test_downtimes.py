"""Downtimes: when they close a site, and for what."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from wms.core.actors import Actor
from wms.core.errors import Conflict, InvalidInput, NotFound, NotPermitted
from wms.core.models import AuditEntry, User
from wms.sites.downtimes.models import Downtime
from wms.sites.downtimes.services import add_downtime, cancel_downtimes, save_downtime
from wms.sites.models import Site, SiteEvent
from wms.sites.selectors import enabled_queues
from wms.sites.standing import standings

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def shifter(sam: User) -> Actor:
    return Actor.person(sam)


def enter(actor: Actor, **how: Any) -> Downtime:
    values = {"start": NOW + 2 * HOUR, "end": NOW + 4 * HOUR, "reason": "new disks"} | how
    return add_downtime("site-a", actor=actor, now=NOW, **values)


@pytest.mark.parametrize(
    ("after_h", "kind", "has_pilots"),
    [
        (0.9, "", True),
        (1, "downtime", True),
        (1.9, "downtime", True),
        (2, "downtime", False),
        (3.9, "downtime", False),
        (4, "", True),
    ],
)
def test_no_dag_from_the_lead_time_and_no_pilot_from_the_start(
    make_site, shifter: Actor, after_h: float, kind: str, has_pilots: bool
) -> None:
    site = make_site()
    enter(shifter, lead_time_s=3600)
    at = NOW + after_h * HOUR

    assert standings(at)[site.pk].kind == kind
    assert enabled_queues(at).exists() == has_pilots


def test_the_reason_says_until_when_and_who_entered_it(make_site, shifter: Actor) -> None:
    site = make_site()
    enter(shifter, lead_time_s=3600)

    before, during = standings(NOW + HOUR)[site.pk], standings(NOW + 3 * HOUR)[site.pk]
    assert "14:00 UTC" in before.reason
    for standing in (before, during):
        assert standing.kind == "downtime"
        for fact in ("2026-11-20 16:00 UTC", "sam", "new disks"):
            assert fact in standing.reason


@pytest.mark.parametrize(
    "when",
    [
        {"start": datetime(1, 1, 1, tzinfo=UTC), "lead_time_s": 86_400},
        {"end": datetime(9999, 12, 31, 23, 59, tzinfo=UTC)},
    ],
)
def test_dates_that_cannot_be_counted_with_are_refused(
    make_site, shifter: Actor, when: dict[str, Any]
) -> None:
    make_site()

    with pytest.raises(InvalidInput) as refused:
        enter(shifter, **when)
    assert {each.field for each in refused.value.findings} <= {"start", "end"}


def test_a_cancelled_downtime_closes_nothing(make_site, shifter: Actor) -> None:
    site = make_site()
    downtime = enter(shifter, start=NOW - HOUR)
    assert not enabled_queues(NOW).exists()

    cancel_downtimes([downtime.pk], actor=shifter, now=NOW)

    assert standings(NOW)[site.pk].kind == ""
    assert enabled_queues(NOW).exists()
    with pytest.raises(Conflict, match="sam"):
        cancel_downtimes([downtime.pk], actor=shifter, now=NOW)


def test_one_of_several_downtimes_is_enough(make_site, shifter: Actor) -> None:
    site = make_site()
    enter(shifter)
    enter(shifter, start=NOW - HOUR, end=NOW + HOUR)

    assert standings(NOW)[site.pk].kind == "downtime"


def test_a_downtime_that_is_over_cannot_be_cancelled(make_site, shifter: Actor) -> None:
    make_site()
    downtime = enter(shifter)

    with pytest.raises(Conflict, match="is over"):
        cancel_downtimes([downtime.pk], actor=shifter, now=NOW + 4 * HOUR)
    with pytest.raises(NotFound):
        cancel_downtimes([0], actor=shifter, now=NOW)


@pytest.mark.parametrize(
    ("how", "field", "message"),
    [
        ({"end": NOW + 2 * HOUR}, "end", "after the start"),
        ({"start": NOW - 2 * HOUR, "end": NOW}, "end", "in the future"),
        ({"reason": " "}, "reason", "give a reason"),
        ({"lead_time_s": -1}, "lead_time_s", "from 0 to 2592000"),
        ({"lead_time_s": 2_592_001}, "lead_time_s", "from 0 to 2592000"),
    ],
)
def test_a_downtime_with_a_fault_is_refused_by_field(
    make_site, shifter: Actor, how: dict[str, Any], field: str, message: str
) -> None:
    make_site()

    with pytest.raises(InvalidInput) as caught:
        enter(shifter, **how)

    [finding] = caught.value.findings
    assert finding.field == field
    assert message in finding.message
    assert not Downtime.objects.exists()


def test_a_downtime_needs_a_site_and_a_shifter(make_site, shifter: Actor, alice: User) -> None:
    with pytest.raises(NotFound, match="no site site-a"):
        enter(shifter)
    make_site()
    with pytest.raises(NotPermitted):
        enter(Actor.person(alice))


def test_entering_changing_and_cancelling_is_told_and_audited(make_site, shifter: Actor) -> None:
    make_site()
    downtime = enter(shifter)
    downtime.end += HOUR
    save_downtime(downtime, actor=shifter, now=NOW)
    save_downtime(downtime, actor=shifter, now=NOW)
    cancel_downtimes([downtime.pk], actor=shifter, now=NOW)

    told = ["add downtime", "change downtime", "cancel downtime"]
    events = SiteEvent.objects.filter(event__contains="downtime").order_by("pk")
    assert [event.event for event in events] == told
    assert events[1].facts["end"] == "2026-11-20T17:00:00+00:00"
    entries = AuditEntry.objects.filter(actor="sam").order_by("pk")
    assert [entry.action for entry in entries] == told
    # The trail keeps what held before, too.
    assert entries[1].facts["end"] == ["2026-11-20T16:00:00+00:00", "2026-11-20T17:00:00+00:00"]
    with pytest.raises(Conflict):
        save_downtime(downtime, actor=shifter, now=NOW)


def test_the_author_of_a_downtime_stays_the_same(make_site, shifter: Actor, olga: User) -> None:
    make_site()
    downtime = enter(shifter)
    downtime.reason = "newer disks"

    save_downtime(downtime, actor=Actor.person(olga), now=NOW)

    assert Downtime.objects.get().author == "sam"
    assert Downtime.objects.get().site == Site.objects.get()
