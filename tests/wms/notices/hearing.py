"""Helpers for tests of notices: subscriptions, channels, events of DAGs, and what a user is told.

`later` runs a cycle of fan-out and sender at a time after the start.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import time_machine
from django.utils import timezone

from tests import factories
from wms.core.actors import Actor
from wms.core.models import User
from wms.dags.lifecycle import apply_to_dags
from wms.dags.models import Dag
from wms.notices import fanout, sending, services
from wms.notices.models import Channel, Notice, Subscription

SYSTEM = Actor.system("test")
#: When the tests of what is sent begin.
START = datetime(2026, 11, 22, 12, 20, tzinfo=UTC)


def hears(user: User, rule: str, *, dag: Dag | None = None, site: str = "") -> Subscription:
    """The user subscribes."""
    return services.subscribe(
        rule, dag_id=None if dag is None else dag.pk, site=site, actor=Actor.person(user)
    )


def told(user: User, *, now: datetime | None = None) -> list[tuple[str, str]]:
    """What the user was told after a cycle: kinds and titles, the earliest first."""
    fanout.run_cycle(now or timezone.now())
    notices = Notice.objects.filter(user=user).order_by("pk")
    return list(notices.values_list("kind", "title"))


def happens(event: str, *dags: Dag, actor: Actor = SYSTEM, reason: str = "disk full") -> None:
    """An event of DAGs."""
    applied = apply_to_dags(event, [dag.pk for dag in dags], actor=actor, reason=reason)
    assert len(applied.changed) == len(dags)


def channel(user: User, kind: str = "email", *, url: str = "", pace: str = "now") -> Channel:
    """A way out of the portal."""
    return services.add_channel(kind, url=url, pace=pace, actor=Actor.person(user)).row


def failed_dag(people: SimpleNamespace) -> Dag:
    """A DAG of Alice's that has failed, which she wants to hear of."""
    dag = factories.dag(people.alice)
    hears(people.alice, "dag", dag=dag)
    happens("fail", dag)
    return dag


def later(**delta: int) -> None:
    """A cycle of reader and sender, so much after the start."""
    with time_machine.travel(START + timedelta(**delta), tick=False):
        told(factories.person("alice"), now=timezone.now())
        sending.run_cycle(timezone.now())
