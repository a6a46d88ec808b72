"""Resources that a pilot or queue offers to jobs, and the reasons why it cannot take some.

Also why no pilot is sent for some, the ads of pilot and job for their requirements, names of the
facts that pilots tell of their nodes, and the kinds of jobs that running limits count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import classad2

from matching.ads.classads import build_ad, evaluate, parse_expression
from matching.task_queues.needs import MOST, Needs
from matching.task_queues.published import Published, PublishedHere, ad_values

#: What pilots tell of their nodes when they register: texts, and numbers.
NODE_TEXTS = ("hostname", "platform", "python", "agent_version")
NODE_NUMBERS = (
    "cores", "memory_mb", "disk_mb", "slot_cores", "slot_memory_mb", "slot_gpus",
)  # fmt: skip
#: Who told the time that is left to the pilot, where its batch system did.
TIME_SOURCE = "time_source"
NODE_FACTS = (*NODE_TEXTS, *NODE_NUMBERS, TIME_SOURCE)
#: Of an expression in a reason.
_SHOWN_LENGTH = 200


@dataclass(frozen=True, slots=True)
class JobKind:
    """Kind of jobs that a running limit counts; an empty text stands for any.

    `limit` is a word of their needs: jobs that use so much of this concurrency limit.
    """

    job_type: str = ""
    owner_group: str = ""
    limit: str = ""

    def covers(self, needs: Needs) -> bool:
        """Whether a job with these needs is of this kind."""
        return (
            self.job_type in {"", needs.job_type}
            and self.owner_group in {"", needs.owner_group}
            and (not self.limit or self.limit in needs.limits)
        )

    def __str__(self) -> str:
        if self.limit:
            return f"jobs that use the limit {self.limit}"
        words = [self.job_type, "jobs"] if self.job_type else ["jobs"]
        return " ".join([*words, "of", self.owner_group] if self.owner_group else words)


@dataclass(frozen=True, slots=True)
class Resource:
    """Resources offered now: `cores`, `memory_mb`, `gpus` and `disk_mb` are the free ones.

    `cpu_time_s` is the time that is left, times `cpu_power`.
    A generic pilot has no `owner`; one of a frontend has the `owner_groups` of it, one of the
    default frontend the `foreign_groups` whose jobs it leaves alone. A private one has owner and
    group, or only its group where the members of the group share their pilots. `required_tags` are
    those that a job must carry. `refused_owners` and `refused_groups` have no account on the node
    that is free for their jobs. Kinds in `excluded` have reached a running limit. `publishes` is
    what is known of the attributes that pilots of a queue publish; None: it was not looked up.
    `start` are expressions of its frontend, each of which has to be true for jobs and this offer.
    """

    site: str
    cpu_time_s: int
    cpu_power: float = 1.0
    cores: int = 1
    memory_mb: int = 0
    gpus: int = 0
    disk_mb: int = MOST["disk_mb"]
    queue: str = ""
    platform: str = ""
    setup: str = ""
    submit_pool: str = ""
    middleware: str = ""
    tags: tuple[str, ...] = ()
    required_tags: tuple[str, ...] = ()
    pilot_type: str = "generic"
    owner: str = ""
    owner_groups: tuple[str, ...] = ()
    foreign_groups: tuple[str, ...] = ()
    refused_owners: tuple[str, ...] = ()
    refused_groups: tuple[str, ...] = ()
    excluded: tuple[JobKind, ...] = ()
    publishes: PublishedHere | None = None
    start: tuple[str, ...] = ()

    def refusal(self, needs: Needs) -> str:
        """Why these needs cannot be met here; empty when they can.

        The requirements expression is not evaluated: see `requirements`.
        """
        return next(filter(None, (check(self, needs) for check in _CHECKS.values())), "")

    def sending_refusal(self, needs: Needs) -> str:
        """Why no pilot is sent here for these needs; empty when one may be.

        Where a queue leaves its platform open, that of a pilot is known only when it starts.
        """
        return self.unsent_reason(needs) or self.fresh_refusal(needs)

    def unsent_reason(self, needs: Needs) -> str:
        """Why these needs send no pilot here, though one that is here may meet them."""
        if needs.submit_pools and self.submit_pool not in needs.submit_pools:
            return f"is for the submit pools {', '.join(needs.submit_pools)}"
        if needs.middlewares and self.middleware not in needs.middlewares:
            return f"is for pilots sent by {', '.join(needs.middlewares)}"
        return ""

    def fresh_refusal(self, needs: Needs) -> str:
        """Why no pilot that comes to be here meets these needs; empty when one may."""
        return self.refusal(self._settled(needs))

    def fresh_aspect(self, needs: Needs) -> str:
        """The aspect by which no pilot that comes to be here meets these needs; empty if one may.

        One of amounts, place, tags, identity, limits, start.
        """
        settled = self._settled(needs)
        return next((name for name, check in _CHECKS.items() if check(self, settled)), "")

    def _settled(self, needs: Needs) -> Needs:
        """The needs, but for the platform where only a pilot's node tells it."""
        is_open = not self.platform and needs.platforms
        return replace(needs, platforms=()) if is_open else needs


