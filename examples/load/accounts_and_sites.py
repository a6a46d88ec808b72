"""Accounts of the example, and its sites with queues, bans, drains and downtimes, by the services.

`keep_ads_alive` lets the published ads of sites count for a day.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from examples.load.scale import Scale
from wms.core.accounts import ensure_account
from wms.core.actors import Actor
from wms.core.models import Role, User
from wms.sites.downtimes.services import add_downtime
from wms.sites.models import Queue, Site, SiteAd
from wms.sites.services import QueueSpec, SiteSpec, ban_site, configure_site, drain_site
from wms.sites.states import SiteState

ACTOR = Actor.system("example")
#: Who logs in to look; everybody else owns DAGs.
SHIFTER = "example-shifter"
OWNERS = (
    "amelie", "bogdan", "chiara", "dmitri", "elena", "farid", "greta", "hiroshi", "ines", "jonas",
    "katarina", "luis",
)  # fmt: skip
_COUNTRIES = (
    "AT", "BE", "BR", "CH", "CN", "CZ", "DE", "DK", "EE", "ES", "FI", "FR", "GR", "HU", "IN", "IT",
    "JP", "KR", "NL", "NO", "PL", "PT", "RO", "SE", "SI", "TW", "UA", "UK", "US", "ZA",
)  # fmt: skip
_WHY_CLOSED = (
    "storage element does not answer, ticket opened", "scheduled move of the batch system",
    "payloads find no software area", "certificates of the gateway have expired",
)  # fmt: skip
_WHY_DOWN = (
    "yearly test of the power supply", "new version of the file system", "network maintenance",
    "cooling is repaired", "upgrade of the operating system",
)  # fmt: skip


@dataclass(frozen=True)
class Place:
    """A site, the queues of it, and how much it runs beside others."""

    site: Site
    queues: Sequence[Queue]
    weight: float


def make_accounts(password: str) -> list[User]:
    """The owners; and the shifter, who looks after all of them."""
    ensure_account(SHIFTER, password=password, role=Role.SHIFTER, actor=ACTOR)
    return [ensure_account(name, password=password, role=Role.USER, actor=ACTOR) for name in OWNERS]


def make_places(scale: Scale, draw: random.Random) -> list[Place]:
    """The sites. Their batch systems are in a domain that never exists: no pilot is really sent."""
    places = []
    for number in range(scale.sites):
        tier = 1 if number % 12 == 0 else 3 if number % 5 == 4 else 2
        name = f"T{tier}_{_COUNTRIES[number % len(_COUNTRIES)]}_{number:03d}"
        queues = ["long", "short"] if tier == 1 else ["long"]
        site = configure_site(
            SiteSpec(name=name, max_matches=draw.choice((20, 40, 80)), environment="SiteArea=/tmp"),
            [_queue(queue, name) for queue in queues],
            actor=ACTOR,
        )
        weight = 6.0 if tier == 1 else 1.0
        places.append(Place(site, list(site.queues.order_by("pk")), weight))
    return places


def _queue(name: str, site: str) -> QueueSpec:
    gateway = f"gateway.{site.lower().replace('_', '-')}.invalid"
    return QueueSpec(
        name=name,
        element="slurm",
        settings={
            "log_directory": "/var/log/pilots",
            "ssh": {"host": gateway, "known_hosts_file": "/etc/ssh/ssh_known_hosts"},
        },
        max_pilots=400,
        max_queued_pilots=50,
        cores=8,
        memory_mb=16_000,
        wall_time_s=172_800 if name == "long" else 86_400,
    )


def close_some(places: Sequence[Place], draw: random.Random, now: datetime) -> None:
    """Bans, drains and downtimes: some that are over, some of now, some to come."""
    some = draw.sample(list(places), max(3, len(places) // 20))
    # Loaded a second time, some are closed already.
    for number, place in enumerate(each for each in some if each.site.state == SiteState.OPEN):
        steer = drain_site if number % 2 else ban_site
        steer(place.site.name, actor=ACTOR, reason=draw.choice(_WHY_CLOSED))
    for number in range(max(6, len(places) // 4)):
        place = draw.choice(places)
        start = now + timedelta(hours=draw.uniform(-12, 24) if number % 3 else draw.uniform(0, 400))
        add_downtime(
            place.site.name,
            start=start,
            end=max(start, now) + timedelta(hours=draw.uniform(2, 30)),
            reason=draw.choice(_WHY_DOWN),
            actor=ACTOR,
            now=now,
        )


def keep_ads_alive(now: datetime) -> None:
    """The published ads count for a day: no negotiator needs to run to look at the pages."""
    SiteAd.objects.update(expires_at=now + timedelta(days=1))
