"""Run of the feeder: behind the fence of scripts, with the network and a token of the portal.

It has the portal's address, the level and the number of requests in its environment, and submits
new ones by the API, as anybody does.
"""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path
from typing import Final

from django.db import InterfaceError, OperationalError, connection
from django.utils import timezone

from wms.core.loops import wake
from wms.placement.conf import FeederConf, feeder_conf, placement_conf
from wms.placement.feeding.operations import (
    FeederEnd,
    FeederRun,
    begin_run,
    end_run,
    look,
    renew_lease,
)
from wms.placement.modules.fenced import NoWorkplace, Program, ProgramEnd, ProgramLimits, workplace
from wms.placement.modules.programs import fault_of
from wms.placement.modules.protocol import FAILED, ModuleFailed
from wms.placement.modules.workplaces import new_file
from wms.placement.operations import LEASE
from wms.placement.runner import AttemptHeartbeat, Superseded

#: The task that runs it where it is due.
FEED_TASK: Final = "wms.placement.feed"
_TOKEN: Final = "pilotage-token"
_OUTPUT_BYTES: Final = 64 * 1024
_LINES, _LINE_CHARACTERS = 20, 400
#: The fence ends it at its limit; its heartbeat does when that does not come about.
_SPARE_S: Final = 60.0
#: So long before its lease may be over, a run that could not renew it ends.
_SOONER_S: Final = 10.0


def fault_of_files(conf: FeederConf) -> str:
    """Why a run would fail: the program cannot be run, or there is no token. Empty without one."""
    try:
        _require_program(conf)
        if conf.token_file is not None:
            _token(conf.token_file)
    except _NotReady as error:
        return str(error)
    return ""


def wake_feeder(now: datetime) -> bool:
    """Have a worker run the feeder if it is due; whether it is."""
    conf = feeder_conf()
    if conf is None or not look(conf, now):
        return False
    wake(FEED_TASK)
    return True


def run_feeder() -> bool:
    """Run the feeder if it is due, and nobody else is at it; whether it ran here."""
    conf = feeder_conf()
    run = begin_run(conf, timezone.now()) if conf else None
    if conf is None or run is None:
        return False
    try:
        end = _run(conf, run)
    except Superseded:
        return True
    except Exception as error:
        end_run(run.lease, _failed(f"{type(error).__name__}: {error}"), conf, timezone.now())
        raise
    end_run(run.lease, end, conf, timezone.now())
    return True


def _run(conf: FeederConf, run: FeederRun) -> FeederEnd:
    heartbeat = AttemptHeartbeat(conf.limit_s + _SPARE_S, HeldLease(run.lease))
    limits = ProgramLimits(
        wall_s=conf.limit_s,
        # It may wait for a catalogue without a word.
        stall_s=conf.limit_s,
        file_bytes=placement_conf().file_bytes,
        output_bytes=_OUTPUT_BYTES,
    )
    try:
        _require_program(conf)
        token = _token(conf.token_file) if conf.token_file else ""
        with workplace([str(conf.program.parent)], has_network=True) as place:
            environment = {
                "PILOTAGE_URL": conf.portal_url,
                "PILOTAGE_PLACEMENTS_LEVEL": str(conf.below),
                "PILOTAGE_PLACEMENTS_ACTIVE": str(run.active),
            }
            if token:
                with open(new_file(place, _TOKEN), "w", encoding="utf-8") as file:
                    file.write(token)
                environment["PILOTAGE_TOKEN_FILE"] = f"{place.root}/{_TOKEN}"
            program = Program(str(conf.program), [], environment)
            return _end_of(place.run(program, limits, heartbeat=heartbeat), token)
    except (NoWorkplace, _NotReady) as error:
        return _failed(str(error))
    except ModuleFailed as error:
        return FeederEnd(error.exit_code, error.message)


def _end_of(done: ProgramEnd, token: str) -> FeederEnd:
    code = done.exit_code if done.exit_code >= 0 else 128 - done.exit_code
    return FeederEnd(code, done.failure, _last_lines(done.output, token))


def _last_lines(output: bytes, token: str) -> str:
    """The last lines of an output, without control characters and the token, cut."""
    said = output.decode(errors="replace")
    if token:
        said = said.replace(token, "(secret)")
    lines = ["".join(c if c.isprintable() else " " for c in line) for line in said.splitlines()]
    return "\n".join(line[:_LINE_CHARACTERS].rstrip() for line in lines[-_LINES:])


def _failed(why: str) -> FeederEnd:
    return FeederEnd(FAILED, why)


class HeldLease:
    """Lease of a run as its worker knows it, also while the database is away.

    Called, it is renewed, and False is told when the run has to stop: others have ended it, or may
    do so before it could be renewed.
    """

    def __init__(self, lease: str) -> None:
        self._lease, self.renewed_s = lease, time.monotonic()

    def __call__(self) -> bool:
        asked_s = time.monotonic()
        try:
            lives = renew_lease(self._lease, now=timezone.now())
        except (OperationalError, InterfaceError):
            connection.close()
            return time.monotonic() - self.renewed_s < LEASE.total_seconds() - _SOONER_S
        self.renewed_s = asked_s
        return lives


class _NotReady(Exception):
    """A file of the feeder is not there or of no use; the message says which, and why."""


def _require_program(conf: FeederConf) -> None:
    if why := fault_of(conf.program):
        raise _NotReady(f"PILOTAGE_PLACEMENT_FEED_PROGRAM: {conf.program} {why}.")


def _token(path: Path) -> str:
    """The token, read anew for each run: it may be another one by then."""
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "is no text"
        raise _NotReady(f"PILOTAGE_PLACEMENT_FEED_TOKEN_FILE: {path}: {why}.") from None
    if not token:
        raise _NotReady(f"PILOTAGE_PLACEMENT_FEED_TOKEN_FILE: {path} is empty.")
    return token
