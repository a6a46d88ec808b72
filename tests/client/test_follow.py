"""Command `follow`: the log of a real DAGMan, sent through outages, rotations, new beginnings."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.client.conftest import Portal, Ran
from tests.portal.cli.rotating import pack, rotate
from tests.wms.dags.files.samples import SAMPLES
from wms.dags.models import Dag, FollowedLog

Command = Callable[..., Ran]


@pytest.mark.slow
def test_a_log_is_sent_once_through_outages_rotations_and_new_beginnings(
    pilotage: Command, portal: Portal, own_place: Path, monkeypatch: Any
) -> None:
    run = Path(shutil.copytree(SAMPLES / "recovery_and_removed", own_place / "there"))
    log = run / "recovery.dag.nodes.log"
    whole = log.read_bytes()
    log.write_bytes(b"")
    size, chance = len(whole) // 8, random.Random(5)
    rest = [whole[at : at + size] for at in range(0, len(whole), size)]

    def write(_: float) -> None:
        if len(rest) % 4 == 0 and log.stat().st_size:
            rotate(log)
            pack(log)
        if rest:
            with log.open("ab") as file:
                file.write(rest.pop(0))
        if chance.random() < 0.1:
            raise KeyboardInterrupt  # the program is ended, and called again

    def cut(request: httpx.Request) -> None:
        if chance.random() < 0.2:
            raise httpx.ReadError("the line is cut")

    monkeypatch.setattr("pilotage_client.cli.following.sleep", write)
    portal.after = cut
    ran = pilotage("follow", run / "recovery.dag", log, "--json")
    while ran.code == 130:
        ran = pilotage("follow", run / "recovery.dag", log, "--json")

    dag = Dag.objects.get()
    assert (ran.code, dag.state, dag.name) == (0, "completed", "recovery")
    assert FollowedLog.objects.get().byte_offset == len(whole)


def test_what_there_is_can_be_sent_once(pilotage: Command, own_place: Path, portal: Portal) -> None:
    run = Path(shutil.copytree(SAMPLES / "recovery_and_removed", own_place / "there"))
    log = run / "recovery.dag.nodes.log"
    log.write_bytes(log.read_bytes()[:500])

    first = pilotage("follow", run / "recovery.dag", log, "--once")
    again = pilotage("follow", run / "recovery.dag", log, "--once")

    assert (first.code, again.code) == (0, 0)
    assert portal.sent().count("POST /api/v1/dags/follow/") == 1
    assert 0 < FollowedLog.objects.get().byte_offset <= 500
