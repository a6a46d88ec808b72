"""Pages of negotiation cycles and the charts of their history."""

from __future__ import annotations

import re
from datetime import timedelta
from types import SimpleNamespace

from django.test import Client
from django.urls import reverse
from django.utils import timezone

from portal.web.lists.paging import PAGE_SIZE
from portal.web.matching.cycle_bars import cycle_lines
from tests import factories
from tests.portal.web.markup import text_of
from wms.dags.models import NegotiationCycle
from wms.history.operations import store_samples

ADDRESS = reverse("web:negotiation")


def _cycle(**facts: object) -> NegotiationCycle:
    usual = {
        "started_at": timezone.now(),
        "publish_s": 0.1,
        "read_s": 0.2,
        "decide_s": 0.4,
        "carry_out_s": 0.1,
        "ads": 2,
        "requests": 5,
        "autoclusters": 1,
        "matches": 2,
        "bound": 2,
        "reasons": {"no site fits": 3},
    }
    return NegotiationCycle.objects.create(**usual | facts)


def test_the_last_negotiations_are_listed_with_what_was_left_over(
    alice: Client, people: SimpleNamespace
) -> None:
    _cycle(matches=2, bound=1)

    page = " ".join(alice.get(ADDRESS).content.decode().split())

    assert " 3 " in text_of(page, "cycles-box")
    assert re.findall(r"<title>\w[\w ]* ([\d.]+) s</title>", page) == ["0.1", "0.2", "0.4", "0.1"]
    assert "1 bound" in text_of(page, "cycles-box")
    assert 'data-chart="/history/negotiation.json?range=1d&amp;fit"' in page


def test_those_without_any_request_can_be_left_out(alice: Client, people: SimpleNamespace) -> None:
    busy, _ = _cycle(), _cycle(requests=0, reasons={})

    assert len(alice.get(ADDRESS).context["lines"]) == 2
    lines = alice.get(ADDRESS, {"busy": "true"}).context["lines"]
    assert [line.cycle for line in lines] == [busy]


def test_many_are_paged(alice: Client, people: SimpleNamespace) -> None:
    NegotiationCycle.objects.bulk_create(
        NegotiationCycle(
            started_at=timezone.now() - timedelta(seconds=5 * number), publish_s=0, read_s=0,
            decide_s=0, carry_out_s=0, ads=0, requests=0, autoclusters=0, matches=0, bound=0,
        )
        for number in range(PAGE_SIZE + 3)
    )  # fmt: skip

    page = alice.get(ADDRESS).context["page"]

    assert len(page.rows) == PAGE_SIZE
    assert len(alice.get(ADDRESS + page.older).context["lines"]) == 3


def test_the_bars_of_all_lines_have_one_scale() -> None:
    short = NegotiationCycle(publish_s=0.1, read_s=0.0, decide_s=0.1, carry_out_s=0.0)
    long = NegotiationCycle(publish_s=0.2, read_s=0.2, decide_s=0.2, carry_out_s=0.2)

    lines = cycle_lines([short, long])

    assert [phase.width for phase in lines[0].phases] == [12.5, 0.0, 12.5, 0.0]
    assert [phase.x for phase in lines[1].phases] == [0.0, 25.0, 50.0, 75.0]
    assert cycle_lines([NegotiationCycle(publish_s=0, read_s=0, decide_s=0, carry_out_s=0)])


def test_before_the_first_negotiation_the_page_tells_where_to_look(alice: Client) -> None:
    assert 'id="cycles-box"' not in alice.get(ADDRESS).content.decode()


def test_the_history_shows_negotiations_and_how_long_they_take(alice: Client) -> None:
    now = timezone.now()
    store_samples({"negotiation.requests": 7, "negotiation.seconds": 0.25}, now=now)

    counts = alice.get(reverse("web:history-data", kwargs={"panel": "negotiation"})).json()
    times = alice.get(reverse("web:history-data", kwargs={"panel": "duration"})).json()

    lines = [trace for trace in counts["figure"]["data"] if "name" in trace]
    assert [line["name"] for line in lines] == ["requests"]
    assert any(0.25 in trace["y"] for trace in times["figure"]["data"])


def test_the_negotiators_line_on_the_dashboard_leads_to_the_page(
    alice: Client, people: SimpleNamespace
) -> None:
    factories.turn()

    assert f'id="loop-negotiator" href="{ADDRESS}"' in alice.get("/").content.decode()


def test_one_negotiation_tells_whom_it_matched_and_why_others_were_left_over(
    alice: Client, people: SimpleNamespace
) -> None:
    dag = factories.running_dag(people.alice, name="lucky.dag")
    late = factories.dag(people.alice, name="late.dag", node_count=1)
    type(dag.site).objects.update(max_matches=1)
    factories.turn()
    first, last = NegotiationCycle.objects.get(bound=1), NegotiationCycle.objects.latest("pk")

    matched = " ".join(alice.get(reverse("web:cycle", args=[first.pk])).content.decode().split())
    left = " ".join(alice.get(reverse("web:cycle", args=[last.pk])).content.decode().split())

    assert f'<a href="{reverse("web:dag", args=[dag.pk])}">lucky</a>' in matched
    assert "still there" in matched
    assert 'id="left-over"' not in matched
    assert "MaxMatches" in left
    assert f"late {late.pk}</a>" in left
    assert "why now?" in left
    assert f'id="cycle-{last.pk}"' in alice.get(ADDRESS).content.decode()


def test_a_negotiation_that_is_not_kept_is_not_found(alice: Client) -> None:
    assert alice.get(reverse("web:cycle", args=[987654])).status_code == 404


def test_all_pages_about_matches_lead_to_each_other(alice: Client, people: SimpleNamespace) -> None:
    cycle = _cycle()
    pages = [reverse(name) for name in ("web:negotiation", "web:explain", "web:what-if")]

    for address in [*pages, reverse("web:cycle", args=[cycle.pk])]:
        page = alice.get(address).content.decode()
        assert all(f'<a href="{other}"' in page for other in pages)
        assert page.count("Matches</a></li>") == 1
