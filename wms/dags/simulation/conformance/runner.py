"""Runner of conformance cases: each runs in a transaction that is rolled back.

Also compares the event log of each DAG with its rows, if wanted.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import structlog
from django.db import transaction

from wms.dags.engine.rebuild import rebuild_dag
from wms.dags.simulation.conformance.case_files import SUPPLIED_PROGRAMS, complete_case_files
from wms.dags.simulation.conformance.cases import DAG_NAME, Case, Submission
from wms.dags.simulation.conformance.comparison import Difference, differences
from wms.dags.simulation.outcome import Outcome
from wms.dags.simulation.simulator import simulate_submission
from wms.dags.simulation.testbed import SimulationTestbed, create_testbed
from wms.dags.submission.runs import RunRequest
from wms.dags.submission.workspaces import put_file
from wms.jobs.models import Workspace

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class CaseResult:
    """Result of a case: its differences from the expectations, and the real time it took."""

    name: str
    differences: list[Difference] = field(default_factory=list)
    took_s: float = 0.0

    @property
    def is_passed(self) -> bool:
        """Whether the case has no differences."""
        return not self.differences


def run_cases(cases: Iterable[Case], *, checks_log: bool = False) -> Iterator[CaseResult]:
    """Results of the cases, which run one after the other in a transaction that is rolled back.

    `checks_log`: the event log of each DAG is compared with its rows as well.
    """
    with transaction.atomic():
        testbed = create_testbed()
        for case in cases:
            yield run_case(case, testbed, checks_log=checks_log)
        transaction.set_rollback(True)


def run_case(case: Case, testbed: SimulationTestbed, *, checks_log: bool = False) -> CaseResult:
    """Result of all submissions of a case in one workspace; the testbed is left unchanged."""
    began_s = time.monotonic()
    try:
        with transaction.atomic():
            case_differences = _differences(case, testbed, checks_log=checks_log)
            transaction.set_rollback(True)
    except Exception as error:
        # Whatever is wrong with one case, the others are run.
        log.exception("case_failed", case=case.name)
        message = f"the simulation broke down: {type(error).__name__}: {error}"
        case_differences = [Difference("exception", message)]
    return CaseResult(case.name, case_differences, time.monotonic() - began_s)


def _differences(case: Case, testbed: SimulationTestbed, *, checks_log: bool) -> list[Difference]:
    all_differences: list[Difference] = []
    run = _CaseRun(case, testbed)
    for number, submission in enumerate(case.submissions, start=1):
        outcome = run.submit(submission)
        new_differences = differences(
            submission.expect, outcome, may_refuse_cycle=case.may_refuse_cycle
        )
        if checks_log and outcome.context is not None:
            new_differences += _log_differences(outcome.context.dag_ids)
        all_differences += [replace(each, submission=number) for each in new_differences]
    return all_differences


def _log_differences(dag_ids: Iterable[int]) -> list[Difference]:
    return [
        Difference("log", f"log: {message}")
        for dag_id in dag_ids
        for message in rebuild_dag(dag_id).differences
    ]


class _CaseRun:
    """Workspace of a case with its submissions, one after the other."""

    def __init__(self, case: Case, testbed: SimulationTestbed) -> None:
        self._testbed = testbed
        self._files: dict[str, str | None] = {DAG_NAME: case.submissions[0].dag or ""}
        self._workspace: Workspace | None = None
        self._stored: Mapping[str, bytes] = {}

    def submit(self, submission: Submission) -> Outcome:
        """Outcome of the next submission.

        A faulty submit file is refused at submission here, but cases expect its fault when the node
        is submitted, as with DAGMan. Such files are therefore put in place after the submission.
        """
        self._files.update(submission.files)
        if submission.dag is not None:
            self._files[DAG_NAME] = submission.dag
        dag_files = [DAG_NAME, *submission.options.extra_dags]
        files = complete_case_files(dag_files, self._files)
        outcome = self._submit(submission, dag_files, files.contents)
        faulty = {finding.file for finding in outcome.findings}
        if faulty and faulty <= files.descriptions:
            outcome = self._submit(submission, dag_files, files.contents, late=faulty)
        return outcome

    def _submit(
        self,
        submission: Submission,
        dag_files: list[str],
        files: Mapping[str, bytes],
        late: Collection[str] = (),
    ) -> Outcome:
        return simulate_submission(
            RunRequest(
                workspace=self._put_files(files, late),
                owner=self._testbed.owner,
                dag_files=dag_files,
                options=submission.options.run_options,
                resumption=submission.options.resumption,
                keeps_files=submission.options.keeps_files,
                allow_missing_files=True,
                takes_any_request=True,
            ),
            submission.behaviour,
            submission.options,
            self._testbed,
            available_programs=SUPPLIED_PROGRAMS,
            late_files={path: files[path] for path in late},
        )

    def _put_files(self, files: Mapping[str, bytes], late: Collection[str]) -> Workspace:
        """Store the files in the workspace; outputs of earlier runs stay."""
        if self._workspace is None:
            self._workspace = self._testbed.workspace(files)
        else:
            self._workspace.files.filter(path__in=late).delete()
            for path, content in files.items():
                if path not in late and self._stored.get(path) != content:
                    put_file(self._workspace, path, content)
        self._stored = files
        return self._workspace
