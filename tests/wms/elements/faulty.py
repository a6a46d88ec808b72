"""Faults of batch systems, injected around real adapters and around what runs their commands."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from enum import StrEnum, auto
from typing import TypeVar

from wms.elements.protocol import (
    BatchState,
    Capacity,
    Element,
    PilotState,
    Refused,
    Unreachable,
)
from wms.elements.runner import TIMEOUT_S, CommandRunner, Completed

T = TypeVar("T")

#: Ids that a batch system may name though nobody asked for them.
ALIEN_IDS = ("31337_0", "somebody-else.0")


class Fault(StrEnum):
    """What goes wrong."""

    #: No answer within the time; nothing was done.
    TIMEOUT = auto()
    #: The batch system says no.
    REFUSED = auto()
    #: What was asked is done, and the answer does not arrive.
    LOST = auto()
    #: The answer comes late: after `delay_s`.
    SLOW = auto()
    #: Some of the lines, or states, are missing at the end.
    TRUNCATED = auto()
    #: The answer ends in the middle of a line.
    PARTIAL = auto()
    #: A lie: everything is well, and there is nothing.
    EMPTY = auto()
    #: The answer of the time before, whatever has happened since.
    STALE = auto()
    #: The answer also names pilots of somebody else.
    ALIEN = auto()


@dataclass
class FaultyElement:
    """An adapter that shows `fault` in the methods `methods` (all where it is empty).

    `fault` may be changed at any time, None is none. `calls` has the names of the methods called.
    What a truncated or empty answer hides is MISSING in `status`, as with an adapter that believes
    it.
    """

    inner: Element
    fault: Fault | None = None
    methods: frozenset[str] = frozenset()
    delay_s: float = 0.0
    calls: list[str] = field(default_factory=list)
    _before: dict[str, PilotState] = field(default_factory=dict)

    def submit(
        self,
        count: int,
        script: str,
        *,
        name: str,
        cores: int,
        memory_mb: int,
        gpus: int,
        minutes: int,
        secrets: Sequence[str] = (),
    ) -> list[str]:
        fault = self._begin("submit")
        ids = self.inner.submit(
            count,
            script,
            name=name,
            cores=cores,
            memory_mb=memory_mb,
            gpus=gpus,
            minutes=minutes,
            secrets=secrets,
        )
        return self._end(fault, ids)

    def adopt(self, name: str) -> list[str]:
        fault = self._begin("adopt")
        ids = self.inner.adopt(name)
        return self._end(fault, _some(ids) if fault in _HIDING else ids)

    def status(self, ids: Collection[str]) -> dict[str, PilotState]:
        fault = self._begin("status")
        missing = PilotState(BatchState.MISSING)
        if fault == Fault.STALE:
            return {each: self._before.get(each, missing) for each in ids}
        found = self.inner.status(ids)
        self._before |= found
        if fault == Fault.EMPTY:
            return dict.fromkeys(ids, missing)
        if fault in _HIDING:
            kept = _some(list(found))
            return {each: found[each] if each in kept else missing for each in found}
        if fault == Fault.ALIEN:
            return found | dict.fromkeys(ALIEN_IDS, PilotState(BatchState.RUNNING))
        return self._end(fault, found)

    def cancel(self, ids: Collection[str]) -> None:
        fault = self._begin("cancel")
        self._end(fault, self.inner.cancel(ids))

    def capacity(self) -> Capacity:
        fault = self._begin("capacity")
        if fault == Fault.EMPTY:
            return Capacity(is_up=True, total=0, free=0, queued=0, running=0)
        return self._end(fault, self.inner.capacity())

    def log(self, pilot_id: str, tail_bytes: int = 65536) -> str:
        fault = self._begin("log")
        if fault == Fault.EMPTY:
            return ""
        return self._end(fault, self.inner.log(pilot_id, tail_bytes))

    def forget(self, ids: Collection[str]) -> None:
        fault = self._begin("forget")
        self._end(fault, self.inner.forget(ids))

    def _begin(self, method: str) -> Fault | None:
        self.calls.append(method)
        if self.methods and method not in self.methods:
            return None
        if self.fault == Fault.SLOW:
            time.sleep(self.delay_s)
        _refuse(self.fault)
        return self.fault

    def _end(self, fault: Fault | None, answer: T) -> T:
        if fault == Fault.LOST:
            raise Unreachable("the answer was lost")
        return answer


@dataclass
class FaultyRunner:
    """A runner that shows `fault` in the commands one of whose arguments ends with `word`.

    It changes what the programs answer, so that an adapter has to notice.
    """

    inner: CommandRunner
    fault: Fault | None = None
    word: str = ""
    delay_s: float = 0.0
    _before: str = ""

    def run(
        self, argv: Sequence[str], *, stdin: str = "", timeout_s: float = TIMEOUT_S
    ) -> Completed:
        if self.fault is None or not any(each.endswith(self.word) for each in argv):
            return self.inner.run(argv, stdin=stdin, timeout_s=timeout_s)
        if self.fault == Fault.SLOW:
            argv = ["sh", "-c", f'sleep {self.delay_s:g}; exec "$@"', "sh", *argv]
        if self.fault == Fault.REFUSED:
            return Completed(1, "", "error: you may not do this")
        _refuse(self.fault)
        done = self.inner.run(argv, stdin=stdin, timeout_s=timeout_s)
        if self.fault == Fault.LOST:
            raise Unreachable("the answer was lost")
        return Completed(done.returncode, self._changed(done.stdout), done.stderr)

    def _changed(self, answer: str) -> str:
        lines = answer.splitlines(keepends=True)
        changed = {
            Fault.TRUNCATED: "".join(lines[: max(1, len(lines) // 2)]),
            Fault.PARTIAL: answer[: len(answer) // 2],
            Fault.EMPTY: "",
            Fault.STALE: self._before,
        }
        self._before = answer
        return changed.get(self.fault, answer) if self.fault else answer


_HIDING = {Fault.TRUNCATED, Fault.PARTIAL, Fault.EMPTY}


def _some(ids: list[str]) -> list[str]:
    return ids[: len(ids) // 2]


def _refuse(fault: Fault | None) -> None:
    if fault == Fault.TIMEOUT:
        raise Unreachable("no answer within the time")
    if fault == Fault.REFUSED:
        raise Refused("you may not do this")
