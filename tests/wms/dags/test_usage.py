"""What the DAGs hold of the places."""

from __future__ import annotations

import pytest
from django.utils import timezone

from tests import factories
from wms.accounting.models import AccountingGroup
from wms.accounting.services import save_group
from wms.dags.models import Dag
from wms.dags.negotiation.usage import DagCounts, dags_by_submitter, quota_usage
from wms.sites.models import Site
from wms.sites.services import ban_site

pytestmark = pytest.mark.django_db


def test_the_dags_of_a_submitter_are_counted_by_group() -> None:
    alice = factories.person("alice")
    group = factories.accounting(alice)
    factories.running_dag(alice)
    Dag.objects.update(accounting_group=group)
    factories.dag(alice)

    assert dags_by_submitter() == {
        (alice.pk, group.pk): DagCounts(idle=0, running=1),
        (alice.pk, None): DagCounts(idle=1, running=0),
    }


def test_places_are_those_of_open_sites_and_groups_hold_what_their_children_hold() -> None:
    alice = factories.person("alice")
    factories.site("Closed", max_matches=7)
    ban_site("Closed", actor=factories.SYSTEM, reason="moves house")
    for name in ("physics", "physics.higgs"):
        save_group(AccountingGroup(name=name, quota=0.5), actor=factories.SYSTEM, members=[alice])
    dag = factories.running_dag(alice, at=factories.site("Open", max_matches=20))
    factories.running_dag(alice, at=Site.objects.get(name="Open"))
    child = AccountingGroup.objects.get(name="physics.higgs")
    Dag.objects.filter(pk=dag.pk).update(accounting_group=child)

    places = quota_usage(timezone.now())

    assert places.total == 20
    assert places.quotas == {"physics": 10, "physics.higgs": 5}
    assert places.held == {"physics": 1, "physics.higgs": 1}
    assert (places.held_total, places.held_by_nobody) == (2, 1)
