"""How many bytes of outputs are kept."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Q
from django.utils import timezone

from tests.wms.jobs.sandboxes.samples import cluster_of, ended_cluster, send, take_next
from wms.core.models import User
from wms.jobs.models import Cluster, OutputBytes, OutputLease
from wms.jobs.sandboxes import sweep
from wms.jobs.sandboxes.sizes import fold_bytes, kept_bytes


def kept_by(user: User) -> int:
    return kept_bytes(Q(cluster__owner=user))


def kept_of(cluster: Cluster) -> int:
    return kept_bytes(Q(cluster=cluster))


def test_bytes_are_those_of_all_files_of_an_owner(alice: User, charlie: User) -> None:
    first, second = ended_cluster(alice, 3), ended_cluster(alice, 1)
    ended_cluster(charlie, 2)

    assert (kept_of(first), kept_of(second), kept_by(alice), kept_by(charlie)) == (12, 4, 16, 8)


def test_a_file_that_is_sent_again_counts_once(alice: User) -> None:
    cluster_of(alice, 1)
    attempt = take_next()
    for content in (b"one", b"three", b"three"):
        send(attempt, {"out.root": content}, log=b"x")

    assert kept_by(alice) == 6


def test_the_sum_stays_when_entries_are_added_up(alice: User) -> None:
    clusters = [ended_cluster(alice, 3) for _ in range(2)]

    assert fold_bytes() == 6
    assert fold_bytes() == 0
    assert [kept_of(each) for each in clusters] == [12, 12]
    assert OutputBytes.objects.count() == 2


def test_what_is_removed_counts_no_more(alice: User) -> None:
    first, second = ended_cluster(alice, 2), ended_cluster(alice, 1)
    fold_bytes()
    OutputLease.objects.filter(pk=first.pk).update(kept_until=timezone.now() - timedelta(days=1))

    sweep.run_cycle(timezone.now(), last={})

    assert (kept_of(first), kept_of(second), kept_by(alice)) == (0, 4, 4)
