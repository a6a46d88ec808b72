"""Sites that fail get fewer matches: judged once a period, counted against the allowance."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from matching.negotiation.failure_throttle import Outcomes
from wms.sites.models import SiteEvent, SiteThrottle
from wms.sites.standing import standings
from wms.sites.throttling import PERIOD, adjust_throttles, note_matches, period_start, throttle_due

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
BAD, GOOD = Outcomes(failures=40), Outcomes(successes=9)


def test_periods_are_the_same_for_everybody() -> None:
    assert period_start(NOW + timedelta(seconds=599.9)) == NOW
    assert period_start(NOW + PERIOD) == NOW + PERIOD


def test_a_period_is_judged_once(make_site) -> None:
    assert throttle_due(NOW) is None
    site = make_site()
    assert throttle_due(NOW + timedelta(seconds=5)) == NOW - PERIOD

    adjust_throttles({site.pk: BAD}, NOW + timedelta(seconds=5))
    adjust_throttles({site.pk: BAD}, NOW + timedelta(seconds=10))

    assert throttle_due(NOW + timedelta(seconds=10)) is None
    assert throttle_due(NOW + PERIOD) == NOW
    throttle = SiteThrottle.objects.get()
    assert (throttle.allowance, throttle.failures, throttle.successes) == (18, 40, 0)
    assert throttle.judged_until == NOW


def test_a_new_site_is_judged_without_the_others(make_site) -> None:
    old = make_site("old")
    adjust_throttles({old.pk: BAD}, NOW)
    new = make_site("new")
    assert throttle_due(NOW) == NOW - PERIOD

    adjust_throttles({old.pk: BAD, new.pk: BAD}, NOW)

    assert [row.allowance for row in SiteThrottle.objects.order_by("site_id")] == [18, 18]
    assert throttle_due(NOW) is None


def test_matches_are_counted_against_the_allowance(make_site) -> None:
    site, other = make_site("x", failure_threshold=3), make_site("y")
    assert standings(NOW)[site.pk].allowance is None
    adjust_throttles({site.pk: BAD}, NOW)
    assert standings(NOW)[site.pk].allowance == 3

    note_matches({site.pk: 2, other.pk: 1})
    assert standings(NOW)[site.pk].allowance == 1
    assert standings(NOW)[site.pk].kind == ""

    note_matches({site.pk: 1})
    standing = standings(NOW)[site.pk]
    assert (standing.kind, standing.allowance) == ("throttled", 0)
    for fact in ("2026-11-20 12:10 UTC", "40 failures", "0 successes"):
        assert fact in standing.reason
    assert standings(NOW)[other.pk].allowance is None


def test_a_site_falls_to_nothing_and_recovers_by_itself(make_site) -> None:
    site, at, allowances = make_site(), NOW, []
    for outcomes in [BAD] * 6 + [Outcomes()] + [GOOD] * 2:
        adjust_throttles({site.pk: outcomes}, at)
        allowances.append(SiteThrottle.objects.get().allowance)
        at += PERIOD

    assert allowances == [18, 9, 4.5, 2.25, 1.125, 0, 1, 5, None]
    assert standings(at)[site.pk].kind == ""


def test_what_a_free_site_got_is_the_measure_of_its_first_allowance(make_site) -> None:
    site = make_site()
    adjust_throttles({}, NOW)
    note_matches({site.pk: 8})

    adjust_throttles({site.pk: BAD}, NOW + PERIOD)

    throttle = SiteThrottle.objects.get()
    assert (throttle.allowance, throttle.matched) == (4, 0)


def test_a_change_of_the_allowance_is_told(make_site) -> None:
    site = make_site()
    for count in range(3):
        adjust_throttles({site.pk: BAD if count else GOOD}, NOW + count * PERIOD)

    events = SiteEvent.objects.filter(event="throttle").order_by("pk")
    assert [event.facts["allowance"] for event in events] == [[None, 18], [18, 9]]
    assert events[0].facts["failures"] == 40
    assert events[0].actor == "system:negotiator"


def test_a_threshold_of_zero_lets_a_site_fail(make_site) -> None:
    site = make_site(failure_threshold=0)

    adjust_throttles({site.pk: BAD}, NOW)

    throttle = SiteThrottle.objects.get()
    assert (throttle.allowance, throttle.failures) == (None, 40)


def test_judging_takes_few_queries(make_site, django_assert_max_num_queries) -> None:
    sites = [make_site(f"site-{number}") for number in range(6)]
    adjust_throttles({site.pk: BAD for site in sites}, NOW)

    with django_assert_max_num_queries(7):
        adjust_throttles({site.pk: BAD for site in sites}, NOW + PERIOD)
    with django_assert_max_num_queries(5):
        note_matches({site.pk: 1 for site in sites})
