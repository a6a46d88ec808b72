"""Reasons why jobs are not run: queues, limits, and words that nothing offers today."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from matching.negotiation.explanation import MatchVerdict
from matching.task_queues.needs import Needs
from tests import factories
from wms.core.actors import Actor
from wms.core.models import User
from wms.explain.needs import NeedsExplanation, explain_needs
from wms.jobs.limits import save_limit
from wms.jobs.models import RunningLimit
from wms.pilots.models import Pilot
from wms.sites.models import Queue, Site

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
SYSTEM = Actor.system("test")


def explain(**needs: Any) -> NeedsExplanation:
    return explain_needs(Needs.of("alice", **needs), now=NOW)


def limit(site: Site | None = None, **values: Any) -> None:
    save_limit(RunningLimit(site=site, **values), actor=SYSTEM)


@pytest.fixture
def site_a(make_site) -> Site:
    return make_site("site-a", queue={"tags": ["cvmfs"], "platform": "linux-x86_64"})


def test_a_queue_whose_pilots_may_take_the_jobs_is_named_with_its_pilots(site_a: Site) -> None:
    factories.pilot(Queue.objects.get())
    factories.queued_pilot(Queue.objects.get())
    Pilot.objects.filter(registered_at=None).update(state="queued")

    found = explain(tags=["cvmfs"])

    assert found.verdict is MatchVerdict.WAITING
    assert "1 waits to start" in found.summary
    assert found.unknown == ()


@pytest.mark.parametrize(
    ("needs", "reason"),
    [
        ({"submit_pools": ["pool"]}, "is for the submit pools pool"),
        ({"middlewares": ["slurm"]}, "is for pilots sent by slurm"),
        (
            {"requirements": 'OpSys == "WINDOWS"'},
            'has requirements that are false here: OpSys == "WINDOWS"',
        ),
        ({"queues": ["site-a/other"]}, "may run in the queues site-a/other only"),
        ({"setup": "Test"}, "belongs to the setup Test, here is (none)"),
    ],
)
def test_a_queue_to_which_no_pilot_is_sent_tells_why(
    site_a: Site, needs: dict[str, Any], reason: str
) -> None:
    found = explain(**needs)

    assert found.verdict is MatchVerdict.NEVER
    assert [fit.refusal for fit in found.queues] == [reason]
    assert reason in found.summary


def test_requirements_on_the_node_may_be_met_by_a_pilot_to_come(site_a: Site) -> None:
    assert explain(requirements='Machine == "node7"').verdict is MatchVerdict.WAITING


def test_a_private_queue_refuses_everybody_but_its_owner(site_a: Site, charlie: User) -> None:
    Queue.objects.update(owner=charlie)

    assert ["charlie" in fit.refusal for fit in explain().queues] == [True]


def test_a_limit_that_is_reached_closes_the_site_for_now(site_a: Site, make_site) -> None:
    limit(site_a, job_type="User", maximum=0)
    limit(make_site("site-b"), job_type="User", maximum=9)

    found = explain(job_type="User")

    assert [(fit.site, fit.closed) for fit in found.queues] == [
        ("site-b", ""),
        ("site-a", found.queues[1].closed),
    ]
    assert "0 of 0 User" in found.queues[1].closed
    assert found.verdict is MatchVerdict.WAITING
    assert {fit.closed for fit in explain(job_type="Merge").queues} == {""}


def test_a_limit_over_all_sites_closes_all_of_them_and_running_pilots_do_not_help(
    site_a: Site,
) -> None:
    factories.pilot(Queue.objects.get())
    limit(maximum=0)

    found = explain()

    assert found.verdict is MatchVerdict.NOT_NOW
    assert "0 of 0 jobs" in found.summary


def test_where_a_limit_is_why_queues_that_are_switched_off_come_last(
    site_a: Site, make_site
) -> None:
    Queue.objects.update(is_enabled=False)
    make_site("site-b", is_enabled=False)
    make_site("site-c")
    make_site("site-d")
    Site.objects.filter(name="site-d").update(state="banned", state_reason="its disk burns")
    limit(job_type="Never", maximum=0)

    found = explain(job_type="Never")

    assert [fit.site for fit in found.queues] == ["site-c", "site-d", "site-a", "site-b"]
    assert found.summary.startswith("site-c/main")


def test_reasons_name_the_queues_that_have_them(site_a: Site, make_site) -> None:
    make_site("site-b", queue={"cores": 1})

    found = explain(cores=4, setup="Test")
    assert "4 cores" in found.summary
    assert "site-a" not in found.summary

    Queue.objects.filter(site=site_a).update(cores=8)
    first, second = explain(cores=4, setup="Test").summary.split("; ")
    assert "site-a/main:" in first
    assert "setup Test" in first
    assert "site-b/main:" in second
    assert "4 cores" in second


def test_a_running_pilot_of_a_banned_site_may_still_take_the_job(site_a: Site) -> None:
    factories.pilot(Queue.objects.get())
    Site.objects.update(state="banned", state_reason="its disk burns")

    found = explain()

    assert found.verdict is MatchVerdict.WAITING
    assert "1 that runs" in found.summary


def test_words_that_mean_nothing_today_are_told_in_sentences(site_a: Site) -> None:
    found = explain(sites=["T2_X"], tags=["cvmfs", "gpu"])

    assert found.verdict is MatchVerdict.NEVER
    of_site, of_tag = found.unknown
    assert "T2_X" in of_site
    assert "tag gpu" in of_tag


def test_attributes_that_no_pilot_has_are_told_in_sentences(site_a: Site) -> None:
    found = explain(requirements="TARGET.Cpu >= 1 && Squid")

    assert found.verdict is MatchVerdict.NEVER
    misspelt, unknown = found.unknown
    assert "Cpus?" in misspelt
    assert "Squid" in unknown


def test_words_of_what_is_switched_off_are_not_offered(site_a: Site) -> None:
    Queue.objects.update(is_enabled=False)
    (unknown,) = explain(tags=["cvmfs"]).unknown
    assert "tag cvmfs" in unknown

    Site.objects.update(is_enabled=False)
    assert any("site-a" in each for each in explain(sites=["site-a"]).unknown)
    assert explain(banned_sites=["site-a"]).unknown == ()


def test_the_queries_do_not_grow_with_the_queues(
    site_a: Site, make_site, django_assert_max_num_queries
) -> None:
    limit(site_a, maximum=3)
    for name in ("site-b", "site-c", "site-d"):
        limit(make_site(name), maximum=3)

    with django_assert_max_num_queries(10):
        explain(sites=["site-a"], tags=["x"])
