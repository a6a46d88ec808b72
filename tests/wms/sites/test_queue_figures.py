"""Figures of queues and pilots in the ads of sites: what they say, and what is left out."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import classad2
import pytest

from matching.ads.classads import MAX_AD_BYTES, build_ad, evaluate, parse_expression
from tests.wms.dags.driving import NOW, match
from tests.wms.dags.test_needs import sub
from wms.core.actors import Actor
from wms.core.models import User
from wms.dags.models import Dag
from wms.dags.negotiation.cycle import run_cycle
from wms.explain.ad_changes import WhatIfChanges
from wms.explain.answers import answer_for_dag
from wms.placement.storages.services import StorageSpec, create_storage
from wms.sites import queue_figures
from wms.sites.ads import current_ad, publish_ads, published_ad
from wms.sites.advertising import advertise
from wms.sites.downtimes.models import Downtime
from wms.sites.models import Queue, Site, SiteAd
from wms.sites.queue_figures import FIGURES, QueueFigures

pytestmark = pytest.mark.django_db
LARGE = {
    "cores": 8, "memory_mb": 16384, "gpus": 2, "max_pilots": 4, "wall_time_s": 3660,
    "platform": "linux-x86_64", "tags": ["ssd", "cvmfs"], "required_tags": ["ssd"],
}  # fmt: skip


def published(site: Site, **figures: QueueFigures) -> classad2.ClassAd:
    """The site's ad, with figures by the names of its queues."""
    by_id = {queue.pk: figures[queue.name] for queue in site.queues.all() if queue.name in figures}
    publish_ads({}, now=NOW, figures=by_id)
    return published_ad(SiteAd.objects.get(site=site))


def value(ad: classad2.ClassAd, expression: str) -> Any:
    """Value of an expression of a DAG that looks at the site's ad."""
    return evaluate(parse_expression(expression), build_ad({}), ad)


@pytest.fixture
def site(make_site) -> Site:
    made: Site = make_site("site-a", queue=LARGE)
    Queue.objects.create(
        site=made, name="small", element="host", cores=2, memory_mb=2000, max_pilots=10
    )
    Queue.objects.create(
        site=made, name="off", element="host", cores=64, memory_mb=9**6, is_enabled=False
    )
    return made


def test_the_ad_tells_what_the_queues_offer_in_all_and_at_most(site: Site) -> None:
    busy = QueueFigures(running=3, queued=2)
    ad = published(site, main=busy, small=QueueFigures(running=1))

    told = {name: value(ad, name) for name in FIGURES if name in ad}
    assert told.pop("Queues")
    assert told == {
        "TotalSlots": 14, "FreeSlots": 0 + 9, "PilotsRunning": 4, "PilotsQueued": 2,
        "MaxCpus": 8, "TotalCpus": 4 * 8 + 10 * 2, "PilotCpus": 3 * 8 + 2,
        "MaxMemory": 16384, "TotalMemory": 4 * 16384 + 20_000, "PilotMemory": 3 * 16384 + 2000,
        "MaxGpus": 2, "TotalGpus": 8, "PilotGpus": 6,
        "MaxCpuTime": 86_340, "Platforms": ["linux-x86_64"], "Tags": ["cvmfs", "ssd"],
        "Software": [], "QueuesLeftOut": 0,
    }  # fmt: skip


def test_each_queue_is_an_ad_of_its_own(site: Site) -> None:
    figures = QueueFigures(running=1, queued=1, software={"/cvmfs/x"}, failed=1, done=3)
    figures.add_starts(2, timedelta(seconds=246))

    ad = published(site, main=figures)

    main, small = value(ad, "TARGET.Queues")
    assert {name: evaluate(main.lookup(name), main) for name in main} == {
        "Name": "main", "Cpus": 8, "Memory": 16384, "Gpus": 2, "CpuTime": 3600,
        "Platform": "linux-x86_64", "Setup": "", "Tags": ["cvmfs", "ssd"], "RequiredTags": ["ssd"],
        "Software": ["/cvmfs/x"], "TotalSlots": 4, "FreeSlots": 2, "PilotsRunning": 1,
        "PilotsQueued": 1, "MeanStartup": 120, "FailureRate": 0.25,
    }  # fmt: skip
    assert "MeanStartup" not in small
    assert value(ad, 'countMatches(Cpus >= 4 && member("ssd", Tags), TARGET.Queues)') == 1
    assert (value(ad, "MeanStartup"), value(ad, "FailureRate")) == (120, 0.25)


