"""Share of the node that a pilot has, and what jobs leave of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from wms.pilots.agent import node
from wms.pilots.agent.control import Control
from wms.pilots.agent.node import Share


def test_the_slot_is_what_the_batch_system_gave(tmp_path: Path) -> None:
    given = {
        "PILOTAGE_CORES": "8",
        "PILOTAGE_MEMORY_MB": "16000",
        "PILOTAGE_GPUS": "2",
        "PILOTAGE_DISK_MB": "9",
    }

    assert node.slot(given, tmp_path) == Share(8, 16_000, 2, 9)


@pytest.mark.parametrize("given", [{}, {"PILOTAGE_CORES": "many", "PILOTAGE_GPUS": "-1"}])
def test_without_a_slot_the_node_is_the_pilots_apart_from_its_gpus(
    given: dict[str, str], tmp_path: Path
) -> None:
    slot = node.slot(given, tmp_path)

    assert replace(slot, disk_mb=0) == Share(node.usable_cores(), node.total_memory_mb(), 0)
    assert slot.disk_mb > 0


def test_what_jobs_hold_is_not_free() -> None:
    slot = Share(4, 4000, 1, 500)

    assert slot.minus([]) == slot
    assert slot.minus([Share(1, 0, 0, 400), Share(2, 3000, 1)]) == Share(1, 1000, 0, 100)
    assert slot.minus([Share(9, 9000, 9)]) == Share(0, 0, 0, 500)


def test_every_attempt_at_hand_has_a_bell_and_hears_of_every_wish() -> None:
    control = Control()
    wakers = [control.add_attempt((1, 1)), control.add_attempt((2, 1))]
    assert control.attempts() == [(1, 1), (2, 1)]

    control.kill((1, 1))

    for waker in (*wakers, control.waker):
        # Without a ring it would wait for ever.
        waker.wait(None)


def test_the_main_thread_is_told_when_an_attempt_is_over() -> None:
    control = Control()
    control.add_attempt((1, 1))

    control.remove_attempt((1, 1))

    control.waker.wait(None)
    assert control.attempts() == []
