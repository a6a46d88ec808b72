"""Comparison of two runs of a DAG, and the runs that are proposed for it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from tests import factories
from wms.dags.models import Dag, Node, SubmitDescription
from wms.dags.reading.comparing import CHOICES, compare, proposed_runs
from wms.jobs.models import Attempt, Job, JobDescription

LONG_AGO = timezone.now() - timedelta(days=1)


def ran(
    dag: Dag, name: str, *, site: str = "UW", wall_s: float = 100, queue_s: int = 5, **facts: Any
) -> None:
    """A node whose job ran once."""
    node = Node.objects.create(dag=dag, name=name, ordinal=dag.nodes.count(), **facts)
    description, _ = JobDescription.objects.get_or_create(key=b"k", defaults={"content": {}})
    job = Job.objects.create(
        name=name, owner=dag.owner, workspace=dag.workspace, description=description,
        state="done", site_name=site, attempt_number=1, created_at=LONG_AGO,
    )  # fmt: skip
    Attempt.objects.create(
        job=job, number=1, pilot_id=1, site_name=site, outcome="done", exit_code=0,
        started_at=LONG_AGO + timedelta(seconds=queue_s), wall_s=wall_s,
        ended_at=LONG_AGO + timedelta(seconds=queue_s + wall_s),
    )  # fmt: skip
    Node.objects.filter(pk=node.pk).update(job=job)


@pytest.fixture
def runs(db: None) -> tuple[Dag, Dag]:
    """Two runs of one DAG without nodes, the later first."""
    alice = factories.person("alice")
    there, here = (factories.dag(alice) for _ in range(2))
    Node.objects.all().delete()
    return here, there


def test_lines_tell_what_differs_with_the_largest_slow_downs_first(runs: tuple[Dag, Dag]) -> None:
    here, there = runs
    for dag in runs:
        ran(dag, "same", state="done")
    ran(here, "new", state="done")
    ran(there, "gone", state="done")
    ran(here, "slow", state="done", wall_s=160, queue_s=60)
    ran(there, "slow", state="done", wall_s=120)
    ran(here, "slowest", state="done", wall_s=900)
    ran(there, "slowest", state="done", wall_s=120, site="FNAL")
    ran(here, "failed", state="failed", retry_number=2, state_cause="payload", wall_s=20)
    ran(there, "failed", state="done")

    found = compare(here, there)

    assert [(line.name, list(line.differences)) for line in found.lines] == [
        ("failed", ["state", "outcome", "tries", "faster"]), ("gone", ["only_there"]),
        ("new", ["only_here"]), ("slowest", ["site", "slower"]),
        ("slow", ["slower", "longer_queue"]), ("same", []),
    ]  # fmt: skip
    assert (found.total, found.counts["any"], found.counts["equal"]) == (6, 5, 1)
    assert (found.counts["slower"], found.counts["site"]) == (2, 1)
    [failed, _, _, slowest, *_] = found.lines
    assert slowest.slower_s == 780
    assert failed.here is not None
    assert (failed.here.tries, failed.here.cause, failed.here.queue_s) == (3, "payload", 5)
    assert list(found.here.sites) == [("UW", 5)]
    assert list(found.there.sites) == [("UW", 4), ("FNAL", 1)]
    assert (found.here.wall_s, found.there.wall_s) == (1280, 540)
    for choice in CHOICES:
        chosen = compare(here, there, chosen=choice)
        assert len(chosen.lines) == chosen.total == found.counts[choice], choice
    page = compare(here, there, chosen="any", offset=3, limit=1)
    assert [line.name for line in page.lines] == ["slowest"]


def test_submit_descriptions_that_differ_are_told(runs: tuple[Dag, Dag]) -> None:
    here, there = runs
    SubmitDescription.objects.filter(dag__in=runs).delete()
    for dag, name, content in (
        (here, "a.sub", {"memory": 1}), (there, "a.sub", {"memory": 2}),
        (here, "b.sub", {}), (there, "b.sub", {}), (there, "c.sub", {}),
    ):  # fmt: skip
        SubmitDescription.objects.create(dag=dag, name=name, content=content)

    changed = compare(here, there).descriptions

    assert [(each.name, each.is_here, each.is_there) for each in changed] == [
        ("a.sub", True, True), ("c.sub", False, True),
    ]  # fmt: skip


def test_runs_are_proposed_once_by_what_they_share(runs: tuple[Dag, Dag]) -> None:
    here, there = runs
    bob = factories.person("bob")
    campaign, of_bob = factories.dag(here.owner, name="other.dag"), factories.dag(bob)
    Dag.objects.filter(pk__in=[here.pk, campaign.pk, there.pk]).update(labels=["campaign=mc27"])
    rescue = factories.dag(here.owner, name="rescue.dag")
    Dag.objects.filter(pk=rescue.pk).update(workspace=here.workspace)
    here.refresh_from_db()

    proposed = proposed_runs(here.owner, here)

    assert [(each.why, [dag.pk for dag in each.dags]) for each in proposed] == [
        ("Rescue chain", [rescue.pk]), ("Same name and owner", [there.pk]),
        ("Campaign mc27", [campaign.pk]),
    ]  # fmt: skip
    assert not any(of_bob in each.dags for each in proposed)
