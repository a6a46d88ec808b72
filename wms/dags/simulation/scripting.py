"""The scripted script service: takes granted runs, and ends them as the behaviour says."""

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
from wms.dags.scripts.service import end_run, has_free_runs, start_run, take_run
from wms.dags.simulation.batch import BatchSystem
from wms.dags.simulation.record import Run
from wms.dags.simulation.world import World
from wms.dags.states import ScriptKind, ScriptState
from wms.jobs.models import WorkspaceFile


class ScriptService:
    """Starts every run that is granted at once; ends it when its time is up.

    `supplied` are names of programs that are there wherever one is looked for; None: all are.
    """

    def __init__(self, world: World, batch: BatchSystem, supplied: frozenset[str] | None) -> None:
        self._world, self._batch, self._supplied = world, batch, supplied
        self._running: dict[int, Run] = {}

    def start_granted(self) -> int:
        """Start what was granted, in the order of the requests. Returns how many."""
        if not self._world.has_scripts or not has_free_runs(self._world.now):
            return 0
        started = 0
        while (taken := take_run(self._world.now)) is not None:
            self._start(taken.run_id, taken.lease)
            started += 1
        return started

    def note_stopped(self) -> None:
        """Record the ends of scripts that the engine has ended."""
        if not self._running:
            return
        ended = ScriptRun.objects.filter(pk__in=list(self._running), state=ScriptState.ENDED)
        for pk in ended.values_list("pk", flat=True):
            self._world.end(self._running.pop(pk), "stopped")

    def _start(self, run_id: int, lease: str) -> None:
        row = ScriptRun.objects.select_related("node", "dag").get(pk=run_id)
        start_run(run_id, lease, now=self._world.now)
        if not self._is_there(row):
            why = f"{row.executable} is not there"
            self._end(row, lease, ProcessResult(FAILED_CODE, failure=why))
            return
        world, name = self._world, row.node.name
        number = world.record.next_number(name, row.kind)
        run = Run(name, row.kind, number, row.dag_id, arguments=tuple(row.arguments))
        self._running[run_id] = world.start(run)
        lasts_us = world.behaviour.duration_us(
            name, row.kind, number, world.behaviour.usual.script_s
        )
        code = world.behaviour.result(run.component, number).code
        world.agenda.plan(
            world.now_us + lasts_us, partial(self._end, row, lease, ProcessResult(code))
        )

    def _is_there(self, row: ScriptRun) -> bool:
        name = row.executable
        if self._supplied is None or posixpath.basename(name) in self._supplied:
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
            self._world.end(run, str(ended.exit_code))
        if row.kind == ScriptKind.HOLD and self._world.options.releases_held:
            self._batch.release(row.dag_id, row.node.name)

    def _write_end(self, row: ScriptRun, lease: str, ended: ProcessResult) -> bool:
        script = features_of(row.node.features).script(ScriptKind(row.kind))
        changes = NO_CHANGES
        if script is not None and script.debug_file:
            changes = Changes(appended=debug_additions(row, script, ended, now=self._world.now))
        return end_run(
            row.pk,
            lease,
            exit_code=ended.exit_code,
            failure=ended.failure,
            now=self._world.now,
            changes=changes,
        )
