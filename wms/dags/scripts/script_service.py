"""Script service: takes granted runs one by one, runs each script fenced, records end and changes.

A script runs in a copy of its workspace; what it changed there is stored with its end. Meanwhile
the lease of the run is renewed, and a script whose run was cancelled or ended by others is
stopped. A call takes runs for some seconds, and wakes another worker while there are more.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import structlog
from django.db import InterfaceError, OperationalError, connection
from django.utils import timezone

from wms.core.database.permanent_errors import PERMANENT_ERRORS, told
from wms.core.errors import InvalidInput, PilotageError
from wms.core.loops import wake
from wms.dags.engine.node_features import Script, features_of
from wms.dags.models import ScriptRun
from wms.dags.scripts import run_leases
from wms.dags.scripts.conf import ScriptConf, script_conf
from wms.dags.scripts.debugging import debug_additions, keeps_streams_apart
from wms.dags.scripts.fence_choice import NoFence, fence_for
from wms.dags.scripts.fences import Sandbox, search_path
from wms.dags.scripts.process import FAILED_CODE, Command, Limits, ProcessResult, run_process
from wms.dags.scripts.publishing import NO_CHANGES, Changes
from wms.dags.scripts.run_leases import SCRIPTS_TASK, LeasedRun
from wms.dags.scripts.slots import NoSlot, Slot, acquired_slot
from wms.dags.scripts.trees import WorkspaceTooLarge
from wms.dags.scripts.workspace_copy import WorkspaceCopy
from wms.dags.states import ScriptKind

log = structlog.get_logger(__name__)
#: Seconds for which one message takes runs, so that a worker can stop.
TAKING_S: Final = 10.0
_HEARTBEAT_S = 2.0
#: Seconds for which an end waits for the database; then the reaper ends the run.
_RECORDING_S = 600.0
_NO_SCRIPT = Script("", ())


class RunSuperseded(Exception):
    """The run was ended by others: its result does not count."""


def run_granted() -> int:
    """Run granted scripts, one after the other, until there is none or the time is up.

    Other workers are woken as long as there are more. Returns the number of runs.
    """
    conf = script_conf()
    try:
        with acquired_slot(conf.folder, first_uid=conf.first_uid) as slot:
            return _run_all(lambda leased_run: run_one(leased_run, slot, conf))
    except NoSlot as error:
        reason = str(error)
    return _run_all(
        lambda leased_run: _record(leased_run, Outcome(ProcessResult(FAILED_CODE, reason)))
    )


def _run_all(carry_out: Callable[[LeasedRun], object]) -> int:
    deadline, count = time.monotonic() + TAKING_S, 0
    while (leased_run := run_leases.take_run(timezone.now())) is not None:
        if count == 0:
            _wake_another()
        carry_out(leased_run)
        count += 1
        if time.monotonic() > deadline:
            _wake_another()
            break
    return count


def _wake_another() -> None:
    if run_leases.has_free_runs(timezone.now()):
        wake(SCRIPTS_TASK)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a run and its changes; `copy` is kept once they are recorded."""

    result: ProcessResult
    changes: Changes = NO_CHANGES
    copy: WorkspaceCopy | None = None


class Heartbeat:
    """Renews the lease of a run as often as it is due. Raises RunSuperseded."""

    def __init__(self, leased_run: LeasedRun) -> None:
        self._taken = leased_run
        self._next = time.monotonic() + _HEARTBEAT_S

    def __call__(self) -> None:
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _HEARTBEAT_S
        try:
            lives = run_leases.renew_lease(
                self._taken.run_id, self._taken.lease, now=timezone.now()
            )
        except (OperationalError, InterfaceError):
            # The database is away. The script goes on; its lease lasts longer than a restart.
            connection.close()
            return
        if not lives:
            raise RunSuperseded


def run_one(leased_run: LeasedRun, slot: Slot, conf: ScriptConf) -> None:
    """Carry out a run and record its end."""
    run = ScriptRun.objects.select_related("dag", "node").get(pk=leased_run.run_id)
    try:
        outcome = _outcome(run, leased_run, slot, conf)
    except RunSuperseded:
        log.info("script_run_superseded", run=leased_run.run_id, dag=run.dag_id)
        return
    except Exception as error:
        # A fault of ours must not bring the same script up again and again.
        _record(leased_run, Outcome(ProcessResult(FAILED_CODE, f"{type(error).__name__}: {error}")))
        raise
    _record(leased_run, outcome)
    slot.make_temporary_folders()


def _outcome(run: ScriptRun, leased_run: LeasedRun, slot: Slot, conf: ScriptConf) -> Outcome:
    heartbeat = Heartbeat(leased_run)
    copy = WorkspaceCopy(slot, run.dag.workspace_id, conf)
    script = features_of(run.node.features).script(ScriptKind(run.kind)) or _NO_SCRIPT
    try:
        copy.refresh(run.directory, heartbeat=heartbeat)
        fence = fence_for(conf, Sandbox(copy.files, slot.tmp, slot.shm, slot.uid))
    except (PilotageError, NoFence, OSError) as error:
        return Outcome(ProcessResult(FAILED_CODE, f"It could not be started: {error}"))
    if not run_leases.start_run(leased_run.run_id, leased_run.lease, now=timezone.now()):
        raise RunSuperseded
    result = run_process(fence, _command(run, script), _limits(conf), heartbeat=heartbeat)
    return _with_files(run, script, result, copy, heartbeat)


def _with_files(
    run: ScriptRun, script: Script, result: ProcessResult, copy: WorkspaceCopy, heartbeat: Heartbeat
) -> Outcome:
    """Outcome with the changes that the script made in its directory."""
    try:
        collected = copy.collect(heartbeat=heartbeat)
        additions = debug_additions(run, script, result, now=timezone.now())
    except (WorkspaceTooLarge, InvalidInput, OSError) as error:
        failure = f"{result.failure} {error} Its files were not kept.".strip()
        return Outcome(replace(result, exit_code=result.exit_code or FAILED_CODE, failure=failure))
    notes = "".join(f"[{note}]\n" for note in collected.notes).encode()
    changes = replace(collected.changes, appended=additions)
    return Outcome(replace(result, output=result.output + notes), changes, copy)


def _record(leased_run: LeasedRun, outcome: Outcome) -> None:
    """Record the end; wait while the database is away."""
    deadline = time.monotonic() + _RECORDING_S
    while True:
        result = outcome.result
        try:
            is_end = run_leases.end_run(
                leased_run.run_id,
                leased_run.lease,
                exit_code=result.exit_code,
                failure=result.failure,
                output=result.output,
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
            failure = f"{result.failure} What it left cannot be stored: {told(error)}".strip()
            code = result.exit_code or FAILED_CODE
            outcome = Outcome(replace(result, exit_code=code, failure=failure))
            continue
        if is_end and outcome.copy is not None:
            outcome.copy.confirm()
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
