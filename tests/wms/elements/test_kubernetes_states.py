"""States of pilots in Kubernetes from what the API server tells, as recorded and as it might be."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wms.elements.kubernetes_states import newest_pods, pilot_state, places
from wms.elements.protocol import BatchState

State = BatchState


def job(*conditions: tuple[str, str, str], is_cancelled: bool = False) -> dict[str, Any]:
    labels = {"pilotage/pilot": "b-0"} | ({"pilotage/cancelled": "yes"} if is_cancelled else {})
    told = [
        {"type": kind, "status": "True", "reason": reason, "message": message}
        for kind, reason, message in conditions
    ]
    return {"metadata": {"name": "b-0", "labels": labels}, "status": {"conditions": told}}


def pod(phase: str, state: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    containers = {"containerStatuses": [{"name": "pilot", "state": state}]} if state else {}
    return {"spec": {"nodeName": "n7"}, "status": {"phase": phase, **containers, **status}}


def ended(code: int, reason: str = "Error") -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": reason}}


def waits(reason: str, message: str = "") -> dict[str, Any]:
    return {"waiting": {"reason": reason, "message": message}}


COMPLETE = ("Complete", "", "")
OVER = ("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
LATE = ("Failed", "DeadlineExceeded", "Job was active longer than specified deadline")
FULL = [
    {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/3 nodes are available: 3 Insufficient cpu.",
    }
]


@pytest.mark.parametrize(
    ("told", "seen", "state", "words"),
    [
        (job(), None, State.QUEUED, "no pod yet"),
        (job(), pod("Pending"), State.QUEUED, ""),
        (job(), pod("Pending", waits("ContainerCreating")), State.QUEUED, ""),
        (job(), pod("Pending", conditions=FULL), State.QUEUED, "Unschedulable: 0/3 nodes"),
        (job(), pod("Pending", waits("ErrImagePull", "not found")), State.HELD, "not found"),
        (job(), pod("Running", {"running": {}}), State.RUNNING, ""),
        (job(), pod("Unknown"), State.MISSING, "its pod is Unknown"),
        (job(), pod("Succeeded", ended(0, "Completed")), State.DONE, ""),
        (job(COMPLETE), None, State.DONE, ""),
        (job(), pod("Failed", ended(3)), State.FAILED, "exit code 3"),
        (job(OVER), pod("Failed", ended(137, "OOMKilled")), State.FAILED, "OOMKilled"),
        (
            job(OVER),
            pod("Failed", reason="Evicted", message="The node was low on resource: memory."),
            State.FAILED,
            "Evicted: The node was low on resource: memory.",
        ),
        (job(OVER), pod("Failed"), State.FAILED, "its pod failed"),
        (job(OVER), None, State.FAILED, "BackoffLimitExceeded: Job has reached"),
        (job(LATE, is_cancelled=True), None, State.CANCELLED, ""),
        (job(LATE, is_cancelled=True), pod("Failed", ended(143)), State.CANCELLED, ""),
        # The Job is over before its pod is: the pilot still runs.
        (job(LATE, is_cancelled=True), pod("Running", {"running": {}}), State.RUNNING, ""),
        (job(LATE, is_cancelled=True), pod("Pending"), State.CANCELLED, ""),
        # It ended by itself before the cluster heard of the cancelling.
        (job(COMPLETE, is_cancelled=True), pod("Succeeded", ended(0)), State.DONE, ""),
    ],
)
def test_jobs_and_pods_tell_the_state_of_a_pilot_and_its_reason(
    told: dict[str, Any], seen: dict[str, Any] | None, state: BatchState, words: str
) -> None:
    found = pilot_state(told, seen)

    assert found.state == state
    assert words in found.reason
    if seen:
        assert found.node in {"n7", ""}


def test_the_newest_pod_of_a_pilot_counts() -> None:
    def made(at: str) -> dict[str, Any]:
        labels = {"pilotage/pilot": "b-0"}
        return {"metadata": {"name": at, "labels": labels, "creationTimestamp": at}}

    assert newest_pods([made("2026-02"), made("2026-03"), made("2026-01")])["b-0"] == made(
        "2026-03"
    )


def quota(hard: dict[str, str], used: dict[str, str], **spec: Any) -> dict[str, Any]:
    return {"spec": {"hard": hard, **spec}, "status": {"hard": hard, "used": used}}


@pytest.mark.parametrize(
    ("quotas", "cores", "expected"),
    [
        ([], 1, None),
        ([quota({"persistentvolumeclaims": "1"}, {})], 1, None),
        ([quota({"requests.cpu": "10"}, {"requests.cpu": "2500m"})], 2, (5, 3)),
        ([quota({"cpu": "10", "pods": "4"}, {"cpu": "1", "pods": "4"})], 1, (4, 0)),
        ([quota({"pods": "9"}, {"pods": "2"}), quota({"count/jobs.batch": "8"}, {})], 1, (8, 7)),
        ([quota({"limits.cpu": "2k"}, {"limits.cpu": "0"})], 1, (2000, 2000)),
        # More is used than a quota that was lowered allows.
        ([quota({"cpu": "2"}, {"cpu": "6"})], 1, (2, 0)),
        ([quota({"pods": "1"}, {}, scopes=["BestEffort"])], 1, None),
        ([quota({"cpu": "much"}, {})], 1, None),
    ],
)
def test_the_tightest_quota_tells_the_places(
    quotas: list[dict[str, Any]], cores: int, expected: tuple[int, int] | None
) -> None:
    assert places(quotas, cores) == expected


_WORDS = st.sampled_from(
    ["metadata", "status", "phase", "Failed", "Pending", "conditions", "type", "state",
     "containerStatuses", "waiting", "terminated", "reason", "message", "exitCode", "labels"]
)  # fmt: skip
_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | _WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=4),
    max_leaves=12,
)


@given(_ANYTHING, _ANYTHING, _ANYTHING)
def test_no_answer_of_any_shape_is_more_than_a_state(told: Any, seen: Any, status: Any) -> None:
    found = pilot_state({"status": told, "metadata": seen}, {"status": status, "spec": seen})

    assert isinstance(found.reason, str)
    assert len(found.native) <= 40
