"""What is marked beside the figures, and what is not."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests import factories
from wms.accounting.walls import with_groups
from wms.core.audit import record_action
from wms.core.models import User
from wms.history.annotations import MOST, annotations_between
from wms.jobs.limits import save_limit
from wms.jobs.models import RunningLimit
from wms.sites.downtimes.services import cancel_downtimes
from wms.sites.services import ban_site, unban_site

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


def words(user: User, site: str = "") -> list[str]:
    now = timezone.now()
    told = annotations_between(user, since=now - DAY, until=now + DAY, site=site).shown
    return [each.words for each in told if "configured anew" not in each.words]


def test_sites_that_were_closed_and_opened_are_told_with_the_reasons(alice: User) -> None:
    factories.site("UW")
    ban_site("UW", actor=factories.SYSTEM, reason="disk full")
    unban_site("UW", actor=factories.SYSTEM, reason="disk mended")

    closed, opened = words(alice)
    assert (closed.split(": ")[0], closed.split(": ")[-1]) == ("UW", "disk full")
    assert (opened.split(": ")[0], opened.split(": ")[-1]) == ("UW", "disk mended")


def test_a_downtime_is_told_with_its_end_and_a_cancelled_one_ended_then(alice: User) -> None:
    site = factories.site("UW")
    downtime = factories.downtime(site)
    now, end = timezone.now(), downtime.end
    found = annotations_between(alice, since=now - DAY, until=end).shown
    (told,) = (each for each in found if each.kind == "downtime")
    assert (told.at, told.until) == (downtime.start, end)

    cancel_downtimes([downtime.pk], actor=factories.SYSTEM, now=now)
    found = annotations_between(alice, since=now - DAY, until=end).shown
    assert "downtime" not in {each.kind for each in found}


def test_a_site_has_its_own_marks_and_those_that_concern_all(alice: User) -> None:
    for name in ("UW", "FNAL"):
        factories.site(name)
        ban_site(name, actor=factories.SYSTEM, reason="test")
    save_limit(RunningLimit(job_type="User", maximum=9), actor=factories.SYSTEM)

    told = words(alice, "UW")

    assert "UW: banned: test" in told
    assert any(text.startswith("running limit new") for text in told)
    assert not any("FNAL" in text for text in told)


def test_nothing_is_told_of_accounts_tokens_and_single_users(alice: User) -> None:
    for action in ("create account", "create token", "submit DAG", "create shared limit"):
        record_action(action, target="user bob", actor=factories.SYSTEM)

    assert words(alice) == []


def test_of_many_the_latest_are_told_oldest_first_in_one_query(alice: User) -> None:
    site = factories.site("UW")
    for number in range(MOST + 5):
        ban_site("UW", actor=factories.SYSTEM, reason=f"reason {number:03}")
        unban_site("UW", actor=factories.SYSTEM, reason="again")
    factories.downtime(site)
    now = timezone.now()

    # As requests read their users.
    reader = with_groups(User.objects.all()).get(pk=alice.pk)
    with CaptureQueriesContext(connection) as asked:
        found = annotations_between(reader, since=now - DAY, until=now)

    assert len(asked) == 1
    assert found.is_cut
    assert len(found.shown) == MOST
    assert found.shown == sorted(found.shown, key=lambda each: each.at)
    assert found.shown[-1].words.startswith("UW")
    assert found.shown[-1].words.endswith("again")