def test_the_ad_tells_the_next_downtime_in_seconds_since_1970(site: Site) -> None:
    assert "NextDowntime" not in published(site)
    for hours in (50, 3):
        start = NOW + timedelta(hours=hours)
        end = start + timedelta(hours=1)
        Downtime.objects.create(site=site, start=start, end=end, reason="power", author="olga")

    ad = published(site)

    assert value(ad, "NextDowntime") == NOW.timestamp() + 3 * 3600
    assert value(ad, "NextDowntimeEnd") == NOW.timestamp() + 4 * 3600


def test_the_ad_names_the_storages_near_the_site(site: Site) -> None:
    for name in ("tape", "disk"):
        create_storage(StorageSpec(name, [f"s3://{name}/"], [site.name]), actor=Actor.system("t"))

    run_cycle(NOW)

    ad = published_ad(SiteAd.objects.get(site=site))
    assert value(ad, "TARGET.StorageNear") == "disk"
    assert value(ad, 'member("tape", TARGET.StoragesNear)') is True


def test_what_is_configured_or_advertised_under_such_a_name_wins(make_site, olga: User) -> None:
    site = make_site("site-a", attributes="maxmemory = 7\nTotalSlots = 99", queue=LARGE)
    advertise('Name = "site-a"\nFreeSlots = 5', actor=Actor.person(olga), now=NOW)

    ad = published(site)

    assert (value(ad, "MaxMemory"), value(ad, "TotalSlots"), value(ad, "FreeSlots")) == (7, 99, 5)
    shown = current_ad(Site.objects.select_related("ad", "advertisement").get(pk=site.pk))
    sources = {name.lower(): each.source for name, each in shown.items()}
    assert sources["maxmemory"] == sources["totalslots"] == "configured"
    assert sources["freeslots"] == "advertised"
    assert sources["maxcpus"] == "computed"


def test_a_site_with_very_many_queues_lists_the_first_and_counts_the_rest(
    make_site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = make_site("site-a", queue=LARGE)
    Queue.objects.bulk_create(
        Queue(site=site, name=f"q-{n:03}", element="host", memory_mb=n + 1) for n in range(9)
    )
    monkeypatch.setattr(queue_figures, "MOST_QUEUES", 4)

    ad = published(site)

    assert (value(ad, "size(TARGET.Queues)"), value(ad, "QueuesLeftOut")) == (4, 6)
    # What is summed and largest counts all of them.
    assert value(ad, "MaxMemory") == 16384


@pytest.mark.parametrize("spare", [10, 1500, 3000])
def test_figures_never_make_an_ad_too_large(make_site, spare: int) -> None:
    long = "x" * (MAX_AD_BYTES - 1000 - spare)
    site = make_site("site-a", queue=LARGE, attributes=f'Long = "{long}"')
    Queue.objects.bulk_create(Queue(site=site, name=f"q-{n:03}", element="host") for n in range(99))

    ad = published(site)

    assert len(SiteAd.objects.get().text.encode()) <= MAX_AD_BYTES
    assert value(ad, "Long") == long
    if "Queues" in ad:
        assert value(ad, "size(TARGET.Queues) + QueuesLeftOut") == 100


def test_the_figures_can_be_used_by_dags_and_sites_alike(submit, make_site) -> None:
    make_site("site-a", queue={"memory_mb": 2000})
    make_site(
        "site-b", queue={"memory_mb": 4000}, requirements="CurMatches < MaxMatches && FreeSlots > 0"
    )
    wish = (
        "Requirements = countMatches(Memory > 3000, TARGET.Queues) > 0 && MaxMemory == 4000"
        " && (NextDowntime is undefined || NextDowntime - time() > 3600)\nRank = TotalCpus\n"
    )
    dag = match(submit("JOB A step.sub", description_text=wish, description_name="d.sub"))

    assert dag.site.name == "site-b"
    assert dag.match_attributes["MaxMemory"] == 4000
    # Lists are for the match, not for $$().
    assert not {"Queues", "Tags"} & dag.match_attributes.keys()


def test_names_of_queues_attributes_are_known_to_explanations(
    submit, make_site, alice: User
) -> None:
    make_site("site-a")
    wish = "Requirements = countMatches(Cpus >= 99 && CpuTimes > 1, TARGET.Queues) > 0\n"
    dag: Dag = submit(
        "JOB A step.sub", files=sub(), description_text=wish, description_name="d.sub"
    )
    publish_ads({}, now=NOW)

    changes = WhatIfChanges(sites={"site-a": {"Speed": "1"}})
    answer = answer_for_dag(alice, dag.pk, now=NOW, changes=changes)

    assert [each.name for each in answer.explanation.undefined] == ["cputimes"]
    assert answer.after is not None
