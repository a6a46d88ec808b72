"""What can be done with many sites, pilots and placement requests."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from wms.bulk.kinds import Action, Kind, Order, actions, made_at, of_state, when
from wms.core.models import Role, User
from wms.core.policy import has_role
from wms.dags.models import Dag
from wms.dags.states import DAG_ACTIVE
from wms.jobs.models import Attempt
from wms.pilots.models import Pilot
from wms.pilots.policy import may_steer as may_steer_pilots
from wms.pilots.services import drain_pilot, remove_pilot
from wms.pilots.states import ALIVE
from wms.placement.models import PlacementRequest
from wms.placement.policy import may_steer as may_steer_request
from wms.placement.services import remove_requests
from wms.placement.states import TRANSITIONS as PLACEMENT_STEPS
from wms.sites.models import Site, SiteEvent
from wms.sites.policy import steerable_sites
from wms.sites.services import ban_site, drain_site, unban_site
from wms.sites.states import TRANSITIONS

_FEW = 50


def _drain(ids: Sequence[int], order: Order) -> Mapping[int, str]:
    found = Pilot.objects.filter(pk__in=ids).order_by("pk").values_list("pk", "uuid")
    for _, uuid in found:
        drain_pilot(uuid, actor=order.actor, reason=order.reason)
    return {pk: "" for pk, _ in found}


def _remove_pilots(ids: Sequence[int], order: Order) -> Mapping[int, str]:
    found = Pilot.objects.filter(pk__in=ids).order_by("pk").values_list("pk", "uuid")
    for _, uuid in found:
        remove_pilot(uuid, actor=order.actor, reason=order.reason)
    return {pk: "" for pk, _ in found}


def _effects_of_pilots(pilots: QuerySet[Pilot]) -> list[str]:
    jobs = Attempt.objects.filter(pilot_id__in=pilots.order_by().values("pk"), outcome="").count()
    return [
        f"They have {jobs:,} jobs at hand. Draining lets these go on; removing runs them elsewhere."
    ]


PILOTS = Kind(
    name="pilots",
    noun="pilot",
    nouns="pilots",
    model=Pilot,
    made_before=made_at,
    key="queue_id",
    permitted=lambda user, queue_ids: queue_ids if may_steer_pilots(user) else (),
    refusal="this needs the role shifter",
    offered=may_steer_pilots,
    label="uuid",
    group="queue__site__name",
    group_label="Site",
    effects=_effects_of_pilots,
    actions=actions(
        Action(
            "drain",
            "Drain",
            "The pilots take no more jobs, and end after those at hand. One that waits ends when "
            "it starts.",
            _drain,
            [of_state(ALIVE), when(~Q(drain_reason=""), "it drains already")],
        ),
        Action(
            "remove",
            "Remove",
            "The pilots end at once, and their batch systems are told to cancel them. Their jobs "
            "are stopped and run again elsewhere, which costs them none of their attempts.",
            _remove_pilots,
            [of_state(ALIVE)],
            is_destructive=True,
        ),
    ),
)


def _steer(service: Callable[..., Site]) -> Callable[[Sequence[int], Order], Mapping[int, str]]:
    def call(ids: Sequence[int], order: Order) -> Mapping[int, str]:
        found = Site.objects.filter(pk__in=ids).order_by("pk").values_list("pk", "name")
        for _, name in found:
            service(name, actor=order.actor, reason=order.reason)
        return {pk: "" for pk, _ in found}

    return call


def _site_made_before(instant: datetime) -> Q:
    """Sites tell when they were made by their first event only."""
    later = SiteEvent.objects.filter(
        site=OuterRef("pk"), event="create", facts__target__startswith="site ",
        created_at__gt=instant,
    )  # fmt: skip
    return ~Q(Exists(later))


def _permitted_sites(user: User, site_ids: Collection[int]) -> set[int]:
    return set(steerable_sites(user).filter(pk__in=site_ids).values_list("pk", flat=True))


def _effects_on_sites(sites: QuerySet[Site]) -> list[str]:
    ids = sites.order_by().values("pk")
    bound = Dag.objects.filter(site__in=ids, state__in=DAG_ACTIVE).count()
    pilots = Pilot.objects.filter(queue__site__in=ids, state__in=ALIVE).aggregate(n=Count("pk"))
    return [f"{bound:,} DAGs are bound to them, and {pilots['n']:,} pilots are there; these go on."]


SITES = Kind(
    name="sites",
    noun="site",
    nouns="sites",
    model=Site,
    made_before=_site_made_before,
    key="pk",
    permitted=_permitted_sites,
    refusal="this needs the role shifter, or to be one of the site's administrators",
    offered=lambda user: has_role(user, Role.SITE_ADMIN),
    label="name",
    group="name",
    group_label="Site",
    effects=_effects_on_sites,
    actions=actions(
        Action(
            "drain",
            "Drain",
            "The sites take no new DAG. Those bound to them go on and get pilots.",
            _steer(drain_site),
            [of_state(TRANSITIONS["drain"].sources)],
            batch=_FEW,
        ),
        Action(
            "unban",
            "Open",
            "The sites take DAGs and pilots again.",
            _steer(unban_site),
            [of_state(TRANSITIONS["unban"].sources)],
            batch=_FEW,
        ),
        Action(
            "ban",
            "Ban",
            "The sites take nothing new: no DAG, no pilot. What runs there goes on.",
            _steer(ban_site),
            [of_state(TRANSITIONS["ban"].sources)],
            batch=_FEW,
        ),
    ),
)


def _remove(ids: Sequence[int], order: Order) -> Mapping[int, str]:
    applied = remove_requests(ids, actor=order.actor, reason=order.reason)
    return dict.fromkeys(applied.changed, "")


PLACEMENTS = Kind(
    name="placements",
    noun="placement request",
    nouns="placement requests",
    model=PlacementRequest,
    made_before=made_at,
    key="owner_id",
    permitted=lambda user, owner_ids: {pk for pk in owner_ids if may_steer_request(user, pk)},
    refusal="it belongs to another user, and this needs the role shifter",
    label="pk",
    group="owner__username",
    group_label="Owner",
    owner="owner_id",
    effects=lambda requests: ["Nodes of DAGs whose data they place count as failed."],
    actions=actions(
        Action(
            "remove",
            "Remove",
            "Ends the requests for good; transfers that run are stopped within seconds.",
            _remove,
            [of_state(PLACEMENT_STEPS["remove"].sources)],
            is_destructive=True,
        ),
    ),
)
