"""Actions on clusters as they are declared: a row and the database agree on what is in the way."""

from __future__ import annotations

import pytest

from tests.wms.jobs.clusters.samples import PLAIN, SYSTEM, cycle, submit
from wms.actions.arguments import Order
from wms.actions.clusters import CLUSTERS
from wms.core.actors import Actor
from wms.core.models import User
from wms.jobs import operations
from wms.jobs.clusters import services
from wms.jobs.models import Cluster, Job


@pytest.fixture
def clusters(alice: User) -> dict[str, Cluster]:
    """A cluster in each state, and one of whose jobs some were killed."""
    actor = Actor.person(alice)
    made = {
        name: submit(alice, f"{PLAIN}queue 2\n").cluster
        for name in ("active", "held", "removed", "completed")
    }
    services.hold_clusters([made["held"].pk], actor=actor, reason="x")
    services.remove_clusters([made["removed"].pk], actor=actor, reason="x")
    jobs = Job.objects.filter(cluster_id=made["completed"].pk)
    operations.kill_jobs([job.pk for job in jobs], actor=SYSTEM, reason="x")
    for cluster in made.values():
        cycle(cluster)
    assert {name: cluster.state for name, cluster in made.items()} == {n: n for n in made}
    return made


@pytest.mark.parametrize("action", CLUSTERS.actions.values(), ids=lambda action: action.name)
def test_a_row_and_the_database_agree_on_what_is_in_the_way(
    clusters: dict[str, Cluster], action
) -> None:
    told = dict(Cluster.objects.annotate(why=action.obstacle()).values_list("pk", "why"))

    assert {row.pk: action.is_possible(row) for row in Cluster.objects.all()} == {
        pk: not why for pk, why in told.items()
    }


def test_one_is_steered_and_many_are(alice: User, clusters: dict[str, Cluster]) -> None:
    order = Order(Actor.person(alice), "x")
    ids = [cluster.pk for cluster in clusters.values()]

    assert CLUSTERS.actions["hold"].act(ids[0], order).changed == [ids[0]]
    assert dict(CLUSTERS.actions["remove"].act_on_many(ids, order)) == {ids[0]: "", ids[1]: ""}
    with_killed = Order(Actor.person(alice), "x", {"with_killed": True})
    again = CLUSTERS.actions["rerun"].act(clusters["completed"].pk, with_killed)
    assert again.previous == clusters["completed"]


def test_only_owners_and_shifters_are_offered_anything(
    alice: User, charlie: User, sam: User
) -> None:
    cluster = submit(alice, f"{PLAIN}queue\n").cluster

    assert not CLUSTERS.possible_on_page(charlie, cluster)
    assert CLUSTERS.permitted(charlie, {alice.pk, charlie.pk}) == {charlie.pk}
    names = [action.name for action in CLUSTERS.possible_on_page(sam, cluster)]
    assert names == ["hold", "prioritise", "change", "limits", "label", "remove"]
