"""Selectors of sites, queues, downtimes and events of sites; what a queue's pilots offer to jobs.

Also the element (batch system adapter) of a queue with its settings, whether its pilots run on this
host, and identities (owner, group) of private pilots with those that get no more work.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime

from django.db.models import Prefetch, QuerySet

from matching.task_queues.needs import MOST
from matching.task_queues.resources import Resource
from wms.accounting.models import AccountingGroup
from wms.core.conf import conf
from wms.core.errors import NotFound
from wms.core.models import User
from wms.elements.protocol import Element
from wms.elements.registry import element_for
from wms.sites.downtimes.models import Downtime
from wms.sites.models import Queue, Site, SiteEvent
from wms.sites.states import SiteState

#: Owner and group of private pilots.
Identity = tuple[User | None, AccountingGroup | None]

#: A pilot has called in within this time of its start, or something is wrong with its node.
_START_UP_S = 60


def enabled_queues(now: datetime) -> QuerySet[Queue]:
    """The queues to which pilots may be sent, with their sites.

    None of a site that is banned or in downtime; a draining site finishes what it has.
    """
    return (
        Queue.objects.filter(is_enabled=True, site__is_enabled=True)
        .exclude(site__state=SiteState.BANNED)
        .exclude(site__in=downtimes_at(now).values("site"))
        .select_related("site", "owner", "owner_group")
    )


def configured_queues() -> QuerySet[Queue]:
    """The queues that are not switched off, whatever holds pilots back for a time."""
    return Queue.objects.filter(is_enabled=True, site__is_enabled=True).select_related("site")


def runs_here(queue: Queue) -> bool:
    """Whether pilots of this queue are processes of this host."""
    return queue.element == "host" and "ssh" not in queue.settings


def downtimes_at(now: datetime) -> QuerySet[Downtime]:
    """The downtimes that have begun and not ended, of all sites; cancelled ones left out."""
    return Downtime.objects.filter(cancelled_at=None, start__lte=now, end__gt=now)


def downtimes_from(now: datetime) -> QuerySet[Downtime]:
    """The downtimes that have not ended, of all sites, by start; cancelled ones left out."""
    return Downtime.objects.filter(cancelled_at=None, end__gt=now).order_by("start", "pk")


def planned_downtimes(site: Site, now: datetime) -> QuerySet[Downtime]:
    """The downtimes of a site that have not ended, by start."""
    return downtimes_from(now).filter(site=site)


def site_names() -> list[str]:
    """The names of all sites, sorted."""
    return list(Site.objects.order_by("name").values_list("name", flat=True))


def site_names_by_age() -> list[str]:
    """Names of all sites, the oldest first: a new one changes no other's place."""
    return list(Site.objects.order_by("pk").values_list("name", flat=True))


def find_site(name: str) -> Site:
    """The site of this name. Raises NotFound."""
    site = Site.objects.filter(name=name).first()
    if site is None:
        raise NotFound(f"There is no site {name}.")
    return site


def queues_of(site: Site) -> QuerySet[Queue]:
    """The queues of a site, those that are switched off at present included."""
    return Queue.objects.filter(site=site).select_related("site", "owner", "owner_group")


def find_queue(user: User, site_name: str, queue_name: str) -> Queue:
    """The queue of this name at a site that the user may see. Raises NotFound."""
    queue = queues_of(find_visible_site(user, site_name)).filter(name=queue_name).first()
    if queue is None:
        raise NotFound(f"The site {site_name} has no queue {queue_name}.")
    return queue


def element_settings(queue: Queue) -> dict[str, object]:
    """The queue's settings, with the defaults that follow from its place in Pilotage."""
    settings: Mapping[str, object] = queue.settings
    return {**_default_settings(queue), **settings}


def _default_settings(queue: Queue) -> dict[str, object]:
    if queue.element in {"arc", "htcondor", "slurm"}:
        return {"cores": queue.cores}
    if queue.element == "kubernetes":
        return {"cores": queue.cores, "slots": queue.max_pilots}
    if queue.element != "host":
        return {}
    if not runs_here(queue):
        # Our folders mean nothing on another host.
        return {"slots": queue.max_pilots}
    directory = conf().host_pilots_dir / queue.site.name / queue.name
    return {"slots": queue.max_pilots, "directory": str(directory)}


def element_of(queue: Queue) -> Element:
    """The adapter to the queue's batch system. Raises BadSettings when its settings do not fit."""
    return element_for(queue.element, element_settings(queue))


