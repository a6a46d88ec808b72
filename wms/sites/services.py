"""Configuring sites and their queues, and deciding by hand whether a site gets new work."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import PurePosixPath
from typing import Any, TypeVar

from django.db import models, transaction

from matching.needs import MOST
from wms.accounting.models import AccountingGroup
from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.errors import Conflict, InvalidInput
from wms.core.models import Role, User
from wms.core.policy import has_role
from wms.core.saving import check_row, check_same_name
from wms.elements.protocol import BadSettings
from wms.sites import lifecycle
from wms.sites.ads import check_site
from wms.sites.models import Queue, Site, SiteEvent
from wms.sites.policy import refuse_reserved, require_configuring, require_steering
from wms.sites.selectors import element_of, find_site

_Row = TypeVar("_Row", bound=models.Model)
#: Columns that change by `ban_site` and its like only.
_STATE = frozenset({"state", "state_since", "state_reason", "state_by"})
#: What can be stored of the needs of a job.
_LONGEST_WORD = 64
_SHARED_PATH = re.compile(r"(/[A-Za-z0-9_+@][A-Za-z0-9._+@-]*)+")
#: Of the system, or what a fence makes anew.
_NEVER_SHARED = frozenset({"dev", "etc", "job", "proc", "run", "sys"})
#: What a queue may limit of its payloads; 0 is no limit. Pilots know what each means.
PAYLOAD_LIMITS = (
    "wall_s", "cpu_s", "memory_mb", "disk_mb", "output_mb", "output_sandbox_mb", "processes",
    "load", "progress_ratio", "progress_s", "grace_s",
)  # fmt: skip

_QUEUE_CHECKS: list[Callable[[Queue], None]] = []


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
    platform: str = ""
    tags: Sequence[str] = ()
    required_tags: Sequence[str] = ()
    gpus: int = 0
    setup: str = ""
    submit_pool: str = ""
    owner: str = ""
    owner_group: str = ""
    fence: str = Queue.Fence.AUTO
    payload_limits: Mapping[str, float] = field(default_factory=dict)
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
            "shared_folders": [dict(each) for each in queue_spec.shared_folders],
            "owner": _named(User, "username", queue_spec.owner, "owner"),
            "owner_group": _named(AccountingGroup, "name", queue_spec.owner_group, "owner_group"),
        }
        save_queue(_with_values(queue, values), actor=actor, reason=reason)
    return site


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
) -> None:
    """Check and store a site, and who administers it where that is given.

    Raises NotPermitted or InvalidInput.
    """
    require_configuring(actor, "configure sites", site if site.pk else None)
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
    _save_changes(queue, changes, f"queue {queue}", queue.site, actor, reason)


def register_queue_check(check: Callable[[Queue], None]) -> None:
    """Have queues checked by a higher app, which raises InvalidInput; called when it is set up."""
    _QUEUE_CHECKS.append(check)


def check_queue(queue: Queue) -> None:
    """Raise InvalidInput with the faults of a queue, those of its element's settings included."""
    _check_identity(queue)
    check_row(queue)
    if not isinstance(queue.settings, dict):
        raise InvalidInput.of("must be a JSON object", field="settings")
    _check_node_checks(queue)
    _check_payload_limits(queue)
    _check_shared_folders(queue)
    _check_offer(queue)
    try:
        element_of(queue)
    except BadSettings as error:
        raise InvalidInput.of(str(error), field="settings") from error
    for check in _QUEUE_CHECKS:
        check(queue)


def _check_identity(queue: Queue) -> None:
    """Refuse private pilots that nobody's jobs could be for."""
    owner, group = queue.owner, queue.owner_group
    if group is None:
        return
    if owner is None:
        raise InvalidInput.of("a private queue needs an owner", field="owner")
    if not group.members.filter(pk=owner.pk).exists():
        message = f"{owner} is not a member of {group} and submits nothing in its name"
        raise InvalidInput.of(message, field="owner_group")


