"""Simulated script service: granted script runs start, and end as the behaviour file says.

A script whose program does not exist fails; debug files are written.
"""

from __future__ import annotations

import os
import posixpath
import shutil
from functools import partial

from wms.dags.engine.node_features import features_of
from wms.dags.models import ScriptRun
from wms.dags.scripts.debugging import debug_additions
from wms.dags.scripts.process import FAILED_CODE, ProcessResult
from wms.dags.scripts.publishing import NO_CHANGES, Changes
from wms.dags.scripts.run_leases import end_run, has_free_runs, start_run, take_run
from wms.dags.simulation.backends.batch_system import BatchSystem
from wms.dags.simulation.context import SimulationContext
from wms.dags.simulation.trace import Run
from wms.dags.states import ScriptKind, ScriptState
from wms.jobs.models import WorkspaceFile


class ScriptService:
    """Starts script runs as soon as they are granted, and ends them after their duration.

    `available_programs` are names of programs that exist in every directory; None: all exist.
    """

    def __init__(
        self,
        context: SimulationContext,
        batch: BatchSystem,
        available_programs: frozenset[str] | None,
    ) -> None:
        self._context, self._batch, self._available_programs = context, batch, available_programs
        self._running: dict[int, Run] = {}

    def start_granted(self) -> int:
        """Start granted script runs in the order of their requests. Returns their number."""
        now, dag_ids = self._context.now, self._context.dag_ids
        if not self._context.has_scripts or not has_free_runs(now, dag_ids):
            return 0
        started = 0
        while (taken := take_run(now, dag_ids)) is not None:
            self._start(taken.run_id, taken.lease)
            started += 1
        return started

    def note_stopped(self) -> None:
        """Trace the ends of script runs that the engine has ended."""
        if not self._running:
            return
        ended = ScriptRun.objects.filter(pk__in=list(self._running), state=ScriptState.ENDED)
        for pk in ended.values_list("pk", flat=True):
            self._context.end(self._running.pop(pk), "stopped")

    def _start(self, run_id: int, lease: str) -> None:
        row = ScriptRun.objects.select_related("node", "dag").get(pk=run_id)
        start_run(run_id, lease, now=self._context.now)
        if not self._program_exists(row):
            failure = f"{row.executable} is not there"
            self._end(row, lease, ProcessResult(FAILED_CODE, failure=failure))
            return
        context, name = self._context, row.node.name
        number = context.trace.next_run_number(name, row.kind)
        run = Run(name, row.kind, number, row.dag_id, arguments=tuple(row.arguments))
        self._running[run_id] = context.start(run)
        duration_us = context.behaviour.duration_us(
            name, row.kind, number, context.behaviour.defaults.script_s
        )
        code = context.behaviour.result(run.component, number).code
        context.event_queue.schedule(
            context.now_us + duration_us, partial(self._end, row, lease, ProcessResult(code))
        )

    def _program_exists(self, row: ScriptRun) -> bool:
        name = row.executable
        if self._available_programs is None or posixpath.basename(name) in self._available_programs:
            return True
        if name.startswith("/"):
            return os.access(name, os.X_OK)
        path = posixpath.normpath(posixpath.join(row.directory, name))
        files = WorkspaceFile.objects.filter(workspace_id=row.dag.workspace_id, path=path)
        return files.exists() or ("/" not in name and shutil.which(name) is not None)

    def _end(self, row: ScriptRun, lease: str, ended: ProcessResult) -> None:
        run = self._running.pop(row.pk, None)
        if not self._write_end(row, lease, ended):
            return
        if run is not None:
            self._context.end(run, str(ended.exit_code))
        if row.kind == ScriptKind.HOLD and self._context.options.releases_held:
            self._batch.release(row.dag_id, row.node.name)

    def _write_end(self, row: ScriptRun, lease: str, ended: ProcessResult) -> bool:
        script = features_of(row.node.features).script(ScriptKind(row.kind))
        changes = NO_CHANGES
        if script is not None and script.debug_file:
            changes = Changes(appended=debug_additions(row, script, ended, now=self._context.now))
        return end_run(
            row.pk,
            lease,
            exit_code=ended.exit_code,
            failure=ended.failure,
            now=self._context.now,
            changes=changes,
        )
