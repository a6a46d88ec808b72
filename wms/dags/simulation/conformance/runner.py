"""Runner of conformance cases, many side by side, in a transaction that is rolled back.

Also compares the event log of each DAG with its rows, if wanted.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import structlog
from django.db import transaction
from django.utils import timezone

from wms.dags.engine.rebuild import rebuild_dag
from wms.dags.simulation.conformance.case_files import SUPPLIED_PROGRAMS, complete_case_files
from wms.dags.simulation.conformance.cases import DAG_NAME, Case, Submission
from wms.dags.simulation.conformance.comparison import Difference, differences
from wms.dags.simulation.outcome import Outcome
from wms.dags.simulation.simulation import Simulation
from wms.dags.simulation.simulator import begin_submission, run_side_by_side
from wms.dags.simulation.testbed import SimulationTestbed, create_testbed
from wms.dags.submission.runs import RunRequest
from wms.dags.submission.workspaces import put_file
from wms.jobs.models import Workspace

log = structlog.get_logger(__name__)
#: So many cases run side by side.
_GROUP = 40
_DATA = re.compile(r"^\s*(?:DATA|STORK)\b", re.IGNORECASE | re.MULTILINE)


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


def run_cases(cases: Sequence[Case], *, checks_log: bool = False) -> Iterator[CaseResult]:
    """Results of the cases, which run in a transaction that is rolled back.

    `checks_log`: the event log of each DAG is compared with its rows as well.
    """
    with transaction.atomic():
        testbed = create_testbed()
        for group in groups_of(cases):
            yield from run_group(group, testbed, checks_log=checks_log)
        transaction.set_rollback(True)


def groups_of(cases: Iterable[Case]) -> Iterator[list[Case]]:
    """Groups of cases that may run side by side; the cases of a group are in their order."""
    group: list[Case] = []
    for case in cases:
        if _runs_alone(case):
            yield [case]
            continue
        group.append(case)
        if len(group) == _GROUP:
            yield group
            group = []
    if group:
        yield group


def _runs_alone(case: Case) -> bool:
    """Whether the engine is killed in the case, or it has transfers: all DAGs share these."""
    triggers = (each for submission in case.submissions for each in submission.options.triggers)
    return any(each.action == "kill" for each in triggers) or any(
        _DATA.search(text)
        for submission in case.submissions
        for text in (submission.dag, *submission.files.values())
        if text
    )


def run_group(
    cases: Sequence[Case], testbed: SimulationTestbed, *, checks_log: bool = False
) -> list[CaseResult]:
    """Results of cases whose DAGs run side by side, by one clock and in the same engine cycles.

    If the simulation breaks down they run one by one, which tells by which of them. The testbed is
    left unchanged.
    """
    began_s = time.monotonic()
    try:
        with transaction.atomic():
            found = _differences(cases, testbed, checks_log=checks_log)
            transaction.set_rollback(True)
    except Exception as error:
        # Whatever is wrong with one case, the others are run.
        if len(cases) > 1:
            return [run_case(case, testbed, checks_log=checks_log) for case in cases]
        log.exception("case_failed", case=cases[0].name)
        message = f"the simulation broke down: {type(error).__name__}: {error}"
        found = [[Difference("exception", message)]]
    took_s = (time.monotonic() - began_s) / len(cases)
    return [
        CaseResult(case.name, case_differences, took_s)
        for case, case_differences in zip(cases, found, strict=True)
    ]


def run_case(case: Case, testbed: SimulationTestbed, *, checks_log: bool = False) -> CaseResult:
    """Result of all submissions of a case in one workspace; the testbed is left unchanged."""
    (result,) = run_group([case], testbed, checks_log=checks_log)
    return result


def _differences(
    cases: Sequence[Case], testbed: SimulationTestbed, *, checks_log: bool
) -> list[list[Difference]]:
    """Differences of each case: all first submissions run side by side, then the second ones."""
    runs = [_CaseRun(case, testbed) for case in cases]
    found: list[list[Difference]] = [[] for _ in cases]
    for at in range(max(len(case.submissions) for case in cases)):
        in_turn = [index for index, case in enumerate(cases) if at < len(case.submissions)]
        now = timezone.now()
        begun = [runs[index].begin(cases[index].submissions[at], now) for index in in_turn]
        outcomes = _outcomes(begun)
        for index, outcome in zip(in_turn, outcomes, strict=True):
            new = differences(
                cases[index].submissions[at].expect,
                outcome,
                may_refuse_cycle=cases[index].may_refuse_cycle,
            )
            if checks_log and outcome.context is not None:
                new += _log_differences(outcome.context.dag_ids)
            found[index] += [replace(each, submission=at + 1) for each in new]
    return found


def _outcomes(begun: Sequence[Simulation | Outcome]) -> list[Outcome]:
    """Outcomes of what has begun, in its order."""
    simulations = [each for each in begun if isinstance(each, Simulation)]
    ended = iter(run_side_by_side(simulations))
    return [next(ended) if isinstance(each, Simulation) else each for each in begun]


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

    def begin(self, submission: Submission, now: datetime) -> Simulation | Outcome:
        """Simulation of the next submission, or the outcome of its refusal.

        A faulty submit file is refused at submission here, but cases expect its fault when the node
        is submitted, as with DAGMan. Such files are therefore put in place after the submission.
        """
        self._files.update(submission.files)
        if submission.dag is not None:
            self._files[DAG_NAME] = submission.dag
        dag_files = [DAG_NAME, *submission.options.extra_dags]
        files = complete_case_files(dag_files, self._files)
        begun = self._submit(submission, dag_files, files.contents, now)
        faulty = {each.file for each in begun.findings} if isinstance(begun, Outcome) else set()
        if faulty and faulty <= files.descriptions:
            begun = self._submit(submission, dag_files, files.contents, now, late=faulty)
        return begun

    def _submit(
        self,
        submission: Submission,
        dag_files: list[str],
        files: Mapping[str, bytes],
        now: datetime,
        late: Collection[str] = (),
    ) -> Simulation | Outcome:
        return begin_submission(
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
            now=now,
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
