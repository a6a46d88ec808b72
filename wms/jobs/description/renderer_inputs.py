"""Inputs of the renderer as values: commands in force, identity (owner, group), values of a site.

Also `CannotRender`, the error that no job can be made of a description, with the names at fault.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from matching.descriptions.substitution import Evaluator, OwnAttributes
from matching.task_queues.needs import CPU_SEGMENTS_S
from wms.core.errors import PilotageError

#: From a command's text to the one that RETRY changes it to.
Change: TypeAlias = Callable[[str], str]
_WITHOUT_ADS = Evaluator({}, {}, {})


class CannotRender(PilotageError):
    """No job can be made of this node; the message names the faulty value.

    `names` are the commands and attributes at fault, where they are known. `others` are further
    faults of the same description, `fields` what could be read of the job in spite of them.
    """

    def __init__(
        self,
        message: str,
        *names: str,
        others: Sequence[CannotRender] = (),
        fields: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.names = names
        self.others = tuple(others)
        self.fields = fields or {}

    @property
    def all(self) -> tuple[CannotRender, ...]:
        """This fault and the others, each message once."""
        return tuple({str(each): each for each in (self, *self.others)}.values())

    @classmethod
    def together(
        cls, faults: Sequence[CannotRender], fields: Mapping[str, Any] | None = None
    ) -> CannotRender:
        """The first of these faults, with the others."""
        every = [each for fault in faults for each in fault.all]
        return cls(str(every[0]), *every[0].names, others=every[1:], fields=fields)


@dataclass(frozen=True, slots=True)
class Identity:
    """Owner, group and batch name of the jobs, and the CPU time segments in force."""

    owner: str
    group: str = ""
    cpu_segments_s: Sequence[int] = CPU_SEGMENTS_S
    batch_name: str = ""


@dataclass(frozen=True, slots=True)
class SiteValues:
    """Values of the references `$ENV(...)` and `$$(...)` at the site of a DAG."""

    environment: Mapping[str, str] = field(default_factory=dict)
    match_attributes: Mapping[str, object] = field(default_factory=dict)
    evaluator: Callable[[str, OwnAttributes], str] = _WITHOUT_ADS


@dataclass(frozen=True, slots=True)
class CommandSet:
    """Commands and attributes that hold at one queue statement, before they are compiled.

    `outer` are commands whose texts come with the node and override the description. `changes` are
    applied to commands after their macros are expanded. `faulty` are commands and `+attributes`, in
    lower case, whose faults are told already.
    """

    commands: Mapping[str, str]
    attributes: Mapping[str, str]
    outer: frozenset[str] = frozenset()
    changes: Mapping[str, Change] = field(default_factory=dict)
    faulty: frozenset[str] = frozenset()
