"""The needs of jobs in words: in short for lists, and one by one for the pages of one thing."""

from __future__ import annotations

from dataclasses import dataclass

from matching.needs import Needs
from portal.web.templatetags.pilotage import span


@dataclass(frozen=True, slots=True)
class Fact:
    """One need with its name; a long text has a line of its own, an expression is code."""

    label: str
    text: str
    is_broad: bool = False
    is_code: bool = False


def cores_of(needs: Needs) -> str:
    """How many cores: the least, and the most where that is more."""
    if needs.max_cores > needs.cores:
        return f"{needs.cores} to {needs.max_cores} cores"
    return f"{needs.cores} core{'' if needs.cores == 1 else 's'}"


def words_of(needs: Needs) -> str:
    """The needs in a line, without whose they are; the parts that ask for something only."""
    lists = (
        ("at", needs.sites),
        ("not at", needs.banned_sites),
        ("in", needs.queues),
        ("on", needs.platforms),
        ("tags", needs.tags),
        ("pilots", needs.pilot_types),
        ("pools", needs.submit_pools),
        ("sent by", needs.middlewares),
    )
    parts = [
        cores_of(needs),
        f"{needs.memory_mb} MB" if needs.memory_mb else "",
        f"{needs.gpus} GPU{'' if needs.gpus == 1 else 's'}" if needs.gpus else "",
        f"{span(needs.cpu_time_s)} of CPU",
        needs.job_type and f"type {needs.job_type}",
        needs.setup and f"setup {needs.setup}",
        *(f"{word} {_some(values)}" for word, values in lists if values),
        needs.requirements and f"where {needs.requirements}",
    ]
    return ", ".join(filter(None, parts))


def _some(values: tuple[str, ...]) -> str:
    """The first of a list; how many more there are."""
    shown = " or ".join(values[:3]) if len(values) <= 3 else " ".join(values[:2])
    return shown if len(values) <= 3 else f"{shown} and {len(values) - 2} more"


def facts_of(needs: Needs) -> list[Fact]:
    """All needs, those that ask for nothing left out, except the usual ones."""
    usual = [
        Fact("Cores", cores_of(needs).removesuffix(" cores").removesuffix(" core")),
        Fact("Memory", f"{needs.memory_mb} MB" if needs.memory_mb else "any"),
        Fact("CPU time", f"up to {span(needs.cpu_time_s)}"),
        Fact("Sites", ", ".join(needs.sites) or "any"),
        Fact("Platforms", ", ".join(needs.platforms) or "any"),
    ]
    special = [
        Fact("GPUs", str(needs.gpus or "")),
        Fact("Not at", ", ".join(needs.banned_sites)),
        Fact("Queues", ", ".join(needs.queues)),
        Fact("Tags", ", ".join(needs.tags)),
        Fact("Job type", needs.job_type),
        Fact("Setup", needs.setup),
        Fact("Pilots", ", ".join(needs.pilot_types)),
        Fact("Submit pools", ", ".join(needs.submit_pools)),
        Fact("Pilots sent by", ", ".join(needs.middlewares)),
        Fact("Requirements", needs.requirements, is_broad=True, is_code=True),
    ]
    return usual + [fact for fact in special if fact.text]