def offered_resource(queue: Queue) -> Resource:
    """Resource that a fresh pilot of this queue offers to jobs, less the time of its start.

    Reads the queue's site, owner and group: select them with it.
    """
    offer = replace(queue_offer(queue), cpu_time_s=fresh_cpu_time_s(queue))
    if queue.has_owners:
        # Whose it is is drawn when it is sent.
        return replace(offer, pilot_type="private")
    return with_identity(offer, queue.owner, queue.owner_group)


def fresh_time_s(queue: Queue) -> int:
    """Seconds that a job may run in a fresh pilot of this queue."""
    return max(0, queue.wall_time_s - _START_UP_S)


def fresh_cpu_time_s(queue: Queue) -> int:
    """CPU time, on a core of power 1.0, that a job may need in a fresh pilot of this queue."""
    return int(fresh_time_s(queue) * queue.cpu_power)


def queue_offer(queue: Queue) -> Resource:
    """Resource that a pilot of this queue offers, whatever its owner. Reads the queue's site."""
    return Resource(
        site=queue.site.name,
        cpu_time_s=int(queue.wall_time_s * queue.cpu_power),
        cpu_power=queue.cpu_power,
        cores=queue.cores,
        memory_mb=queue.memory_mb,
        gpus=queue.gpus,
        # What a payload may use; a queue that says nothing may have any.
        disk_mb=int(queue.payload_limits.get("disk_mb") or MOST["disk_mb"]),
        queue=str(queue),
        platform=queue.platform,
        setup=queue.setup,
        submit_pool=queue.submit_pool,
        middleware=queue.element,
        tags=tuple(sorted(queue.tags)),
        required_tags=tuple(sorted(queue.required_tags)),
    )


def with_identity(
    resource: Resource, owner: User | None, group: AccountingGroup | None
) -> Resource:
    """The resource for the jobs of this owner, submitted in the name of this group (or of none).

    In a group with job sharing, for those of all its members. Without an owner it is for everybody.
    """
    if owner is None:
        return resource
    shares = group is not None and group.has_job_sharing
    return replace(
        resource,
        pilot_type="private",
        owner="" if shares else owner.get_username(),
        owner_groups=("" if group is None else group.name,),
    )


def lapsed_identities(identities: Collection[Identity]) -> dict[Identity, str]:
    """Identities whose private pilots get no more work, with the reason.

    Accounts are switched off and members leave after a queue was made for them. One query where a
    group is among the identities, else none.
    """
    in_groups = {(owner.pk, group.pk) for owner, group in identities if owner and group}
    members = _members_among(in_groups) if in_groups else set()
    reasons: dict[Identity, str] = {}
    for owner, group in identities:
        if owner is None:
            continue
        if not owner.is_active:
            reasons[owner, group] = f"the account of {owner} is switched off"
        elif group is not None and (owner.pk, group.pk) not in members:
            reasons[owner, group] = f"{owner} is not a member of {group} any more"
    return reasons


def _members_among(pairs: Collection[tuple[int, int]]) -> set[tuple[int, int]]:
    rows = AccountingGroup.members.through._default_manager.filter(
        user_id__in={user_id for user_id, _ in pairs},
        accountinggroup_id__in={group_id for _, group_id in pairs},
    )
    return set(rows.values_list("user_id", "accountinggroup_id"))


def visible_sites(user: User) -> QuerySet[Site]:
    """The sites that the user may see, with their ads, advertisements and throttles."""
    sites = Site.objects.select_related("ad", "advertisement", "throttle")
    return sites if user.is_active else sites.none()


def find_visible_site(user: User, name: str) -> Site:
    """The site of this name, if the user may see it. Raises NotFound."""
    return site_named(visible_sites(user), name)


def site_named(sites: QuerySet[Site], name: str) -> Site:
    """Site with this name among these. Raises NotFound."""
    site = sites.filter(name=name).first()
    if site is None:
        raise NotFound(f"There is no site {name}.")
    return site


def visible_downtimes(user: User) -> QuerySet[Downtime]:
    """The downtimes that the user may see, with their sites."""
    return Downtime.objects.filter(site__in=visible_sites(user)).select_related("site")


def listed_sites(user: User) -> QuerySet[Site]:
    """Visible sites by name, with their ads and queues."""
    queues = Queue.objects.select_related("owner", "owner_group").order_by("name")
    return visible_sites(user).prefetch_related(Prefetch("queues", queues)).order_by("name")


def events_of_site(site: Site) -> QuerySet[SiteEvent]:
    """The events of a site, latest first."""
    return site.events.order_by("-pk")


def names_of_administered_sites(user: User) -> list[str]:
    """Names of the sites that name the user as their administrator."""
    sites = Site.objects.filter(administrators=user).order_by("name")
    return list(sites.values_list("name", flat=True))
