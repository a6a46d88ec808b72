"""Settings of node checks at a queue (its `checks`), read and validated.

Each fault has its place. The same is read when a queue is configured and when its pilots are
submitted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from wms.core.errors import InvalidInput
from wms.pilots.agent.checks import BUILT_IN
from wms.pilots.agent.checks.publication import TEXT_LENGTH
from wms.pilots.program.checks import MOST_SETTINGS_BYTES
from wms.pilots.program.declarations import checks_meant_for
from wms.sites.models import Queue

_MOST_S = 86_400
_MOST_SCRATCH_MB = 4096
#: Of CPU time: each pilot spends it before its first job.
_MOST_BENCHMARK_S = 30
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*")
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:\[\]]+):[0-9]{1,5}")

#: Kind of a value: its description, and its test.
_Kind = tuple[str, Callable[[Any], bool]]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_list_of(is_one: Callable[[str], object]) -> Callable[[Any], bool]:
    def holds(value: Any) -> bool:
        return isinstance(value, list) and all(
            isinstance(each, str) and is_one(each) for each in value
        )

    return holds


_AMOUNT: _Kind = ("a number from 0 on", lambda value: _is_number(value) and value >= 0)
_SECONDS: _Kind = (
    "a number above 0 and up to a day", lambda value: _is_number(value) and 0 < value <= _MOST_S
)  # fmt: skip
_WHOLE: _Kind = (
    f"a whole number from 1 to {_MOST_SCRATCH_MB}",
    lambda value: type(value) is int and 1 <= value <= _MOST_SCRATCH_MB,
)
_BENCHMARK_S: _Kind = (
    f"a number above 0 and up to {_MOST_BENCHMARK_S}",
    lambda value: _is_number(value) and 0 < value <= _MOST_BENCHMARK_S,
)
_PATHS: _Kind = ("a list of absolute paths", _is_list_of(lambda path: path.startswith("/")))
_ADDRESSES: _Kind = ("a list of addresses, each HOST:PORT", _is_list_of(_ADDRESS.fullmatch))
_WORDS: _Kind = ("a list of words", _is_list_of(str.strip))
_PATH: _Kind = ("an absolute path", lambda value: isinstance(value, str) and value.startswith("/"))
_REPOSITORIES: _Kind = (
    f"a list of names of repositories, {TEXT_LENGTH} characters together at most",
    lambda value: _is_list_of(_REPOSITORY.fullmatch)(value) and len(",".join(value)) <= TEXT_LENGTH,
)
#: The settings that each built-in check reads; it would fail on others, or pass over them.
_SETTINGS: Mapping[str, Mapping[str, _Kind]] = {
    "disk": {"least_mb": _AMOUNT},
    "memory": {"least_mb": _AMOUNT},
    "clock": {"most_skew_s": _AMOUNT},
    "cpus": {"least": _AMOUNT},
    "platform": {"platforms": _WORDS},
    "software": {"directories": _PATHS},
    "network": {"addresses": _ADDRESSES},
    "scratch": {"size_mb": _WHOLE},
    "apptainer": {},
    "cvmfs": {"repositories": _REPOSITORIES, "root": _PATH},
    "gpu": {},
    "benchmark": {"seconds": _BENCHMARK_S},
}


def check_queue_checks(queue: Queue) -> None:
    """Raise InvalidInput where the queue's settings of node checks are wrong."""
    read_entries(queue)


def read_entries(queue: Queue) -> dict[str, dict[str, Any]]:
    """Entries of the queue's `checks` by their names, those that are switched off included.

    Raises InvalidInput with the place of the fault.
    """
    added = list(checks_meant_for(queue).values_list("name", flat=True)) if queue.checks else []
    entries: dict[str, dict[str, Any]] = {}
    for position, entry in enumerate(queue.checks):
        place = f"checks[{position}]"
        name = entry.get("name")
        if name not in {*BUILT_IN, *added}:
            raise _fault(f"{place}.name: {_unknown(name, queue, added)}")
        entries[name] = {key: value for key, value in entry.items() if key != "name"}
        # An added check goes in front of the built-in one of its name, and knows its settings.
        known = None if name in added else _SETTINGS[name]
        _check_entry(f"{place} ({name})", entries[name], known)
    return entries


def _unknown(name: object, queue: Queue, added: Collection[str]) -> str:
    known = ", ".join([*BUILT_IN, *sorted(added)])
    return f"there is no check {name} for {queue}; there are {known}"


def _check_entry(
    place: str, entry: Mapping[str, Any], known_settings: Mapping[str, _Kind] | None
) -> None:
    _check_values(
        place, entry, {"settings": ("", bool), "time_limit_s": _SECONDS, "period_s": _SECONDS}
    )
    settings = entry.get("settings", {})
    if not isinstance(settings, dict):
        raise _fault(f"{place}.settings: must be an object")
    if len(json.dumps(settings)) > MOST_SETTINGS_BYTES:
        raise _fault(f"{place}.settings: has more than {MOST_SETTINGS_BYTES} bytes")
    if known_settings is not None:
        _check_values(f"{place}.settings", settings, known_settings)


def _check_values(place: str, values: Mapping[str, Any], known: Mapping[str, _Kind]) -> None:
    for key, value in values.items():
        if key not in known:
            raise _fault(f"{place}.{key}: is unknown; there are {', '.join(known) or 'none'}")
        what, holds = known[key]
        if what and not holds(value):
            raise _fault(f"{place}.{key}: must be {what}")


def _fault(message: str) -> InvalidInput:
    return InvalidInput.of(message, field="checks")
