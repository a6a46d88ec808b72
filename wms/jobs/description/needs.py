"""Reader of a job's needs (cores, memory, sites, tags, ...) in submit commands and +attributes.

A job with an image of a container needs a pilot that starts some. Also of its priority, of whole
numbers, and of amounts of memory and disk; the names that descriptions have for needs, and the most
different needs of one DAG or cluster. Attributes are ClassAd expressions, evaluated within a bound.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import classad2

from matching.ads.ad_cost import check_cost
from matching.ads.classads import AdError, build_ad, evaluate, parse_expression
from matching.negotiation.fairshare import parse_limits
from matching.task_queues.limit_words import limit_word
from matching.task_queues.needs import CONTAINER_TAG, BadNeeds, Needs
from matching.task_queues.weighted_draws import MAX_JOB_PRIORITY
from wms.jobs.description import container_images

#: The commands that say what a job needs.
COMMANDS = {
    "cores": "request_cpus",
    "memory_mb": "request_memory",
    "gpus": "request_gpus",
    "disk_mb": "request_disk",
    "limits": "concurrency_limits",
    "requirements": "requirements",
}
#: All commands that the needs are read from.
READ = (*COMMANDS.values(), *container_images.COMMANDS)
_LISTS = {
    "sites": "Sites",
    "banned_sites": "BannedSites",
    "queues": "Queues",
    "platforms": "Platforms",
    "pilot_types": "PilotTypes",
    "submit_pools": "SubmitPools",
    "middlewares": "Middlewares",
    "tags": "Tags",
}
_TEXTS = {"setup": "Setup", "job_type": "JobType"}
_NUMBERS = {"max_cores": "MaxCpus", "cpu_time_s": "CPUTimeSeconds"}
#: The attributes that do, as `+Name`, in any case.
ATTRIBUTES = {**_LISTS, **_TEXTS, **_NUMBERS}
_ATTRIBUTE_NAMES = frozenset(name.lower() for name in ATTRIBUTES.values())

_MEMORY = re.compile(
    r"\+?([0-9]{1,15}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})\s*(?:([KMGT])B?)?\Z", re.IGNORECASE
)
_MB_PER_UNIT = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2}
_INTEGER = re.compile(r"-?[0-9]{1,18}")
_NOTHING = build_ad({})
#: What an attribute may cost to evaluate, in the steps of `adcost`: too little for a pattern. Its
#: text is no longer than that either.
_MOST_STEPS = 8 * 1024
_EVALUATED = "PilotNeed"
#: Different needs of a DAG's nodes: each makes a TaskQueue.
MAX_DIFFERENT_NEEDS = 10_000
#: Needs are remembered by what was written, if that is not longer altogether.
_LONGEST_REMEMBERED = 16 * 1024


def is_need(attribute: str) -> bool:
    """Whether an attribute of this name is one of the job's needs."""
    return attribute.lower() in _ATTRIBUTE_NAMES


def read_needs(
    commands: Mapping[str, str],
    attributes: Mapping[str, str],
    *,
    owner: str,
    group: str,
    segments_s: Sequence[int],
) -> Needs:
    """Needs from these commands and attributes, whose macros are expanded.

    Raises BadNeeds, whose message and `fields` have the names that the description uses.
    """
    given = {name: commands[name] for name in READ if name in commands}
    named = {name.lower(): text for name, text in attributes.items() if is_need(name)}
    written = sum(map(len, [*given.values(), *named.values()]))
    read = _read_again if written <= _LONGEST_REMEMBERED else _read
    return read(tuple(given.items()), tuple(sorted(named.items())), owner, group, tuple(segments_s))


def _read(
    commands: tuple[tuple[str, str], ...],
    attributes: tuple[tuple[str, str], ...],
    owner: str,
    group: str,
    segments_s: tuple[int, ...],
) -> Needs:
    try:
        values = _values(dict(commands), dict(attributes))
        if container_images.has_image(dict(commands)):
            values["tags"] = [*values.get("tags", ()), CONTAINER_TAG]
        return Needs.of(owner, owner_group=group, segments_s=segments_s, **values)
    except BadNeeds as error:
        raise _as_written(error) from error


def _as_written(error: BadNeeds) -> BadNeeds:
    """The fault with the names that the description uses."""
    names = [written_name(name) for name in error.fields]
    message = str(error)
    if not message.startswith(tuple(names)):
        message = f"{' and '.join(names)}: {message}"
    return BadNeeds(message, *names, others=[_as_written(each) for each in error.others])


# A DAG has thousands of nodes that need the same.
_read_again = lru_cache(maxsize=1024)(_read)


def written_name(field: str) -> str:
    """Name of a field of the needs in submit descriptions: a command, or `+Name`."""
    return COMMANDS.get(field) or f"+{ATTRIBUTES.get(field, field)}"


