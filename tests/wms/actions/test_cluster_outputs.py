"""The action by which people keep the outputs of clusters longer."""

from __future__ import annotations

from tests.wms.jobs.sandboxes.samples import cluster_of, ended_cluster
from wms.actions.arguments import Order
from wms.actions.cluster_outputs import PROLONG_OUTPUTS
from wms.core.actors import Actor
from wms.core.models import User
from wms.jobs.sandboxes.leases import lease_of


def test_one_and_many_clusters_are_prolonged(alice: User) -> None:
    first, second = ended_cluster(alice, 1), ended_cluster(alice, 1)
    order = Order(Actor.person(alice), "thesis", PROLONG_OUTPUTS.check({"days": 60}))

    lease = PROLONG_OUTPUTS.act(first.pk, order)
    assert PROLONG_OUTPUTS.bulk is not None
    done = PROLONG_OUTPUTS.bulk.call([first.pk, second.pk], order)

    assert lease.kept_until > lease.began_at
    assert set(done) >= {second.pk}
    assert lease_of(second.pk).kept_until >= lease.kept_until  # type: ignore[union-attr]


def test_it_is_possible_at_clusters_that_have_ended(alice: User) -> None:
    assert PROLONG_OUTPUTS.is_possible(ended_cluster(alice, 1))
    assert not PROLONG_OUTPUTS.is_possible(cluster_of(alice, 1))
