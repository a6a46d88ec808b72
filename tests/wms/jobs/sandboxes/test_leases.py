"""Outputs are kept for a time that begins with the end of the cluster and can be prolonged."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.utils import timezone

from tests.wms.jobs.clusters.samples import go_on
from tests.wms.jobs.sandboxes.samples import cluster_of, end, ended_cluster, job_of, take_next
from tests.wms.taskqueues.claiming import in_threads
from wms.core.actors import Actor
from wms.core.errors import Conflict, InvalidInput, NotPermitted, ReasonRequired
from wms.core.models import AuditEntry, User
from wms.jobs.clusters.services import remove_clusters
from wms.jobs.content import unnamed_contents
from wms.jobs.models import AttemptFile, Blob, Cluster, ClusterEvent, OutputLease
from wms.jobs.sandboxes import services, sweep
from wms.jobs.sandboxes.files import sandbox_files
from wms.jobs.sandboxes.leases import (
    OutputsRemoved,
    lease_of,
    require_cluster_kept,
    require_kept,
)
from wms.jobs.sandboxes.services import prolong_outputs, prolong_outputs_of

DAY = timedelta(days=1)


def kept_until(cluster: Cluster) -> datetime:
    lease = lease_of(cluster.pk)
    assert lease is not None
    return lease.kept_until


def days_left(cluster: Cluster) -> int:
    return round((kept_until(cluster) - timezone.now()) / DAY)


def sweep_all(now: datetime) -> None:
    while sweep.remove_next(now) is not None:
        pass


def test_the_time_begins_with_the_end_of_the_last_job(alice: User) -> None:
    cluster = cluster_of(alice, 2)
    end(take_next())
    assert lease_of(go_on(cluster).pk) is None
    end(take_next(), exit_code=1)

    assert days_left(go_on(cluster)) == 30


def test_the_time_of_a_removed_cluster_begins_when_its_jobs_were_killed(alice: User) -> None:
    cluster = cluster_of(alice, 2)
    remove_clusters([cluster.pk], actor=Actor.person(alice), reason="x")

    assert days_left(go_on(cluster)) == 30


def test_the_time_is_a_setting(alice: User, settings: Any) -> None:
    settings.PILOTAGE = settings.PILOTAGE | {"OUTPUTS_KEPT_S": 5 * 86400}

    assert days_left(ended_cluster(alice, 1)) == 5


def test_a_lease_is_begun_once(alice: User) -> None:
    cluster = ended_cluster(alice, 1)
    OutputLease.objects.update(kept_until=timezone.now() + 7 * DAY)
    go_on(cluster)

    assert days_left(cluster) == 7


def test_outputs_are_prolonged_with_a_reason_which_is_told(alice: User) -> None:
    cluster = ended_cluster(alice, 1)

    applied = prolong_outputs([cluster.pk], days=90, actor=Actor.person(alice), reason="thesis")

    assert (applied.changed, days_left(cluster)) == ([cluster.pk], 90)
    event = ClusterEvent.objects.get(cluster=cluster, event="prolong")
    assert (event.actor, event.facts["reason"]) == ("alice", "thesis")
    assert AuditEntry.objects.filter(target=f"cluster {cluster.pk}").latest("pk").reason == "thesis"


def test_outputs_are_never_kept_shorter(alice: User) -> None:
    cluster = ended_cluster(alice, 1)

    applied = prolong_outputs([cluster.pk], days=3, actor=Actor.person(alice), reason="x")

    assert (applied.changed, applied.skipped, days_left(cluster)) == ([], [cluster.pk], 30)
    with pytest.raises(Conflict):
        prolong_outputs_of(cluster.pk, days=3, actor=Actor.person(alice), reason="x")


@pytest.mark.parametrize("days", [0, -1, 366])
def test_more_than_the_most_is_refused(alice: User, days: int) -> None:
    cluster = ended_cluster(alice, 1)

    with pytest.raises(InvalidInput) as refused:
        prolong_outputs([cluster.pk], days=days, actor=Actor.person(alice), reason="x")

    assert [each.field for each in refused.value.findings] == ["days"]
    assert days_left(cluster) == 30


def test_strangers_and_the_taciturn_prolong_nothing(alice: User, charlie: User) -> None:
    cluster = ended_cluster(alice, 1)

    with pytest.raises(NotPermitted):
        prolong_outputs([cluster.pk], days=90, actor=Actor.person(charlie), reason="x")
    with pytest.raises(ReasonRequired):
        prolong_outputs([cluster.pk], days=90, actor=Actor.person(alice), reason=" ")
    assert days_left(cluster) == 30


def test_outputs_of_a_cluster_that_runs_have_no_time_to_prolong(alice: User) -> None:
    cluster = cluster_of(alice, 1)

    with pytest.raises(Conflict):
        prolong_outputs_of(cluster.pk, days=90, actor=Actor.person(alice), reason="x")


def test_after_their_time_outputs_go_in_batches_and_the_cluster_tells(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "_JOBS_AT_ONCE", 2)
    cluster, other = ended_cluster(alice, 3), cluster_of(alice, 1)
    after = kept_until(cluster) + timedelta(seconds=1)

    assert sweep.remove_next(after - DAY) is None
    assert sweep.remove_next(after) == (2, 8)
    with pytest.raises(OutputsRemoved):
        require_kept(job_of(cluster, 1))
    require_kept(job_of(cluster, 2))
    require_cluster_kept(cluster)
    assert sweep.remove_next(after) == (1, 4)
    assert sweep.remove_next(after) is None

    with pytest.raises(OutputsRemoved):
        require_cluster_kept(cluster)
    assert not AttemptFile.objects.exists()
    assert sandbox_files(job_of(cluster, 2)) == []
    event = ClusterEvent.objects.get(cluster=cluster, event="remove_outputs")
    assert event.facts == {"files": 3, "bytes": 12}
    require_kept(job_of(other, 0))


def test_what_has_begun_to_go_is_not_prolonged(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "_JOBS_AT_ONCE", 1)
    cluster = ended_cluster(alice, 2)
    OutputLease.objects.update(kept_until=timezone.now() - DAY)
    sweep.remove_next(timezone.now())

    with pytest.raises(Conflict):
        prolong_outputs_of(cluster.pk, days=90, actor=Actor.person(alice), reason="x")
    assert prolong_outputs([cluster.pk], days=9, actor=Actor.person(alice), reason="x").skipped


def test_what_is_over_but_there_can_still_be_prolonged(alice: User) -> None:
    cluster = ended_cluster(alice, 1)
    OutputLease.objects.update(kept_until=timezone.now() - DAY)

    prolong_outputs_of(cluster.pk, days=10, actor=Actor.person(alice), reason="x")

    assert sweep.remove_next(timezone.now()) is None
    assert days_left(cluster) == 10


def test_contents_go_a_day_later_but_for_those_that_others_name(alice: User) -> None:
    first, second = ended_cluster(alice, 2), ended_cluster(alice, 1)
    shared = {file.sha256 for file in sandbox_files(job_of(second, 0))}
    own = {file.sha256 for file in sandbox_files(job_of(first, 1))}
    OutputLease.objects.filter(pk=first.pk).update(kept_until=timezone.now() - DAY)

    sweep_all(timezone.now())

    marked = set(Blob.objects.exclude(unnamed_since=None).values_list("pk", flat=True))
    assert marked >= own
    assert not marked & shared
    assert unnamed_contents.delete_unnamed(now=timezone.now() + 2 * DAY)[0] == len(marked)


def test_a_cycle_removes_outputs_and_goes_on_where_the_last_one_was(alice: User) -> None:
    cluster = ended_cluster(alice, 2)
    after = kept_until(cluster) + timedelta(seconds=1)

    first = sweep.run_cycle(after, last={})
    assert (first["files"], first["bytes"], first["contents"]) == (2, 8, 0)
    second = sweep.run_cycle(after + 2 * DAY, last=first)
    assert (second["files"], second["contents"], second["freed_bytes"]) == (0, 2, 8)
    assert second["folder"] == first["folder"] + 1


@pytest.mark.django_db(transaction=True)
def test_a_sweep_and_who_prolongs_at_once_do_not_wait_in_a_circle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alice = User.objects.create_user("alice", role="user")
    cluster = ended_cluster(alice, 1)
    OutputLease.objects.update(kept_until=timezone.now() - DAY)
    has_locked, is_swept = threading.Event(), threading.Event()
    checked_end = services._checked_end

    def end_after_the_sweep(days: int, now: datetime) -> datetime:
        has_locked.set()
        is_swept.wait(1)
        return checked_end(days, now)

    def sweep_meanwhile() -> None:
        has_locked.wait(5)
        sweep.remove_next(timezone.now())
        is_swept.set()

    monkeypatch.setattr(services, "_checked_end", end_after_the_sweep)
    in_threads(
        partial(prolong_outputs, [cluster.pk], days=9, actor=Actor.person(alice), reason="x"),
        sweep_meanwhile,
    )

    assert days_left(cluster) == 9
    assert AttemptFile.objects.exists()