def _values(commands: Mapping[str, str], attributes: Mapping[str, str]) -> dict[str, Any]:
    """Values of all needs. Raises BadNeeds with every fault of a single one."""
    values: dict[str, Any] = {}
    faults: list[BadNeeds] = []
    for field, read in (
        _readers_of_commands(commands) | _readers_of_attributes(attributes)
    ).items():
        try:
            values[field] = read()
        except BadNeeds as error:
            faults.append(error)
    if faults:
        raise BadNeeds(str(faults[0]), *faults[0].fields, others=faults[1:])
    return values


def _readers_of_commands(commands: Mapping[str, str]) -> dict[str, Callable[[], Any]]:
    def text(field: str, default: str = "") -> str:
        return commands.get(COMMANDS[field], default)

    return {
        "cores": lambda: whole(commands, COMMANDS["cores"], 1, field="cores"),
        "memory_mb": lambda: parse_memory_mb(text("memory_mb", "0")),
        "gpus": lambda: whole(commands, COMMANDS["gpus"], 0, field="gpus"),
        "disk_mb": lambda: parse_disk_mb(text("disk_mb", "0")),
        "requirements": lambda: text("requirements"),
        "limits": lambda: _limits(text("limits")),
    }


def _limits(text: str) -> list[str]:
    """Concurrency limits as words, each with its amount where that is not 1. Raises BadNeeds."""
    try:
        amounts = parse_limits(text)
    except ValueError as error:
        raise BadNeeds(str(error), "limits") from error
    return [limit_word(name, amount) for name, amount in amounts.items()]


def _readers_of_attributes(attributes: Mapping[str, str]) -> dict[str, Callable[[], Any]]:
    """Readers of those attributes that are given."""
    readers: dict[str, Callable[[], Any]] = {}
    for names, read in ((_LISTS, _words), (_TEXTS, _text), (_NUMBERS, _number)):
        for field, name in names.items():
            if name.lower() in attributes:
                readers[field] = partial(read, field, attributes[name.lower()])
    return readers


def _value(field: str, text: str) -> Any:
    """Value of an attribute: a ClassAd expression without references."""
    if len(text) > _MOST_STEPS:
        raise BadNeeds(f"+{ATTRIBUTES[field]} has more than {_MOST_STEPS} characters", field)
    try:
        return _evaluated(text)
    except AdError as error:
        raise BadNeeds(error.message.removeprefix(f"{_EVALUATED}: "), field) from error


# Where nodes differ in one need, they have the others in common.
@lru_cache(maxsize=256)
def _evaluated(text: str) -> Any:
    check_cost({_EVALUATED: text}, most_steps=_MOST_STEPS)
    return evaluate(parse_expression(text), _NOTHING)


def _words(field: str, text: str) -> list[str]:
    value = _value(field, text)
    words = value.split(",") if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise BadNeeds(
            f'+{ATTRIBUTES[field]} must be words in quotes, as in "a, b" or {{"a", "b"}}, '
            f"not {text[:80]}",
            field,
        )
    return words


def _text(field: str, text: str) -> str:
    value = _value(field, text)
    if not isinstance(value, str):
        raise BadNeeds(f"+{ATTRIBUTES[field]} must be a text in quotes, not {text[:80]}", field)
    return value


def _number(field: str, text: str) -> int:
    value = _value(field, text)
    if not isinstance(value, int) or isinstance(value, bool | classad2.Value):
        raise BadNeeds(f"+{ATTRIBUTES[field]} is not a whole number: {text[:80]}", field)
    return value


def read_priority(commands: Mapping[str, str]) -> int:
    """Priority of the job among its owner's, limited to the allowed range. Raises BadNeeds.

    HTCondor takes any number.
    """
    text = commands.get("priority", "").strip() or "1"
    if not _INTEGER.fullmatch(text):
        raise BadNeeds(f"priority is not a whole number: {text[:80]}", "priority")
    return min(max(int(text), 0), MAX_JOB_PRIORITY)


def whole(commands: Mapping[str, str], name: str, default: int, *, field: str = "") -> int:
    """Whole number of a command. Raises BadNeeds, which names `field`."""
    text = commands.get(name, "").strip() or str(default)
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise BadNeeds(f"{name} is not a whole number: {text[:80]}", field or name)
    return int(text)


def parse_memory_mb(text: str) -> int:
    """`request_memory` in MB, rounded up; the default unit is MB. Raises BadNeeds."""
    amount = _MEMORY.match(text.strip() or "0")
    if amount is None:
        raise BadNeeds(f"request_memory is not an amount of memory: {text[:80]}", "memory_mb")
    return math.ceil(float(amount[1]) * _MB_PER_UNIT[(amount[2] or "M").upper()])


def parse_disk_mb(text: str) -> int:
    """`request_disk` in MB, rounded up; the default unit is KB. Raises BadNeeds."""
    amount = _MEMORY.match(text.strip() or "0")
    if amount is None:
        raise BadNeeds(f"request_disk is not an amount of disk space: {text[:80]}", "disk_mb")
    return math.ceil(float(amount[1]) * _MB_PER_UNIT[(amount[2] or "K").upper()])