def _check_amounts(here: Resource, needs: Needs) -> str:
    for what, needed, offered in (
        ("s of CPU time", needs.cpu_time_s, here.cpu_time_s),
        ("cores", needs.cores, here.cores),
        ("MB of memory", needs.memory_mb, here.memory_mb),
        ("GPUs", needs.gpus, here.gpus),
        ("MB of disk space", needs.disk_mb, here.disk_mb),
    ):
        if needed > offered:
            return f"needs {needed} {what}, offered are {offered}"
    return ""


def _check_place(here: Resource, needs: Needs) -> str:
    if needs.setup != here.setup:
        return f"belongs to the setup {needs.setup or '(none)'}, here is {here.setup or '(none)'}"
    if needs.sites and here.site not in needs.sites:
        return f"may run at {', '.join(needs.sites)} only"
    if here.site in needs.banned_sites:
        return f"may not run at {here.site}"
    if needs.queues and here.queue not in needs.queues:
        return f"may run in the queues {', '.join(needs.queues)} only"
    if needs.platforms and here.platform not in needs.platforms:
        return f"needs platform {' or '.join(needs.platforms)}, here is {here.platform or 'none'}"
    return ""


def _check_tags(here: Resource, needs: Needs) -> str:
    missing = sorted(set(needs.tags) - set(here.tags))
    if missing:
        return f"needs the tags {', '.join(missing)}"
    required = sorted(set(here.required_tags) - set(needs.tags))
    if required:
        return f"only jobs with the tags {', '.join(required)} are taken"
    return ""


def _check_identity(here: Resource, needs: Needs) -> str:
    if needs.pilot_types and here.pilot_type not in needs.pilot_types:
        return f"is for {' or '.join(needs.pilot_types)} pilots"
    if here.owner and needs.owner != here.owner:
        return f"only jobs of {here.owner} are taken"
    if here.owner_groups and needs.owner_group not in here.owner_groups:
        names = ", ".join(name or "(no group)" for name in here.owner_groups)
        return f"only jobs of the groups {names} are taken"
    if needs.owner_group in here.foreign_groups:
        return f"jobs of {needs.owner_group} are for pilots of its frontend"
    if needs.owner in here.refused_owners or needs.owner_group in here.refused_groups:
        return f"has no free account for {needs.owner}"
    return ""


def _check_limits(here: Resource, needs: Needs) -> str:
    reached = [str(kind) for kind in here.excluded if kind.covers(needs)]
    return f"no more {reached[0]} may start at {here.site} now" if reached else ""


def _check_start(here: Resource, needs: Needs) -> str:
    for text in here.start:
        if evaluate(parse_expression(text), pilot_ad(here, {}), needs_ad(needs)) is not True:
            return f"is refused by the start expression of its frontend: {text[:_SHOWN_LENGTH]}"
    return ""


_CHECKS: dict[str, Callable[[Resource, Needs], str]] = {
    "amounts": _check_amounts,
    "place": _check_place,
    "tags": _check_tags,
    "identity": _check_identity,
    "limits": _check_limits,
    "start": _check_start,
}


def pilot_ad(
    resource: Resource, facts: Mapping[str, Any], published: Published = MappingProxyType({})
) -> classad2.ClassAd:
    """Ad of a pilot: its resources, under HTCondor's names where it has one, and its node's facts.

    `facts` are plain values that the pilot sent about its node (`hostname`, `python`, ...);
    `published` is what its checks have published.
    """
    system, _, machine = resource.platform.partition("-")
    values: dict[str, Any] = {
        **ad_values(published),
        **{f"Node{name.title().replace('_', '')}": value for name, value in facts.items()},
        "Site": resource.site,
        "Queue": resource.queue,
        "Setup": resource.setup,
        "Cpus": resource.cores,
        "Memory": resource.memory_mb,
        "Gpus": resource.gpus,
        "CpuTimeLeft": resource.cpu_time_s,
        "CpuPower": resource.cpu_power,
        "PilotType": resource.pilot_type,
        "Middleware": resource.middleware,
        "Tags": list(resource.tags),
    }
    # Undefined as long as the node is not known.
    if "hostname" in facts:
        values["Machine"] = str(facts["hostname"])
    if resource.platform:
        values |= {
            "Platform": resource.platform,
            "OpSys": system.upper(),
            "Arch": machine.upper(),
        }
    return build_ad({}, values)


def needs_ad(needs: Needs) -> classad2.ClassAd:
    """Ad of jobs in the match with a pilot: what all jobs of a TaskQueue have in common."""
    return build_ad(
        {},
        {
            "Owner": needs.owner,
            "AccountingGroup": needs.owner_group,
            "RequestCpus": needs.cores,
            "RequestMemory": needs.memory_mb,
            "RequestGpus": needs.gpus,
            "CpuTime": needs.cpu_time_s,
            "JobType": needs.job_type,
        },
    )


#: All that the requirements of a job can refer to: of the pilot, and of the job itself.
PILOT_ATTRIBUTES = tuple(
    pilot_ad(Resource(site="", cpu_time_s=0, platform="-"), dict.fromkeys(NODE_FACTS, ""))
)
NEEDS_ATTRIBUTES = tuple(needs_ad(Needs(owner="")))
