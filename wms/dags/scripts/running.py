"""The service: takes granted runs, carries them out, writes their ends."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import structlog
from django.db import InterfaceError, OperationalError, connection
from django.utils import timezone

from wms.core.database.unstorable import PERMANENT_ERRORS, told
from wms.core.errors import InvalidInput, PilotageError
from wms.core.loops import wake
from wms.dags.engine.node_features import Script, features_of
from wms.dags.models import ScriptRun
from wms.dags.scripts import service
from wms.dags.scripts.conf import ScriptConf, script_conf
from wms.dags.scripts.debugging import debug_additions, keeps_streams_apart
from wms.dags.scripts.fences import Room, search_path
from wms.dags.scripts.files import WorkspaceCopy
from wms.dags.scripts.process import FAILED_CODE, Command, Ended, Limits, run_process
from wms.dags.scripts.publishing import NO_CHANGES, Changes
from wms.dags.scripts.sandbox import NoFence, fence_for
from wms.dags.scripts.service import SCRIPTS_TASK, Taken
from wms.dags.scripts.slots import NoSlot, Slot, held_slot
from wms.dags.scripts.trees import TooMuch
from wms.dags.states import ScriptKind

log = structlog.get_logger(__name__)
#: A worker that is to stop must not go on taking runs: after so long another message does.
TAKING_S: Final = 10.0
_PULSE_S = 2.0
#: So long an end waits for a database that is away; then the reaper ends the run.
_RECORDING_S = 600.0
_NO_SCRIPT = Script("", ())


class Superseded(Exception):
    """The run was ended by others: whatever it does from now on does not count."""


def run_granted() -> int:
    """Run granted scripts, one after the other, until there is none or it is time to pause.

    Other workers are woken as long as there is more to do. Returns how many were run.
    """
    conf = script_conf()
    try:
        with held_slot(conf.folder, first_uid=conf.first_uid) as slot:
            return _run_all(lambda taken: run_one(taken, slot, conf))
    except NoSlot as error:
        reason = str(error)
    return _run_all(lambda taken: _record(taken, Outcome(Ended(FAILED_CODE, reason))))


def _run_all(carry_out: Callable[[Taken], object]) -> int:
    deadline, count = time.monotonic() + TAKING_S, 0
    while (taken := service.take_run(timezone.now())) is not None:
        if count == 0:
            _wake_another()
        carry_out(taken)
        count += 1
        if time.monotonic() > deadline:
            _wake_another()
            break
    return count


def _wake_another() -> None:
    if service.has_free_runs(timezone.now()):
        wake(SCRIPTS_TASK)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended and what it changed; `copy` is kept once that is on record."""

    ended: Ended
    changes: Changes = NO_CHANGES
    copy: WorkspaceCopy | None = None


class Pulse:
    """The sign of life of a run, given as often as it is due. Raises Superseded."""

    def __init__(self, taken: Taken) -> None:
        self._taken = taken
        self._next = time.monotonic() + _PULSE_S

    def __call__(self) -> None:
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _PULSE_S
        try:
            lives = service.renew_lease(self._taken.run_id, self._taken.lease, now=timezone.now())
        except (OperationalError, InterfaceError):
            # The database is away. The script goes on; its lease lasts longer than a restart.
            connection.close()
            return
        if not lives:
            raise Superseded


def run_one(taken: Taken, slot: Slot, conf: ScriptConf) -> None:
    """Carry out a run and write its end."""
    run = ScriptRun.objects.select_related("dag", "node").get(pk=taken.run_id)
    try:
        outcome = _outcome(run, taken, slot, conf)
    except Superseded:
        log.info("script_run_superseded", run=taken.run_id, dag=run.dag_id)
        return
    except Exception as error:
        # A fault of ours must not bring the same script up again and again.
        _record(taken, Outcome(Ended(FAILED_CODE, f"{type(error).__name__}: {error}")))
        raise
    _record(taken, outcome)
    slot.make_room()


def _outcome(run: ScriptRun, taken: Taken, slot: Slot, conf: ScriptConf) -> Outcome:
    pulse = Pulse(taken)
    copy = WorkspaceCopy(slot, run.dag.workspace_id, conf)
    script = features_of(run.node.features).script(ScriptKind(run.kind)) or _NO_SCRIPT
    try:
        copy.refresh(run.directory, pulse=pulse)
        fence = fence_for(conf, Room(copy.files, slot.tmp, slot.shm, slot.uid))
    except (PilotageError, NoFence, OSError) as error:
        return Outcome(Ended(FAILED_CODE, f"It could not be started: {error}"))
    if not service.start_run(taken.run_id, taken.lease, now=timezone.now()):
        raise Superseded
    ended = run_process(fence, _command(run, script), _limits(conf), pulse=pulse)
    return _with_files(run, script, ended, copy, pulse)


def _with_files(
    run: ScriptRun, script: Script, ended: Ended, copy: WorkspaceCopy, pulse: Pulse
) -> Outcome:
    """What the script left in its directory, with its end."""
    try:
        found = copy.collect(pulse=pulse)
        additions = debug_additions(run, script, ended, now=timezone.now())
    except (TooMuch, InvalidInput, OSError) as error:
        failure = f"{ended.failure} {error} Its files were not kept.".strip()
        return Outcome(replace(ended, exit_code=ended.exit_code or FAILED_CODE, failure=failure))
    notes = "".join(f"[{note}]\n" for note in found.notes).encode()
    changes = replace(found.changes, appended=additions)
    return Outcome(replace(ended, output=ended.output + notes), changes, copy)


def _record(taken: Taken, outcome: Outcome) -> None:
    """Write the end; while the database is away, wait for it."""
    deadline = time.monotonic() + _RECORDING_S
    while True:
        ended = outcome.ended
        try:
            is_end = service.end_run(
                taken.run_id,
                taken.lease,
                exit_code=ended.exit_code,
                failure=ended.failure,
                output=ended.output,
                now=timezone.now(),
                changes=outcome.changes,
            )
        except (OperationalError, InterfaceError):
            connection.close()
            if time.monotonic() > deadline:
                raise
            time.sleep(1)
            continue
        except PERMANENT_ERRORS as error:
            if outcome.changes is NO_CHANGES:
                raise
            failure = f"{ended.failure} What it left cannot be stored: {told(error)}".strip()
            code = ended.exit_code or FAILED_CODE
            outcome = Outcome(replace(ended, exit_code=code, failure=failure))
            continue
        if is_end and outcome.copy is not None:
            outcome.copy.settle()
        return


def _command(run: ScriptRun, script: Script) -> Command:
    environment = {
        "PATH": search_path(),
        "LANG": "C.UTF-8",
        "PILOTAGE_DAG_ID": str(run.dag_id),
        "PILOTAGE_NODE": run.node.name,
        "PILOTAGE_RETRY": str(run.retry_number),
    }
    return Command(
        executable=run.executable,
        arguments=run.arguments,
        directory=run.directory,
        environment=environment | run.dag.script_environment,
        has_separate_streams=keeps_streams_apart(script),
    )


def _limits(conf: ScriptConf) -> Limits:
    return Limits(
        wall_s=conf.wall_s,
        cpu_s=conf.cpu_s,
        memory_mb=conf.memory_mb,
        processes=conf.processes,
        file_bytes=conf.file_bytes,
        output_bytes=conf.output_bytes,
    )
