"""Choice of the fence for scripts on this host: the best that is allowed and works.

Each is tried with a small program first; where none works, no script is run (`NoFence`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from wms.dags.scripts.conf import ScriptConf
from wms.dags.scripts.fences import (
    Fence,
    Sandbox,
    account_fence,
    bwrap_fence,
    no_fence,
)
from wms.dags.scripts.process import Command, Limits, run_process

FenceBuilder = Callable[[ScriptConf, Sandbox], Fence]

_BUILDERS: Final[dict[str, FenceBuilder]] = {
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
_working_fences: dict[tuple[ScriptConf, int | None], str] = {}


class NoFence(Exception):
    """No fence that the settings allow works here; the message has the reasons."""


def fence_for(conf: ScriptConf, sandbox: Sandbox) -> Fence:
    """Best fence that is allowed and works, around this sandbox. Raises NoFence.

    A working fence is tried once in the life of the process, a failing one each time.
    """
    key = (conf, sandbox.uid)
    if key not in _working_fences:
        _working_fences[key] = working_fence(conf, replace(sandbox, files=sandbox.tmp))
    return _BUILDERS[_working_fences[key]](conf, sandbox)


def working_fence(conf: ScriptConf, sandbox: Sandbox) -> str:
    """Name of the best fence that is allowed, tried now in this sandbox. Raises NoFence."""
    reasons = []
    for name in conf.fences:
        fault = _fence_fault(name, conf, sandbox)
        if not fault:
            return name
        reasons.append(f"{name}: {fault}")
    raise NoFence(
        "Scripts are not run on this host, because nothing would fence them in: "
        + ("; ".join(reasons) or "no fence is allowed")
        + ". See PILOTAGE_SCRIPTS_FENCES in the reference of the settings."
    )


def _fence_fault(name: str, conf: ScriptConf, sandbox: Sandbox) -> str:
    """Reason why a fence does not work; empty if a program runs behind it."""
    if name == "account" and sandbox.uid is None:
        return "only root can give scripts an account of their own"
    try:
        result = run_process(
            _BUILDERS[name](conf, sandbox), _TRIAL, _TRIAL_LIMITS, heartbeat=lambda: None
        )
    except OSError as error:
        return f"{error.filename or name}: {error.strerror}"
    if result.exit_code == 0:
        return ""
    said = " ".join(result.output.decode(errors="replace").split())
    return said or result.failure or f"a program behind it ended with {result.exit_code}"
