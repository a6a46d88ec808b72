"""Running conformance cases: each in a transaction of its own, of which nothing is left."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import structlog
from django.db import transaction

from wms.dags.engine.rebuild import rebuild_dag
from wms.dags.simulation.cases import DAG_NAME, Case, Step
from wms.dags.simulation.comparing import differences
from wms.dags.simulation.outcomes import Outcome
from wms.dags.simulation.submitting import submit_and_run
from wms.dags.simulation.supplying import supplied_files
from wms.dags.simulation.surroundings import Surroundings, make_surroundings
from wms.dags.submission.runs import RunRequest
from wms.dags.submission.workspaces import put_file
from wms.jobs.models import Workspace

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a case went: its differences from what was expected, and the real time it took."""

    name: str
    differences: list[str] = field(default_factory=list)
    took_s: float = 0.0

    @property
    def is_passed(self) -> bool:
        """Whether everything was as expected."""
        return not self.differences


def run_cases(cases: Iterable[Case], *, checks_log: bool = False) -> Iterator[Verdict]:
    """Run cases one after the other; nothing of them is left.

    `checks_log`: the log of each DAG has to agree with its rows as well.
    """
    with transaction.atomic():
        surroundings = make_surroundings()
        for case in cases:
            yield run_case(case, surroundings, checks_log=checks_log)
        transaction.set_rollback(True)


def run_case(case: Case, surroundings: Surroundings, *, checks_log: bool = False) -> Verdict:
    """Run all submissions of a case in one workspace, and compare what each came to.

    The surroundings are as they were before, when it has been run.
    """
    began_s = time.monotonic()
    try:
        with transaction.atomic():
            found = _differences(case, surroundings, checks_log=checks_log)
            transaction.set_rollback(True)
    except Exception as error:
        # Whatever is wrong with one case, the others are run.
        log.exception("case_failed", case=case.name)
        found = [f"the simulation broke down: {type(error).__name__}: {error}"]
    return Verdict(case.name, found, time.monotonic() - began_s)


def _differences(case: Case, surroundings: Surroundings, *, checks_log: bool) -> list[str]:
    found: list[str] = []
    run = _CaseRun(case, surroundings)
    for number, step in enumerate(case.steps):
        outcome = run.submit(step)
        told = differences(step.expect, outcome, may_refuse_cycle=case.may_refuse_cycle)
        if checks_log and outcome.world is not None:
            told += _log_differences(outcome)
        found += [f"submission {number + 1}: {each}" if number else each for each in told]
    return found


def _log_differences(outcome: Outcome) -> list[str]:
    ids = outcome.world.dag_ids if outcome.world is not None else []
    return [f"log: {each}" for dag_id in ids for each in rebuild_dag(dag_id).differences]


class _CaseRun:
    """The workspace of a case, from its first submission to its last."""

    def __init__(self, case: Case, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self._files: dict[str, str | None] = {DAG_NAME: case.steps[0].dag or ""}
        self._workspace: Workspace | None = None
        self._placed: Mapping[str, bytes] = {}

    def submit(self, step: Step) -> Outcome:
        """Submit the files as they are now, and let the DAG run.

        A description that is wrong is a fault of the submission here; an engine that reads it when
        its node is submitted finds it then. So it is handed in after the submission.
        """
        self._files.update(step.files)
        if step.dag is not None:
            self._files[DAG_NAME] = step.dag
        dag_files = [DAG_NAME, *step.options.extra_dags]
        files = supplied_files(dag_files, self._files)
        outcome = self._submit(step, dag_files, files.contents)
        wrong = {finding.file for finding in outcome.findings}
        if wrong and wrong <= files.descriptions:
            outcome = self._submit(step, dag_files, files.contents, late=wrong)
        return outcome

    def _submit(
        self,
        step: Step,
        dag_files: list[str],
        files: Mapping[str, bytes],
        late: Collection[str] = (),
    ) -> Outcome:
        return submit_and_run(
            RunRequest(
                workspace=self._place(files, late),
                owner=self._surroundings.owner,
                dag_files=dag_files,
                options=step.options.of_run,
                resumption=step.options.resumption,
                keeps_files=step.options.keeps_files,
                allow_missing_files=True,
            ),
            step.behaviour,
            step.options,
            self._surroundings,
            late_files={path: files[path] for path in late},
        )

    def _place(self, files: Mapping[str, bytes], late: Collection[str]) -> Workspace:
        """Bring the files into the workspace; what runs have left there stays."""
        if self._workspace is None:
            self._workspace = self._surroundings.workspace(files)
        else:
            self._workspace.files.filter(path__in=late).delete()
            for path, content in files.items():
                if path not in late and self._placed.get(path) != content:
                    put_file(self._workspace, path, content)
        self._placed = files
        return self._workspace
