"""Site pages: state, ad, ban and drain."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from types import SimpleNamespace

import pytest
from django.test import Client
from django.utils import timezone

from matching.negotiation.failure_throttle import Outcomes
from matching.round_robin_archives import ARCHIVES, archive_named
from tests import factories
from tests.portal.web.markup import text_of
from wms.core.models import User
from wms.history.models import Bin, Series
from wms.history.operations import MinuteCount, store_counts
from wms.sites.advertising import advertise
from wms.sites.downtimes.services import add_downtime
from wms.sites.models import Advertisement, Site
from wms.sites.services import ban_site
from wms.sites.throttling import adjust_throttles, note_matches

PAGE = "/sites/UW/"


@pytest.fixture
def site(db: None) -> Site:
    made = factories.site("UW")
    factories.turn()
    return made


@pytest.fixture
def sam(people: SimpleNamespace, browser_of: Callable[[User], Client]) -> Client:
    return browser_of(people.sam)


def text(client: Client, address: str = PAGE) -> str:
    return client.get(address).content.decode()


def test_a_shifter_closes_and_opens_a_site(site: Site, sam: Client) -> None:
    banned = sam.post(f"{PAGE}steer/ban/", {"reason": "eats jobs"}, follow=True).content.decode()
    opened = sam.post(f"{PAGE}steer/unban/", {"reason": "repaired"}, follow=True).content.decode()

    assert "UW is banned." in banned
    assert "banned by sam" in banned
    assert 'id="steer-unban"' in banned
    assert 'id="steer-ban"' not in banned
    assert "UW is open." in opened
    assert "repaired" in opened


def test_a_refusal_is_shown_at_its_form(site: Site, sam: Client) -> None:
    without_reason = sam.post(f"{PAGE}steer/drain/", {"reason": " "})
    conflict = sam.post(f"{PAGE}steer/unban/", {"reason": "why"})

    assert without_reason.status_code == 400
    assert 'id="fault-drain"' in without_reason.content.decode()
    assert conflict.status_code == 409
    assert "unban" in str(conflict.context["error"])
    assert sam.get(f"{PAGE}steer/ban/", follow=True).redirect_chain == [(PAGE, 302)]
    assert sam.get(f"{PAGE}steer/burn/").status_code == 404
    assert Site.objects.get().state == "open"


def _counted_earlier(counts: dict[str, int], moment: datetime) -> None:
    """Counts in the bins of an hour from which the minutes are gone."""
    ring = archive_named("1h")
    for name, number in counts.items():
        Bin.objects.create(
            series=Series.objects.get(name=name), archive=ARCHIVES.index(ring),
            slot=ring.slot_of(moment), start=ring.start_of(moment), count=1, total=number,
            minimum=0, maximum=number, last=number,
        )  # fmt: skip


def test_a_site_tells_how_its_attempts_ended_and_leads_to_its_history_and_failures(
    site: Site, alice: Client
) -> None:
    now = timezone.now()
    minute = (now - timedelta(hours=2)).replace(second=0, microsecond=0)
    counts = {"throughput.done@UW": (9, 20), "failures@UW": (1, 10)}
    store_counts([MinuteCount.number(name, minute, new) for name, (new, _) in counts.items()])
    _counted_earlier({name: old for name, (_, old) in counts.items()}, now - timedelta(hours=50))

    page = alice.get(PAGE)
    ratio = alice.get("/api/v1/history/panes/success.json?range=1d&site=UW").json()["lines"][0]

    day, week = (line[2] for line in page.context["success"])
    assert (day.percent, day.ended) == (90.0, 10)
    assert (week.percent, week.ended) == (72.5, 40)
    assert [each for each in ratio["share"] if each is not None] == [90]
    for part in ("?site=UW&amp;within=24h", "?range=1w&amp;site=UW", 'id="panel-success"'):
        assert part in page.content.decode()


def test_who_may_not_steer_sees_no_forms(site: Site, alice: Client) -> None:
    assert 'id="steer-ban"' not in text(alice)
    assert alice.post(f"{PAGE}steer/ban/", {"reason": "why"}).status_code == 403


@pytest.mark.slow
def test_the_page_tells_why_a_site_takes_no_dag(site: Site, alice: Client) -> None:
    assert 'id="takes-none"' not in text(alice)

    adjust_throttles({site.pk: Outcomes(40, 2)}, timezone.now() + timedelta(seconds=600))
    assert "New matches now" in text(alice)
    note_matches({site.pk: 100})

    assert "throttled until" in text(alice)
    assert "throttled" in text(alice, "/sites/")
    assert "throttled" in text(alice, "/")


@pytest.mark.slow
def test_an_expired_advertisement_shows_on_all_boards(
    site: Site, alice: Client, sam: Client
) -> None:
    factories.advertisement(site, sequence=7)
    assert "system:test" in text(alice)

    Advertisement.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    assert "is silent" in text(alice)
    assert "is silent" in text(sam, "/")
    assert "expired" in text(alice, "/sites/")


def test_planned_downtimes_are_listed(site: Site, alice: Client) -> None:
    assert "None is planned." in text(alice)
    now = timezone.now()

    add_downtime(
        "UW",
        start=now,
        end=now + timedelta(hours=1),
        reason="new disks <b>",
        actor=factories.SYSTEM,
        now=now,
    )

    page = text(alice)
    assert "new disks &lt;b&gt;" in page
    assert "in downtime until " in page


def test_a_closed_site_is_no_alarm(site: Site, alice: Client, sam: Client) -> None:
    ban_site("UW", actor=factories.SYSTEM, reason="moves house")

    assert 'id="needy-UW"' not in text(sam, "/")
    assert "banned" in text(alice, "/sites/")


def test_a_site_that_counts_jobs_says_so(site: Site, alice: Client) -> None:
    Site.objects.update(matches_unit="jobs", max_matches=500, group_size=20)

    assert "in groups of 20" in text(alice)
    assert "of 500 jobs" in text(alice, "/sites/")
    assert "of 500 jobs" in text(alice, "/")


def test_the_ad_tells_where_each_attribute_comes_from(site: Site, alice: Client) -> None:
    advertise(
        'Name = "UW"\nDisk = 500\nRequirements = true', actor=factories.SYSTEM, now=timezone.now()
    )

    page = " ".join(text(alice).split())

    assert re.search("<code>500</code></td><td [^>]*>advertised</td>", page)
    assert 'class="mono first">Requirements</td>' in page
    assert 'badge-cell">both</td>' in page
    assert 'badge-cell">computed</td>' in page


def test_an_ad_that_cannot_be_made_tells_why(site: Site, alice: Client) -> None:
    Site.objects.update(environment="no assignment")

    assert "cannot be made" in text(alice)


@pytest.mark.slow
def test_the_list_is_cut_down_by_state_and_name(site: Site, alice: Client) -> None:
    factories.site("Elsewhere")
    ban_site("Elsewhere", actor=factories.SYSTEM, reason="moves house")

    banned = alice.get("/sites/", {"standing": "banned"}).context["listing"].lines
    decided = alice.get("/sites/", {"state": "banned"}).context["listing"].lines
    named = alice.get("/sites/", {"name": "uw"}).context["listing"].lines

    assert [line.site.name for line in banned] == ["Elsewhere"]
    assert [line.site.name for line in decided] == ["Elsewhere"]
    assert [line.site.name for line in named] == ["UW"]
    assert "moves house" in text(alice, "/sites/")
    assert 'id="sites-box"' not in text(alice, "/sites/?standing=draining")
    assert "burning" in text_of(text(alice, "/sites/?standing=burning"), "fault-standing")


def test_filters_call_how_a_site_stands_as_its_badge_does(site: Site, alice: Client) -> None:
    page = alice.get("/sites/?standing=enabled,late").content.decode()

    assert 'value="enabled" checked>open</label>' in page
    assert 'value="late" checked>no ad</label>' in page
    assert "filter State open" in page


@pytest.mark.slow
def test_of_many_sites_the_board_shows_first_those_that_take_no_dag(alice: Client) -> None:
    for number in range(15):
        factories.site(f"Site{number:02}")
    factories.turn()
    ban_site("Site14", actor=factories.SYSTEM, reason="moves house")

    board = alice.get("/").context["board"]

    assert [line.site.name for line in board.first_sites[:2]] == ["Site14", "Site00"]
    assert len(board.first_sites) == 12
    assert "All 15 sites" in text(alice, "/")


def test_a_long_list_of_sites_is_paged(alice: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portal.web.lists.views._SITES_SHOWN", 5)
    for number in range(8):
        factories.site(f"Site{number:03}")

    first = alice.get("/sites/", {"name": "site"}).context["listing"]
    second = alice.get("/sites/" + first.page.older).context["listing"]

    assert [len(part.lines) for part in (first, second)] == [5, 3]
    assert second.lines[0].site.name == "Site005"
    assert (first.page.newer, second.page.newer) == ("", "?name=site")
    assert second.page.older == ""
    assert len(alice.get("/sites/", {"from": "Nowhere"}).context["listing"].lines) == 5
