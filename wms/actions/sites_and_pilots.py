"""Kinds pilot, site, suspected worker node and placement request, and their actions.

The actions are drain, ban, open, clear and remove: declared for all faces, with texts, obstacles,
permissions, and the effects that a bulk preview tells; services do the work.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from wms.actions.actions import Action, InApi, InBulk, InShell, OnPage
from wms.actions.arguments import Order
from wms.actions.kinds import (
    Kind,
    actions,
    of_many,
    one_alone,
    one_as_seen,
    one_by_one,
    one_of_many,
)
from wms.actions.obstacles import of_state, when
from wms.actions.remarks import remark_actions
from wms.core.models import Role, User
from wms.core.policy import has_role
from wms.dags.negotiation.requests import load_at
from wms.jobs.models import Attempt
from wms.pilots.models import Pilot
from wms.pilots.monitoring.suspects import clear_node
from wms.pilots.policy import may_steer as may_steer_pilots
from wms.pilots.policy import may_steer_some, steered_queues
from wms.pilots.selectors import visible_pilots
from wms.pilots.services import drain_pilot, remove_pilot
from wms.pilots.states import ALIVE
from wms.pilots.suspect_models import SuspectedNode
from wms.placement.models import PlacementRequest
from wms.placement.policy import may_steer as may_steer_request
from wms.placement.selectors import visible_requests
from wms.placement.services import remove_requests, retry_requests
from wms.placement.states import TRANSITIONS as PLACEMENT_STEPS
from wms.remarks.states import SubjectKind
from wms.sites.models import Site, SiteEvent
from wms.sites.policy import may_steer as may_steer_site
from wms.sites.policy import steerable_sites
from wms.sites.selectors import visible_sites
from wms.sites.services import ban_site, commission_site, drain_site, unban_site
from wms.sites.states import TRANSITIONS

_FEW = 50


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
    visible=visible_pilots,
    permits=lambda user, pilot: may_steer_pilots(user, pilot.queue.site),
    handle="uuid",
    key="queue_id",
    permitted=steered_queues,
    refusal="this needs the role shifter, or to be one of the site's administrators",
    offered=may_steer_some,
    label="uuid",
    group="queue__site__name",
    group_label="Site",
    effects=_effects_of_pilots,
    actions=actions(
        Action(
            "drain",
            "Drain",
            [
                of_state(ALIVE),
                when(~Q(drain_reason=""), "it drains already"),
                when(Q(is_remote=True), "it has its jobs from another installation"),
            ],
            one_alone(drain_pilot),
            page=OnPage(
                "The pilot takes no more jobs and ends after those at hand.", "takes no more jobs"
            ),
            api=InApi(
                "Let a pilot take no more jobs",
                "Drain it; needs a reason. It ends after the jobs at hand.",
            ),
            shell=InShell("let a pilot take no more jobs", "pilot {0.uuid} takes no more jobs"),
            bulk=InBulk(
                "The pilots take no more jobs, and end after those at hand. One that waits ends "
                "when it starts.",
                one_by_one(Pilot, "uuid", drain_pilot),
            ),
        ),
        Action(
            "remove",
            "Remove",
            [of_state(ALIVE)],
            one_alone(remove_pilot),
            page=OnPage(
                "The pilot ends at once, and the batch system is told to cancel it. The jobs at "
                "hand are stopped and run again elsewhere, which costs them none of their "
                "attempts.",
                "is removed",
            ),
            api=InApi(
                "End a pilot at once",
                "Remove it; needs a reason. Its jobs run again elsewhere, at no cost to them.",
            ),
            shell=InShell(
                "end a pilot at once; its jobs run again elsewhere", "pilot {0.uuid} is {0.state}"
            ),
            bulk=InBulk(
                "The pilots end at once, and their batch systems are told to cancel them. Their "
                "jobs are stopped and run again elsewhere, which costs them none of their "
                "attempts.",
                one_by_one(Pilot, "uuid", remove_pilot),
            ),
            is_destructive=True,
        ),
    ),
)


def _site_made_before(instant: datetime) -> Q:
    """Condition for sites whose first event is up to the instant."""
    later = SiteEvent.objects.filter(
        site=OuterRef("pk"), event="create", facts__target__startswith="site ",
        created_at__gt=instant,
    )  # fmt: skip
    return ~Q(Exists(later))


def _permitted_sites(user: User, site_ids: Collection[int]) -> set[int]:
    return set(steerable_sites(user).filter(pk__in=site_ids).values_list("pk", flat=True))


def _effects_on_sites(sites: QuerySet[Site]) -> list[str]:
    ids = sites.order_by().values("pk")
    bound = load_at(sites).dags
    pilots = Pilot.objects.filter(queue__site__in=ids, state__in=ALIVE).aggregate(n=Count("pk"))
    return [f"{bound:,} DAGs are bound to them, and {pilots['n']:,} pilots are there; these go on."]


SITES = Kind(
    name="sites",
    noun="site",
    nouns="sites",
    model=Site,
    visible=visible_sites,
    permits=may_steer_site,
    handle="name",
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
            "commission",
            "Open",
            [of_state(TRANSITIONS["commission"].sources)],
            one_as_seen(commission_site),
            page=OnPage(
                "The site takes DAGs from now on, although no pilot has called in from it yet.",
                "is open",
            ),
            api=InApi(
                "Open a new site before a pilot has called in from it",
                "Open it; needs a reason. Else it opens by itself when its first pilot calls in.",
            ),
            bulk=InBulk(
                "The sites take DAGs, although no pilot has called in from them yet.",
                one_by_one(Site, "name", commission_site),
                _FEW,
            ),
        ),
        Action(
            "drain",
            "Drain",
            [of_state(TRANSITIONS["drain"].sources)],
            one_as_seen(drain_site),
            page=OnPage(
                "The site takes no new DAG. Those bound to it go on and get pilots.", "is draining"
            ),
            api=InApi(
                "Give a site no new DAG",
                "Drain it; needs a reason. DAGs that are bound to it go on and get pilots.",
            ),
            bulk=InBulk(
                "The sites take no new DAG. Those bound to them go on and get pilots.",
                one_by_one(Site, "name", drain_site),
                _FEW,
            ),
        ),
        Action(
            "unban",
            "Open again",
            [of_state(TRANSITIONS["unban"].sources)],
            one_as_seen(unban_site),
            page=OnPage("The site takes DAGs and pilots again.", "is open"),
            api=InApi("Open a banned or draining site again", "Open it; needs a reason."),
            bulk=InBulk(
                "The sites take DAGs and pilots again.",
                one_by_one(Site, "name", unban_site),
                _FEW,
            ),
        ),
        Action(
            "ban",
            "Ban",
            [of_state(TRANSITIONS["ban"].sources)],
            one_as_seen(ban_site),
            page=OnPage(
                "The site takes nothing new: no DAG, no pilot. What runs there goes on.",
                "is banned",
                is_grave=True,
            ),
            api=InApi(
                "Give a site nothing new: no DAG, no pilot",
                "Ban it; needs a reason. What runs there goes on.",
            ),
            bulk=InBulk(
                "The sites take nothing new: no DAG, no pilot. What runs there goes on.",
                one_by_one(Site, "name", ban_site),
                _FEW,
            ),
        ),
        *remark_actions(SubjectKind.SITE, "site", "sites"),
    ),
)


def _clear(suspect_id: int, order: Order) -> SuspectedNode:
    return clear_node(suspect_id, actor=order.actor, reason=order.reason, now=timezone.now())


SUSPECTED_NODES = Kind(
    name="suspected-nodes",
    noun="suspected worker node",
    nouns="suspected worker nodes",
    model=SuspectedNode,
    visible=lambda user: SuspectedNode.objects.filter(site__in=visible_sites(user)),
    permits=lambda user, node: may_steer_site(user, node.site),
    actions=actions(
        Action(
            "clear",
            "Clear",
            [when(Q(ended_at__isnull=False), "it is suspected no longer")],
            _clear,
            page=OnPage(
                "It gets jobs like any other node again; its earlier failures no longer count.",
                "is suspected no longer",
            ),
            api=InApi(
                "Suspect a worker node no longer",
                "Clear it; needs a reason. It gets jobs as any other node, and a clean slate.",
            ),
        ),
    ),
)


PLACEMENTS = Kind(
    name="placements",
    noun="placement request",
    nouns="placement requests",
    model=PlacementRequest,
    visible=visible_requests,
    permits=lambda user, request: may_steer_request(user, request.owner_id),
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
            "retry",
            "Try again",
            [
                of_state(PLACEMENT_STEPS["retry"].sources),
                when(~Q(topic=""), "it is of a DAG, whose node is tried again instead"),
            ],
            one_of_many(retry_requests),
            page=OnPage("Tries the request again, as often as at first.", "is tried again"),
            api=InApi(
                "Try a request again",
                "Try it again, as often as at first; not one of a DAG. Needs a reason.",
            ),
            bulk=InBulk("Tries the requests again.", of_many(retry_requests)),
        ),
        Action(
            "remove",
            "Remove",
            [of_state(PLACEMENT_STEPS["remove"].sources)],
            one_of_many(remove_requests),
            page=OnPage(
                "Ends the request for good; a transfer that runs is stopped and leaves nothing. "
                "Its node fails.",
                "is removed",
            ),
            api=InApi(
                "End a request for good, and stop its transfer",
                "Remove it; its node fails then. Needs a reason.",
            ),
            bulk=InBulk(
                "Ends the requests for good; transfers that run are stopped within seconds.",
                of_many(remove_requests),
            ),
            is_destructive=True,
        ),
    ),
)
