"""Services on sites and queues: configure them, name administrators, ban, drain and unban sites.

Permitted and audited. Also events of a site that change no state.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from django.db import models, transaction

from wms.accounting.models import AccountingGroup
from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.database.saving import check_row, check_same_name
from wms.core.errors import Conflict, InvalidInput
from wms.core.inbox import announce
from wms.core.models import InboxEntry, Role, User
from wms.core.policy import has_role
from wms.sites import lifecycle
from wms.sites.ads import check_site
from wms.sites.models import Queue, Site, SiteEvent
from wms.sites.policy import refuse_reserved, require_configuring, require_steering
from wms.sites.queue_validation import check_queue
from wms.sites.selectors import find_site
from wms.sites.states import SiteState

_Row = TypeVar("_Row", bound=models.Model)
#: Columns that change by `ban_site` and its like, and by `settle_fence`, only.
_STATE = frozenset({"state", "state_since", "state_reason", "state_by", "settled_fence"})


@dataclass(frozen=True, slots=True)
class QueueSpec:
    """A queue to be configured; what the fields mean is told in `models.Queue`.

    The owner and the group of private pilots are given by name.
    """

    name: str
    element: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    is_enabled: bool = True
    max_pilots: int = 10
    max_queued_pilots: int = 5
    cores: int = 1
    memory_mb: int = 2000
    wall_time_s: int = 86_400
    cpu_power: float = 1.0
    platform: str = ""
    tags: Sequence[str] = ()
    required_tags: Sequence[str] = ()
    gpus: int = 0
    setup: str = ""
    submit_pool: str = ""
    is_private: bool = False
    owner: str = ""
    owner_group: str = ""
    fence: str = Queue.Fence.AUTO
    network: str = Queue.Network.AUTO
    payload_limits: Mapping[str, float] = field(default_factory=dict)
    payload_accounts: Mapping[str, Any] = field(default_factory=dict)
    shared_folders: Sequence[Mapping[str, Any]] = ()
    http_proxy: str = ""
    checks: Sequence[Mapping[str, Any]] = ()
    hold_after_failure_s: int = 1200
    attenuation: float = 3.0
    max_idle_pilots: int = 100
    curb_idle_pilots: int = 5
    max_held_pilots: int = 50
    max_submits: int = 100
    batch_size: int = 50
    max_removals: int = 5
    removal_margin: int = 0
    removal_wait_s: int = 300
    queued_lifetime_s: int = 604_800


@dataclass(frozen=True, slots=True)
class SiteSpec:
    """A site to be configured; what the fields mean is told in `models.Site`."""

    name: str
    is_enabled: bool = True
    max_matches: int = 2
    matches_unit: str = Site.MatchesUnit.DAGS
    group_size: int = 50
    failure_threshold: int = 18
    requirements: str = "CurMatches < MaxMatches"
    rank: str = "0.0"
    environment: str = ""
    attributes: str = ""


@transaction.atomic
def configure_site(
    spec: SiteSpec, queues: Sequence[QueueSpec], *, actor: Actor, reason: str = ""
) -> Site:
    """Create the site and its queues, or bring existing ones of these names to this state.

    Raises NotPermitted, and InvalidInput with every fault; then nothing was changed.
    """
    site = Site.objects.select_for_update().filter(name=spec.name).first() or Site()
    save_site(_with_values(site, asdict(spec)), actor=actor, reason=reason)
    existing = {queue.name: queue for queue in site.queues.select_for_update(of=("self",))}
    for queue_spec in queues:
        queue = existing.get(queue_spec.name) or Queue(site=site)
        values = {
            **asdict(queue_spec),
            "settings": dict(queue_spec.settings),
            "tags": list(queue_spec.tags),
            "required_tags": list(queue_spec.required_tags),
            "checks": [dict(check) for check in queue_spec.checks],
            "payload_limits": dict(queue_spec.payload_limits),
            "payload_accounts": dict(queue_spec.payload_accounts),
            "shared_folders": [dict(each) for each in queue_spec.shared_folders],
            "owner": _named(User, "username", queue_spec.owner, "owner"),
            "owner_group": _named(AccountingGroup, "name", queue_spec.owner_group, "owner_group"),
        }
        save_queue(_with_values(queue, values), actor=actor, reason=reason)
    return site


def commission_site(name: str, *, actor: Actor, reason: str, seen: str = "") -> Site:
    """Open a new site before a pilot has called in from it.

    Raises NotFound, NotPermitted, ReasonRequired, and Conflict when it is not commissioning.
    """
    return _steer("commission", name, actor=actor, reason=reason, seen=seen)


def commission_by_pilot(site: Site, *, actor: Actor) -> None:
    """Open a site that is commissioning, now that a pilot has called in from it."""
    if site.state == SiteState.COMMISSIONING:
        reason = "a pilot has called in from it"
        lifecycle.SITES.apply(
            "commission", [site.pk], actor=actor, reason=reason, state_by=actor.name
        )


def ban_site(name: str, *, actor: Actor, reason: str, seen: str = "") -> Site:
    """Give the site nothing new: no DAG, no pilot. What runs there goes on.

    `seen`, where given, is the state in which the actor saw the site: it must still be in it.

    Raises NotFound, NotPermitted, ReasonRequired, and Conflict when it is banned already.
    """
    return _steer("ban", name, actor=actor, reason=reason, seen=seen)


def drain_site(name: str, *, actor: Actor, reason: str, seen: str = "") -> Site:
    """Give the site no new DAG; DAGs that are bound to it go on and get pilots.

    Raises NotFound, NotPermitted, ReasonRequired, and Conflict when it is draining already.
    """
    return _steer("drain", name, actor=actor, reason=reason, seen=seen)


def unban_site(name: str, *, actor: Actor, reason: str, seen: str = "") -> Site:
    """Open a banned or draining site again.

    Raises NotFound, NotPermitted, ReasonRequired, and Conflict when it is open.
    """
    return _steer("unban", name, actor=actor, reason=reason, seen=seen)


@transaction.atomic
def _steer(event: str, name: str, *, actor: Actor, reason: str, seen: str) -> Site:
    site = find_site(name)
    require_steering(actor, f"{event} sites", site)
    site = Site.objects.select_for_update(of=("self",)).get(pk=site.pk)
    if seen and site.state != seen:
        raise Conflict(
            f"You saw {name} {seen}; meanwhile {site.state_by} has put it to {site.state}: "
            f"{site.state_reason}. Nothing was changed: look at it and decide again."
        )
    applied, _ = lifecycle.SITES.apply(
        event, [site.pk], actor=actor, reason=reason.strip(), state_by=actor.name
    )
    site.refresh_from_db()
    if not applied.changed:
        raise Conflict(f"{name} is {site.state}: {event} changes nothing.")
    record_action(f"{event} site", target=f"site {name}", actor=actor, reason=reason.strip())
    return site


def note_at_site(
    site: Site, event: str, *, actor: Actor, reason: str, facts: Mapping[str, Any], at: datetime
) -> None:
    """Write and announce an event of a site that changes no state.

    The caller has opened a transaction.
    """
    row = SiteEvent.objects.create(
        site=site, event=event, actor=actor.name, reason=reason, facts=dict(facts), created_at=at
    )
    kind = InboxEntry.Kind.SITE_EVENT
    announce([InboxEntry(topic=lifecycle.NEWS_TOPIC, key=site.pk, kind=kind, subject_id=row.pk)])


def _named(model: type[_Row], key: str, name: str, field_name: str) -> _Row | None:
    if not name:
        return None
    row = model._default_manager.filter(**{key: name}).first()
    if row is None:
        raise InvalidInput.of(f"there is no {model._meta.verbose_name} {name}", field=field_name)
    return row


def _with_values(row: _Row, values: Mapping[str, Any]) -> _Row:
    for name, value in values.items():
        setattr(row, name, value)
    return row


@transaction.atomic
def save_site(
    site: Site,
    *,
    actor: Actor,
    reason: str = "",
    administrators: Collection[User] | None = None,
    is_proven: bool = True,
) -> None:
    """Check and store a site, and who administers it where that is given.

    A new one that is not proven is commissioning until a pilot calls in from it. Raises
    NotPermitted or InvalidInput.
    """
    require_configuring(actor, "configure sites", site if site.pk else None)
    if site.pk is None and not is_proven:
        site.state, site.state_by = SiteState.COMMISSIONING, actor.name
        site.state_reason = "no pilot has called in from it yet"
    # Browsers send text fields with the line ends of Windows: that alone is no change.
    site.environment = "\n".join(site.environment.splitlines())
    site.attributes = "\n".join(site.attributes.splitlines())
    check_row(site)
    check_same_name(site)
    check_site(site)
    named = _change_of_administrators(site, administrators)
    if named:
        require_configuring(actor, "name the administrators of sites")
    changes = {**_changes_of(site), **named}
    _save_changes(site, changes, f"site {site.name}", site, actor, reason)
    if administrators is not None:
        site.administrators.set(administrators)


def _change_of_administrators(
    site: Site, administrators: Collection[User] | None
) -> dict[str, list[Any]]:
    if administrators is None:
        return {}
    old = set(site.administrators.values_list("username", flat=True)) if site.pk else set()
    new = {each.get_username() for each in administrators}
    too_low = sorted(
        each.get_username() for each in administrators if not has_role(each, Role.SITE_ADMIN)
    )
    if too_low:
        needed = Role.SITE_ADMIN.label
        message = f"the account of {', '.join(too_low)} needs the role {needed}, or a higher one"
        raise InvalidInput.of(message, field="administrators")
    return {"administrators": [sorted(old), sorted(new)]} if old != new else {}


@transaction.atomic
def save_queue(queue: Queue, *, actor: Actor, reason: str = "") -> None:
    """Check and store a queue. Raises NotPermitted or InvalidInput."""
    stored = Queue.objects.filter(pk=queue.pk).select_related("site").first() if queue.pk else None
    require_configuring(actor, "configure queues", queue.site if stored is None else stored.site)
    changes = _changes_of(queue)
    refuse_reserved(actor, changes)
    check_queue(queue)
    check_same_name(queue)
    if stored is not None and "fence" in changes:
        # Who chooses `auto` again has it settled anew.
        queue.settled_fence = ""
        changes["settled_fence"] = [stored.settled_fence, ""]
    _save_changes(queue, changes, f"queue {queue}", queue.site, actor, reason)


def _changes_of(row: models.Model) -> dict[str, list[Any]]:
    """Each field in which a row is not as it is stored, with the old and the new value."""
    stored = type(row)._default_manager.select_for_update(of=("self",))
    old = stored.filter(pk=row.pk).first() if row.pk else None
    names = [
        f.attname
        for f in row._meta.concrete_fields
        if not f.primary_key and f.attname not in _STATE
    ]
    return {
        name: [None if old is None else getattr(old, name), getattr(row, name)]
        for name in names
        if old is None or getattr(old, name) != getattr(row, name)
    }


def _save_changes(
    row: models.Model,
    changes: Mapping[str, list[Any]],
    target: str,
    site: Site,
    actor: Actor,
    reason: str,
) -> None:
    """Store a row, with an event and an audit entry that tell what changed."""
    if not changes:
        return
    event = "change" if row.pk else "create"
    columns = [f.attname for f in row._meta.concrete_fields if f.attname in changes]
    if event == "create":
        row.save()
    elif columns:
        row.save(update_fields=columns)
    # Everybody reads events; what a batch system needs to know is for operators, in the audit.
    shown = {name: change if name != "settings" else "changed" for name, change in changes.items()}
    SiteEvent.objects.create(
        site=site,
        event=event,
        actor=actor.name,
        reason=reason,
        facts={"target": target, **shown},
    )
    action = f"{event} {row._meta.model_name}"
    record_action(action, target=target, actor=actor, reason=reason, facts=changes)
