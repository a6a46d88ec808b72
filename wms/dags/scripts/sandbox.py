"""Which fence works on this host: tried with a small program before the first script."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from wms.dags.scripts.conf import ScriptConf
from wms.dags.scripts.fences import (
    Fence,
    Room,
    account_fence,
    bwrap_fence,
    no_fence,
)
from wms.dags.scripts.process import Command, Limits, run_process

Maker = Callable[[ScriptConf, Room], Fence]

_MAKERS: Final[dict[str, Maker]] = {
    "bwrap": bwrap_fence,
    "account": account_fence,
    "none": no_fence,
}
_TRIAL = Command(
    executable="/bin/sh",
    arguments=("-c", 'cd "$HOME" && : >trial && rm trial'),
    directory="",
    environment={"PATH": "/usr/bin:/bin"},
)
_TRIAL_LIMITS = Limits(
    wall_s=20, cpu_s=10, memory_mb=512, processes=64, file_bytes=1024, output_bytes=2000
)
_works: dict[tuple[ScriptConf, int | None], str] = {}


class NoFence(Exception):
    """No fence that the settings allow works here; the text says why."""


def fence_for(conf: ScriptConf, room: Room) -> Fence:
    """The best fence that is allowed and works, around this room. Raises NoFence.

    What works is tried once in the life of the process, what does not each time.
    """
    key = (conf, room.uid)
    if key not in _works:
        _works[key] = working_fence(conf, replace(room, files=room.tmp))
    return _MAKERS[_works[key]](conf, room)


def working_fence(conf: ScriptConf, room: Room) -> str:
    """The best fence that is allowed, tried now in this room. Raises NoFence."""
    reasons = []
    for name in conf.fences:
        trouble = _trouble(name, conf, room)
        if not trouble:
            return name
        reasons.append(f"{name}: {trouble}")
    raise NoFence(
        "Scripts are not run on this host, because nothing would fence them in: "
        + ("; ".join(reasons) or "no fence is allowed")
        + ". See PILOTAGE_SCRIPTS_FENCES in the reference of the settings."
    )


def _trouble(name: str, conf: ScriptConf, room: Room) -> str:
    """What is wrong with a fence; nothing if a program runs behind it."""
    if name == "account" and room.uid is None:
        return "only root can give scripts an account of their own"
    try:
        ended = run_process(_MAKERS[name](conf, room), _TRIAL, _TRIAL_LIMITS, pulse=lambda: None)
    except OSError as error:
        return f"{error.filename or name}: {error.strerror}"
    if ended.exit_code == 0:
        return ""
    said = " ".join(ended.output.decode(errors="replace").split())
    return said or ended.failure or f"a program behind it ended with {ended.exit_code}"
