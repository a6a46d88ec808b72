"""What tests of notices have in common: who subscribes, what happens, and who was told what."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone

from wms.core.actors import Actor
from wms.core.models import User
from wms.dags.lifecycle import apply_to_dags
from wms.dags.models import Dag
from wms.notices import telling
from wms.notices.models import Notice, Subscription
from wms.notices.services import subscribe

SYSTEM = Actor.system("test")


def hears(user: User, rule: str, *, dag: Dag | None = None, site: str = "") -> Subscription:
    """The user subscribes."""
    return subscribe(
        rule, dag_id=None if dag is None else dag.pk, site=site, actor=Actor.person(user)
    )


def told(user: User, *, now: datetime | None = None) -> list[tuple[str, str]]:
    """What the user was told after a cycle: kinds and titles, the earliest first."""
    telling.run_cycle(now or timezone.now())
    notices = Notice.objects.filter(user=user).order_by("pk")
    return list(notices.values_list("kind", "title"))


def happens(event: str, *dags: Dag, actor: Actor = SYSTEM, reason: str = "disk full") -> None:
    """An event of DAGs."""
    applied = apply_to_dags(event, [dag.pk for dag in dags], actor=actor, reason=reason)
    assert len(applied.changed) == len(dags)
