"""Needs of a job (cores, memory, site, tags, ...), checked; jobs with equal ones share a TaskQueue.

Also the largest amounts that are allowed, the CPU segments into which CPU times are rounded up,
and the tag of pilots that start containers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from matching.ads.ad_cost import check_cost
from matching.ads.classads import AdError, canonical_text, parse_expression
from matching.task_queues.impossible_requirements import never_true

#: Upper ends of the CPU time segments in seconds (DIRAC TaskQueue matching, 2009).
CPU_SEGMENTS_S = (500, 5_000, 50_000, 300_000)

#: The tag of pilots that start containers; a job with an image carries it.
CONTAINER_TAG = "apptainer"

#: The largest number of each kind that is believed.
MOST = {
    "cpu_time_s": 2**31 - 1,
    "cores": 100_000,
    "max_cores": 100_000,
    "memory_mb": 2**30,
    "gpus": 10_000,
    "disk_mb": 2**30,
}
_LISTS = (
    "sites", "banned_sites", "queues", "platforms", "pilot_types", "submit_pools", "middlewares",
    "tags", "limits",
)  # fmt: skip
#: Of all lists together: every claim may look at them.
_MOST_WORDS = 100
_LONGEST_WORD = 64
#: A queue is named with its site.
_LONGEST_QUEUE = 2 * _LONGEST_WORD + 1
_LONGEST_EXPRESSION = 4000
#: What requirements may cost to evaluate, as every claim may do: in the steps of `adcost`. Too
#: little for a pattern.
_MOST_STEPS = 8 * 1024
#: What a resource can say of itself as its kind.
PILOT_TYPES = ("generic", "private")


class BadNeeds(ValueError):
    """Contradictory or invalid needs; `fields` has the faults by name.

    `others` are further faults of the same needs.
    """

    def __init__(self, message: str, *fields: str, others: Sequence[BadNeeds] = ()) -> None:
        super().__init__(message)
        self.fields = fields
        self.others = tuple(others)


def cpu_segment(cpu_time_s: float, segments_s: Sequence[int] = CPU_SEGMENTS_S) -> int:
    """Smallest segment that holds `cpu_time_s`; a longer time gets the last segment."""
    return next((end for end in segments_s if cpu_time_s <= end), segments_s[-1])


def _words(name: str, values: Iterable[str]) -> tuple[str, ...]:
    words = tuple(sorted({value.strip() for value in values if value.strip()}))
    longest = _LONGEST_QUEUE if name in {"queues", "limits"} else _LONGEST_WORD
    if any(len(word) > longest for word in words):
        raise BadNeeds(f"{name} has an entry of more than {longest} characters", name)
    if not all(word.isprintable() for word in words):
        raise BadNeeds(f"{name} has an entry with control characters", name)
    return words


@dataclass(frozen=True, slots=True)
class Needs:
    """Needs of a job. An empty list or text is no condition.

    `queues` are named `SITE/QUEUE`. `max_cores` is what the job can make use of, at least `cores`.
    `submit_pools` and `middlewares` limit where pilots are sent, not which pilot may claim the job.
    `requirements` is a ClassAd expression over the pilot's ad. `disk_mb` is free space in its
    directory. `limits` are concurrency limits that it uses, as `name` or `name:amount`.
    """

    owner: str
    owner_group: str = ""
    setup: str = ""
    cpu_time_s: int = CPU_SEGMENTS_S[0]
    cores: int = 1
    max_cores: int = 1
    memory_mb: int = 0
    gpus: int = 0
    sites: tuple[str, ...] = ()
    banned_sites: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()
    pilot_types: tuple[str, ...] = ()
    submit_pools: tuple[str, ...] = ()
    middlewares: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    job_type: str = ""
    requirements: str = ""
    disk_mb: int = 0
    limits: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        owner: str,
        *,
        cpu_time_s: float = CPU_SEGMENTS_S[0],
        cores: int = 1,
        max_cores: int | None = None,
        segments_s: Sequence[int] = CPU_SEGMENTS_S,
        **others: Any,
    ) -> Needs:
        """Normalised needs: lists sorted without repetition, CPU time rounded up to its segment.

        Raises BadNeeds, with the fields' names, for a contradiction or an absurd value.
        """
        numbers = {
            "cpu_time_s": cpu_time_s,
            "cores": cores,
            "max_cores": cores if max_cores is None else max_cores,
            **{name: others.pop(name, 0) for name in ("memory_mb", "gpus", "disk_mb")},
        }
        _check_numbers(numbers)
        lists = {name: _words(name, others.pop(name, ())) for name in _LISTS}
        _check_lists(lists)
        texts = {name: _text(name, value) for name, value in others.items()}
        if texts.get("requirements"):
            texts["requirements"] = _checked_requirements(texts["requirements"])
        numbers["cpu_time_s"] = cpu_segment(cpu_time_s, segments_s)
        return cls(owner=owner, **numbers, **lists, **texts)  # type: ignore[arg-type]

    def as_dict(self) -> dict[str, Any]:
        """Needs as JSON values, in a fixed order."""
        return {
            name: list(getattr(self, name)) if name in _LISTS else getattr(self, name)
            for name in self.__slots__
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Needs:
        """Needs from the values of `as_dict`; missing names get their defaults."""
        known = {name: tuple(value) if name in _LISTS else value for name, value in values.items()}
        return cls(**{"max_cores": values.get("cores", 1), **known})

    def key(self) -> str:
        """SHA-256 of the canonical form: equal exactly for equal needs.

        Defaults are left out, so that a new kind of need changes no existing key.
        """
        given = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if getattr(self, field.name) != field.default
        }
        return hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()


def _check_numbers(numbers: Mapping[str, float]) -> None:
    for name, value in numbers.items():
        if name != "cpu_time_s" and type(value) is not int:
            raise BadNeeds(f"{name} must be a whole number, not {value}", name)
        least = 1 if name in {"cores", "max_cores"} else 0
        if not least <= value <= MOST[name]:
            raise BadNeeds(f"{name} must be from {least} to {MOST[name]}, not {value}", name)
    if numbers["cores"] > numbers["max_cores"]:
        raise BadNeeds(
            f"cores ({numbers['cores']}) is more than max_cores ({numbers['max_cores']})",
            "cores",
            "max_cores",
        )


def _check_lists(lists: Mapping[str, tuple[str, ...]]) -> None:
    if sum(map(len, lists.values())) > _MOST_WORDS:
        longest = max(lists, key=lambda name: len(lists[name]))
        message = f"all lists together have more than {_MOST_WORDS} entries, most of them {longest}"
        raise BadNeeds(message, longest)
    both = sorted(set(lists["sites"]) & set(lists["banned_sites"]))
    if both:
        raise BadNeeds(
            f"sites and banned_sites contradict each other: both name {', '.join(both)}",
            "sites",
            "banned_sites",
        )
    unknown = sorted(set(lists["pilot_types"]) - set(PILOT_TYPES))
    if unknown:
        raise BadNeeds(
            f"pilot_types: {', '.join(unknown)} is not one of {', '.join(PILOT_TYPES)}",
            "pilot_types",
        )
    _check_queues(lists)


def _check_queues(lists: Mapping[str, tuple[str, ...]]) -> None:
    """Refuse queues that are all at banned sites."""
    at = {queue.partition("/")[0] for queue in lists["queues"] if "/" in queue}
    if not at or any("/" not in queue for queue in lists["queues"]):
        return
    if lists["sites"] and not at & set(lists["sites"]):
        raise BadNeeds("queues names only queues of sites that are not in sites", "queues", "sites")
    if at <= set(lists["banned_sites"]):
        raise BadNeeds(
            "queues names only queues of sites in banned_sites", "queues", "banned_sites"
        )


def _text(name: str, value: str) -> str:
    text = value.strip()
    longest = _LONGEST_EXPRESSION if name == "requirements" else _LONGEST_WORD
    if len(text) > longest:
        raise BadNeeds(f"{name} has more than {longest} characters", name)
    # An expression may have line ends; no text may have halves of surrogate pairs.
    if not (" ".join(text.split()) if name == "requirements" else text).isprintable():
        raise BadNeeds(f"{name} has control characters", name)
    return text


def _checked_requirements(text: str) -> str:
    """Requirements as the library prints them, so that equal expressions are equal texts."""
    try:
        parse_expression(text)
        check_cost({"PilotRequirements": text}, most_steps=_MOST_STEPS)
    except AdError as error:
        hint = "; instead of regexp use ==, member or substr" if "regexp" in text.lower() else ""
        raise BadNeeds(f"requirements: {error.message}{hint}", "requirements") from error
    fault = never_true(text, {})
    if fault:
        raise BadNeeds(f"requirements can never be true: {fault}", "requirements")
    return canonical_text(text)
