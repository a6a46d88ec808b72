"""Needs of jobs as text, short for lists and in full for pages.

Also text on queues: what their pilots offer, and for which jobs they are reserved.
"""

from __future__ import annotations

from dataclasses import dataclass

from matching.task_queues.needs import Needs
from portal.web.templatetags.pilotage import span
from wms.sites.models import Queue


@dataclass(frozen=True, slots=True)
class NeedFact:
    """One need with its name; a long text has its own line, an expression is code."""

    label: str
    text: str
    is_broad: bool = False
    is_code: bool = False


def cores_of(needs: Needs) -> str:
    """Minimum number of cores, with the maximum if it is higher."""
    if needs.max_cores > needs.cores:
        return f"{needs.cores} to {needs.max_cores} cores"
    return _counted(needs.cores, "core")


def words_of(needs: Needs) -> str:
    """Needs in one line without the owner; needs that ask for nothing are left out."""
    lists = (
        ("at", needs.sites),
        ("not at", needs.banned_sites),
        ("in", needs.queues),
        ("on", needs.platforms),
        ("pilots", needs.pilot_types),
        ("pools", needs.submit_pools),
        ("sent by", needs.middlewares),
    )
    parts = [
        cores_of(needs),
        f"{needs.memory_mb} MB" if needs.memory_mb else "",
        _counted(needs.gpus, "GPU") if needs.gpus else "",
        f"{needs.disk_mb} MB of disk" if needs.disk_mb else "",
        f"{span(needs.cpu_time_s)} of CPU",
        needs.job_type and f"type {needs.job_type}",
        needs.setup and f"setup {needs.setup}",
        *(f"{word} {_some(values)}" for word, values in lists if values),
        f"tags {_some(needs.tags, 'and')}" if needs.tags else "",
        f"limits {_some(needs.limits, 'and')}" if needs.limits else "",
        needs.requirements and f"where {needs.requirements}",
    ]
    return ", ".join(filter(None, parts))


def _in_seconds_too(seconds: int) -> str:
    """Length of time, followed by its seconds, the unit in which segments are configured."""
    return f"{span(seconds)} ({seconds} s)" if seconds >= 60 else span(seconds)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _some(values: tuple[str, ...], link: str = "or") -> str:
    """First values of a list, and the number of the others."""
    if len(values) > 3:
        return f"{values[0]}, {values[1]} {link} {len(values) - 2} more"
    return f" {link} ".join(values)


def facts_of(needs: Needs) -> list[NeedFact]:
    """Needs one by one; those that ask for nothing are left out, except the usual ones."""
    usual = [
        NeedFact("Cores", cores_of(needs).removesuffix(" cores").removesuffix(" core")),
        NeedFact("Memory", f"{needs.memory_mb} MB" if needs.memory_mb else "any"),
        NeedFact("CPU time", f"up to {_in_seconds_too(needs.cpu_time_s)}"),
        NeedFact("Sites", ", ".join(needs.sites) or "any"),
        NeedFact("Platforms", ", ".join(needs.platforms) or "any"),
    ]
    special = [
        NeedFact("GPUs", str(needs.gpus or "")),
        NeedFact("Disk", f"{needs.disk_mb} MB" if needs.disk_mb else ""),
        NeedFact("Not at", ", ".join(needs.banned_sites)),
        NeedFact("Queues", ", ".join(needs.queues)),
        NeedFact("Tags", ", ".join(needs.tags)),
        NeedFact("Concurrency limits", ", ".join(needs.limits)),
        NeedFact("Job type", needs.job_type),
        NeedFact("Setup", needs.setup),
        NeedFact("Pilots", ", ".join(needs.pilot_types)),
        NeedFact("Submit pools", ", ".join(needs.submit_pools)),
        NeedFact("Pilots sent by", ", ".join(needs.middlewares)),
        NeedFact("Requirements", needs.requirements, is_broad=True, is_code=True),
    ]
    return usual + [fact for fact in special if fact.text]


def offer_of(queue: Queue) -> str:
    """Resources that a pilot of the queue offers."""
    parts = [
        _counted(queue.cores, "core"),
        f"{queue.memory_mb} MB",
        _counted(queue.gpus, "GPU") if queue.gpus else "",
        span(queue.wall_time_s),
        queue.platform,
        f"tags {_some(tuple(queue.tags), 'and')}" if queue.tags else "",
    ]
    return ", ".join(filter(None, parts))


def reserved_for(queue: Queue) -> str:
    """Jobs to which the queue is restricted; empty when it takes any.

    Reads the queue's owner and group.
    """
    group = queue.owner_group
    whose = "all members" if group and group.has_job_sharing else queue.owner
    parts = [
        f"jobs of {whose}{f' in {group}' if group else ''}" if queue.owner else "",
        "in each pilot the jobs of one owner, drawn when it is sent" if queue.has_owners else "",
        f"jobs with the tags {' and '.join(queue.required_tags)}" if queue.required_tags else "",
        f"the setup {queue.setup}" if queue.setup else "",
        f"the submit pool {queue.submit_pool}" if queue.submit_pool else "",
    ]
    return ", ".join(filter(None, parts))
