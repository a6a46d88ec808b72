"""Decision on a node's next step after its PRE, job or POST has ended, by DAGMan's rules.

Pure functions from exit codes, also for a submission that failed: submit, skip, run POST, succeed,
retry or fail, and abort of the DAG. Also DAGMan's codes for ends without an exit code.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from wms.dags.engine.node_features import Features
from wms.dags.states import ScriptKind

#: What stands for an exit code where there was none.
SUBMIT_FAILED = -1001
JOB_REMOVED = -1002
NO_CODE = -1003
PRE_FAILED = -1004
GROWTH_FAILED = -1005


class Next(Enum):
    """Next step of a node."""

    SUBMIT = auto()
    SKIP = auto()
    RUN_POST = auto()
    SUCCEED = auto()
    RETRY = auto()
    FAIL = auto()


@dataclass(frozen=True, slots=True)
class Attempt:
    """Input of a decision: the node's features, the retries left, the DAG's options."""

    features: Features
    retries_left: int
    always_run_post: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """The next step of a node, the code that decided it, and how the DAG is aborted if it is."""

    next: Next
    code: int = 0
    aborts_with: int | None = None


def after_pre(attempt: Attempt, code: int) -> Decision:
    """PRE has ended. The code of PRE_SKIP makes the node done; POST after failure is an option."""
    features = attempt.features
    if code == 0:
        return Decision(Next.SUBMIT)
    if code == features.pre_skip:
        return Decision(Next.SKIP, code)
    aborts_with = _abort_code(features, code)
    if aborts_with is not None:
        return Decision(Next.FAIL, code, aborts_with)
    runs_post = attempt.always_run_post or features.always_runs_post
    if runs_post and features.script(ScriptKind.POST) is not None:
        return Decision(Next.RUN_POST, PRE_FAILED)
    return _failed(attempt, code)


def after_job(attempt: Attempt, code: int) -> Decision:
    """All jobs of the node have ended, with this code in all; POST has the last word."""
    if attempt.features.script(ScriptKind.POST) is not None:
        return Decision(Next.RUN_POST, code)
    return _ended(attempt, code)


def after_post(attempt: Attempt, code: int) -> Decision:
    """POST has ended: its code is the node's, whatever the job did."""
    return _ended(attempt, code)


def after_failed_submit(attempt: Attempt) -> Decision:
    """The node could not be submitted for good: POST decides, RETRY is not used."""
    if attempt.features.script(ScriptKind.POST) is not None:
        return Decision(Next.RUN_POST, SUBMIT_FAILED)
    return Decision(Next.FAIL, SUBMIT_FAILED)


def after_failed_growth(attempt: Attempt) -> Decision:
    """The node ended well, but what is to follow it cannot be inserted: it has failed."""
    return _failed(attempt, GROWTH_FAILED)


def _ended(attempt: Attempt, code: int) -> Decision:
    aborts_with = _abort_code(attempt.features, code)
    if aborts_with is not None:
        return Decision(Next.SUCCEED if code == 0 else Next.FAIL, code, aborts_with)
    return Decision(Next.SUCCEED) if code == 0 else _failed(attempt, code)


def _failed(attempt: Attempt, code: int) -> Decision:
    is_final = attempt.features.unless_exit == code or attempt.retries_left <= 0
    return Decision(Next.FAIL if is_final else Next.RETRY, code)


def _abort_code(features: Features, code: int) -> int | None:
    """The DAG's exit code if this code aborts it; by default the node's, as a process has it."""
    rule = features.abort
    if rule is None or rule.exit_code != code:
        return None
    return rule.return_code if rule.return_code is not None else code & 0xFF
