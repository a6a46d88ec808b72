"""Element (batch system adapter) of a remote factory: pilots as orders to another installation.

Orders go with the next exchange, whichever side calls, so nothing here waits for a network: what is
asked of it is stored, and what is known of it is what it told last. A pilot's id is its uuid. Of
the output of the batch system there is the end, of pilots that went wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from django.utils import timezone

from wms.elements.pilot_secrets import checked
from wms.elements.protocol import BatchState, Capacity, PilotState, Refused, Unreachable
from wms.elements.settings import Settings, SettingsReader
from wms.factories.orders import (
    FactorySilent,
    OrderRefused,
    Slot,
    ToldState,
    cancel_orders,
    entry_counts,
    forget_orders,
    order_pilots,
    ordered_ids,
    told_log,
    told_states,
)

_WORD = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"


def factory_element(settings: Settings) -> FactoryElement:
    """The adapter for a queue's settings: `factory`, its name, and `entry`, one of its queues."""
    reader = SettingsReader(settings, ("factory", "entry"))
    return FactoryElement(
        reader.text("factory", pattern=_WORD, what="the name of a remote factory"),
        reader.text("entry", pattern=f"{_WORD}/{_WORD}", what="an entry there, as SITE/QUEUE"),
    )


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except FactorySilent as error:
        raise Unreachable(str(error)) from error
    except OrderRefused as error:
        raise Refused(str(error)) from error


class FactoryElement:
    """One entry of a remote factory."""

    def __init__(self, factory: str, entry: str) -> None:
        self.factory = factory
        self.entry = entry

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
        slot = Slot(cores=cores, memory_mb=memory_mb, gpus=gpus, minutes=minutes)
        if len(secrets) != count:
            raise Refused("a factory knows each pilot by its secret")
        with _translated():
            return order_pilots(
                self.factory,
                self.entry,
                checked(secrets, count),
                name=name,
                script=script,
                slot=slot,
                now=timezone.now(),
            )

    def adopt(self, name: str) -> list[str]:
        return ordered_ids(name)

    def status(self, ids: Collection[str]) -> dict[str, PilotState]:
        with _translated():
            told = told_states(self.factory, ids, timezone.now())
        missing = PilotState(BatchState.MISSING)
        return {each: _as_told(told[each]) if each in told else missing for each in ids}

    def cancel(self, ids: Collection[str]) -> None:
        cancel_orders(self.factory, ids, timezone.now())

    def capacity(self) -> Capacity:
        with _translated():
            ad, waiting, running = entry_counts(self.factory, self.entry, timezone.now())
        total = int(ad.facts.get("max_pilots", 0))
        return Capacity(ad.is_open, total, max(total - running, 0), waiting, running)

    def log(self, pilot_id: str, tail_bytes: int = 65536) -> str:
        text = told_log(self.factory, pilot_id).encode()
        return text[-tail_bytes:].decode(errors="ignore") if tail_bytes > 0 else ""

    def forget(self, ids: Collection[str]) -> None:
        forget_orders(self.factory, ids)


def _as_told(told: ToldState) -> PilotState:
    return PilotState(
        BatchState(told.state.value), told.reason, node=told.node, exit_code=told.exit_code
    )
