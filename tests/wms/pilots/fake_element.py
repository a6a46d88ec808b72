"""Fake element in memory: a batch system that does exactly what a test tells it to."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from wms.elements.protocol import BatchState, Capacity, PilotState, Refused, Unreachable


class FakeElement:
    """Implements the `Element` protocol; `fail_with` makes every call raise."""

    def __init__(self, slots: int = 100, *, can_queue: bool = True) -> None:
        self.slots = slots
        self.can_queue = can_queue
        self.scripts: dict[str, str] = {}
        self.secrets: dict[str, list[str]] = {}
        self.states: dict[str, PilotState] = {}
        self.forgotten: set[str] = set()
        self.logs: dict[str, str] = {}
        self.fail_with: Exception | None = None
        self.loses_answer = False
        self.refuses_pilots = ""
        self.calls: list[str] = []
        self.slots_asked: list[tuple[int, int, int]] = []

    def _enter(self, call: str) -> None:
        self.calls.append(call)
        if self.fail_with is not None:
            raise self.fail_with

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
        self._enter("submit")
        self.slots_asked.append((cores, memory_mb, gpus))
        if self.refuses_pilots:
            raise Refused(self.refuses_pilots)
        self.scripts[name] = script
        self.secrets[name] = list(secrets)
        ids = [f"{name}.{index}" for index in range(count)]
        self.states |= {pilot: PilotState(BatchState.QUEUED) for pilot in ids}
        if self.loses_answer:
            raise Unreachable("the answer was lost")
        return ids

    def adopt(self, name: str) -> list[str]:
        self._enter("adopt")
        return sorted(pilot for pilot in self.states if pilot.startswith(f"{name}."))

    def status(self, ids: Collection[str]) -> dict[str, PilotState]:
        self._enter("status")
        return {i: self.states.get(i, PilotState(BatchState.MISSING)) for i in ids}

    def cancel(self, ids: Collection[str]) -> None:
        self._enter("cancel")
        self.states |= {i: PilotState(BatchState.CANCELLED) for i in ids if i in self.states}

    def capacity(self) -> Capacity:
        self._enter("capacity")
        used = len(self.states)
        return Capacity(
            is_up=True,
            total=self.slots,
            free=self.slots - used,
            queued=used,
            running=0,
            can_queue=self.can_queue,
        )

    def log(self, pilot_id: str, tail_bytes: int = 65536) -> str:
        self._enter("log")
        return self.logs.get(pilot_id, "")

    def forget(self, ids: Collection[str]) -> None:
        self._enter("forget")
        self.forgotten |= set(ids)
