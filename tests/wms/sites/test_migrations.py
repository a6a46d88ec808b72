"""Migrations of sites and pilots carry a filled database over, with pilots that run."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from wms.core.models import User
from wms.pilots.models import Pilot
from wms.pilots.pressure.director import plan_requests
from wms.pilots.pressure_models import PressureRequest
from wms.sites.models import Queue

BEFORE = [("sites", "0001_schema"), ("pilots", "0001_schema")]


@pytest.mark.django_db
def test_queues_with_and_without_an_owner_keep_their_kind_of_pilots(alice: User) -> None:
    before = MigrationExecutor(connection)
    before.migrate(BEFORE)
    old = before.loader.project_state(BEFORE).apps
    site = old.get_model("sites", "Site").objects.create(name="site-a")
    for name, owner in (("own", alice.pk), ("open", None)):
        queue = old.get_model("sites", "Queue").objects.create(
            site=site, name=name, element="host", owner_id=owner
        )
        old.get_model("pilots", "Pilot").objects.create(
            queue=queue, batch=name, state="running", owner_id=owner, secret_sha256="x",
            token_sha256="x", registered_at=timezone.now(),
        )  # fmt: skip
        old.get_model("pilots", "PressureRequest").objects.create(
            queue=queue, granted=1, updated_at=timezone.now(), lease_until=timezone.now()
        )
    connection.check_constraints()

    after = MigrationExecutor(connection)
    after.migrate(after.loader.graph.leaf_nodes())

    queues = {queue.name: queue for queue in Queue.objects.all()}
    assert {name: (queue.owner_id, queue.has_owners) for name, queue in queues.items()} == {
        "own": (alice.pk, False),
        "open": (None, False),
    }
    assert Pilot.objects.filter(state="running").count() == 2
    plan_requests(timezone.now())
    assert list(PressureRequest.objects.values_list("owners", flat=True)) == [[], []]
