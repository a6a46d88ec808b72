"""Sentences about sites that users read, after "the site is ...": the only place that pins them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from wms.core.actors import Actor
from wms.sites.advertising import advertise
from wms.sites.downtimes.services import add_downtime
from wms.sites.standing import standings

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def _downtime(site, sam: Actor, olga: Actor) -> None:
    start, end = NOW + timedelta(hours=2), NOW + timedelta(hours=4)
    add_downtime(
        "site-a", start=start, end=end, reason="new disks", lead_time_s=7200, actor=sam, now=NOW
    )


def _silence(site, sam: Actor, olga: Actor) -> None:
    ad = 'Name = "site-a"\nClassAdLifetime = 60'
    advertise(ad, actor=olga, now=NOW - timedelta(minutes=5))


@pytest.mark.parametrize(
    ("happens", "hours", "sentence"),
    [
        (
            _downtime, 1,
            "before (from 2026-11-20 14:00 UTC) its downtime until 2026-11-20 16:00 UTC, entered "
            "by sam: new disks",
        ),
        (_downtime, 3, "in downtime until 2026-11-20 16:00 UTC, entered by sam: new disks"),
        (
            _silence, 0,
            "silent: what it advertised expired at 2026-11-20 11:56 UTC and was not renewed",
        ),
    ],
)  # fmt: skip
def test_why_a_site_takes_no_new_dags(make_site, sam, olga, happens, hours, sentence) -> None:
    site = make_site()

    happens(site, Actor.person(sam), Actor.person(olga))

    assert standings(NOW + timedelta(hours=hours))[site.pk].reason == sentence