def _check_shared_folders(queue: Queue) -> None:
    """What is shown to every payload must be named plainly, and be no part of the system."""
    if not isinstance(queue.shared_folders, list):
        raise InvalidInput.of("must be a JSON list", field="shared_folders")
    for each in queue.shared_folders:
        if not isinstance(each, dict) or not {"path"} <= each.keys() <= {"path", "is_writable"}:
            message = 'each must be an object: {"path": "/data", "is_writable": true}'
            raise InvalidInput.of(message, field="shared_folders")
        path = each["path"]
        if not isinstance(path, str) or not _SHARED_PATH.fullmatch(path):
            raise InvalidInput.of(f"{path!r} is no plain absolute path", field="shared_folders")
        if PurePosixPath(path).parts[1] in _NEVER_SHARED or path == "/tmp":
            raise InvalidInput.of(f"{path} belongs to the system", field="shared_folders")
        if not isinstance(each.get("is_writable", False), bool):
            raise InvalidInput.of("is_writable must be true or false", field="shared_folders")


def _check_payload_limits(queue: Queue) -> None:
    """Refuse what pilots would pass over."""
    limits = queue.payload_limits
    if not isinstance(limits, dict):
        raise InvalidInput.of("must be a JSON object", field="payload_limits")
    for name, value in limits.items():
        if name not in PAYLOAD_LIMITS:
            message = f"{name!r} is no limit; known are {', '.join(PAYLOAD_LIMITS)}"
            raise InvalidInput.of(message, field="payload_limits")
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not (is_number and value >= 0):
            raise InvalidInput.of(f"{name} must be a number from 0 on", field="payload_limits")


def _check_node_checks(queue: Queue) -> None:
    """Refuse checks of a node that have no name of their own."""
    checks = queue.checks
    if not isinstance(checks, list) or not all(isinstance(check, dict) for check in checks):
        raise InvalidInput.of("must be a JSON list of objects", field="checks")
    names = [check.get("name") for check in checks]
    if not all(map(_is_word, names)) or len(set(names)) < len(names):
        raise InvalidInput.of("each needs a name of its own", field="checks")


def _check_offer(queue: Queue) -> None:
    """Refuse words that no job could carry or name, and tags that no job could carry together."""
    for name in ("tags", "required_tags"):
        words = getattr(queue, name)
        if not isinstance(words, list) or not all(map(_is_word, words)):
            message = f"must be a JSON list of words without commas, up to {_LONGEST_WORD} letters"
            raise InvalidInput.of(message, field=name)
        twice = sorted({word for word in words if words.count(word) > 1})
        if twice:
            raise InvalidInput.of(f"named more than once: {', '.join(twice)}", field=name)
    for name in ("platform", "setup", "submit_pool"):
        if getattr(queue, name) and not _is_word(getattr(queue, name)):
            raise InvalidInput.of("must be a word without commas and outer spaces", field=name)
    if queue.gpus > MOST["gpus"]:
        raise InvalidInput.of(f"must be from 0 to {MOST['gpus']}", field="gpus")
    missing = sorted(set(queue.required_tags) - set(queue.tags))
    if missing:
        message = f"{', '.join(missing)} must be among the tags too, or no job could be taken"
        raise InvalidInput.of(message, field="required_tags")


def _is_word(value: object) -> bool:
    return (
        isinstance(value, str)
        and 0 < len(value) <= _LONGEST_WORD
        and value == value.strip()
        and "," not in value
    )


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
    told = {name: change if name != "settings" else "changed" for name, change in changes.items()}
    SiteEvent.objects.create(
        site=site,
        event=event,
        actor=actor.name,
        reason=reason,
        facts={"target": target, **told},
    )
    action = f"{event} {row._meta.model_name}"
    record_action(action, target=target, actor=actor, reason=reason, facts=changes)
