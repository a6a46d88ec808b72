"""Specification of a job to be submitted (`JobSpec`), and the values it shares with other jobs.

Also what of it is stored with the job, the JSON form and key (SHA-256) of what is stored once, and
the mark in its texts that stands for the number of its cluster.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import compress
from operator import attrgetter, is_not
from typing import Any

from matching.task_queues.needs import Needs
from wms.jobs.models.descriptions import DEFAULTS, MAPS, OF_ROW, base_of, own_entries

#: Stands in the texts of a job for the number of its cluster, which is known once it is stored.
CLUSTER_MARK = "\ue000"


@dataclass(frozen=True, slots=True, eq=False)
class SharedValues:
    """Values that many jobs have in common, as they are stored; see `JobDescription`.

    `given` are the values from which they were made, those of all names of a description in their
    order: jobs have the same objects.
    """

    content: Mapping[str, Any]
    key: bytes
    given: tuple[Any, ...]

    @classmethod
    def of(cls, values: Mapping[str, Any], of_row: Mapping[str, str] | None = None) -> SharedValues:
        """From values of a `JobSpec` by name; `of_row` are attributes that jobs have from their
        rows, each with the column.
        """
        content = {
            name: stored
            for name, value in values.items()
            if (stored := stored_form(name, value)) != DEFAULTS[name]
        }
        if of_row:
            content[OF_ROW] = dict(of_row)
        given = tuple(values.get(name, unsaid) for name, unsaid in _UNSAID.items())
        return cls(content, key_of(content), given)


def stored_form(name: str, value: Any) -> Any:
    """A value of a `JobSpec` as JSON; of needs those that are not the defaults."""
    if isinstance(value, Needs):
        return own_entries(base_of({}, name), value.as_dict())
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


def key_of(content: Mapping[str, Any]) -> bytes:
    """The key under which this content is looked for: SHA-256 of its canonical form."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).digest()


@dataclass(frozen=True, slots=True)
class JobSpec:
    """A job to be submitted. Its files have their names in the job's directory, the executable in
    the whole workspace. With `mentions_cluster` CLUSTER_MARK stands for the cluster's number in
    its texts.

    `max_retries` is how often a payload that failed is run again. `periodic` are the expressions
    that decide about the job while it is in the queue and when it ends; see `wms.jobs.expressions`.
    `directives` are those of `wms.jobs.directives`, as they are stored. `avoided_hosts` have failed
    another job that did the same. `late` is what its claim fills in, and the `scope` whose sites it
    may run at; see `wms.jobs.binding`. `shared` is what it is known to have in common with other
    jobs: these values are stored once, and with the job those that differ. Without it the whole of
    the job is looked for among what is stored.
    """

    name: str
    executable: str
    needs: Needs
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    input_files: tuple[str, ...] = ()
    output_files: tuple[str, ...] = ()
    stdout_name: str = ""
    stderr_name: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    wall_limit_s: int = 86_400
    max_attempts: int = 5
    priority: int = 1
    max_retries: int = 0
    periodic: Mapping[str, str] | None = None
    directives: Mapping[str, Any] | None = None
    directory: str = ""
    mentions_cluster: bool = False
    avoided_hosts: tuple[str, ...] = ()
    late: Mapping[str, Any] | None = None
    shared: SharedValues | None = field(default=None, compare=False, repr=False)

    def described(self) -> dict[str, Any]:
        """The values that a description may have, by name."""
        return {name: getattr(self, name) for name in DEFAULTS}

    def own_values(self, shared: SharedValues) -> dict[str, Any]:
        """The values that differ from the shared ones, as they are stored."""
        own: dict[str, Any] = {}
        # The rest is of few jobs: what is the same object is passed over at the speed of C.
        others = map(is_not, _described(self), shared.given)
        for name, given in compress(zip(_UNSAID, shared.given, strict=True), others):
            value = getattr(self, name)
            if name not in MAPS and value == given:
                continue
            stored = stored_form(name, value)
            if name in MAPS:
                if name == "needs":
                    stored = value.as_dict()
                stored = own_entries(base_of(shared.content, name), stored)
                if name == "attributes":
                    stored = _without_those_of_row(stored, shared)
                if not stored:
                    continue
            own[name] = stored
        return own


#: What a specification has where it says nothing; its needs it always says.
_UNSAID: Mapping[str, Any] = {
    name: None if name == "needs" else tuple(value) if isinstance(value, list) else value
    for name, value in DEFAULTS.items()
}


#: The values of a specification that a description may have, in the same order.
_described: Callable[[JobSpec], tuple[Any, ...]] = attrgetter(*_UNSAID)


def different_needs(specs: Iterable[JobSpec]) -> list[Needs]:
    """The different needs of jobs, each once; most jobs of a list have the same object."""
    objects = {id(spec.needs): spec.needs for spec in specs}
    return list(dict.fromkeys(objects.values()))


def _without_those_of_row(own: dict[str, Any], shared: SharedValues) -> dict[str, Any]:
    of_row = shared.content.get(OF_ROW) or {}
    return {name: value for name, value in own.items() if name not in of_row}
