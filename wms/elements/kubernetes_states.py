"""States of pilots in Kubernetes, from their Jobs and pods as the API server tells them.

Also the places that a namespace's quotas leave. What is told is not trusted to have any shape.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from wms.elements.kubernetes_manifests import CANCELLED, PILOT
from wms.elements.protocol import BatchState, PilotState

Told = Mapping[str, Any]

#: A container that waits so does not start before somebody changes something.
_HELD = frozenset(
    {
        "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName",
        "ImageInspectError", "RegistryUnavailable", "CreateContainerConfigError",
        "CreateContainerError", "RunContainerError", "CrashLoopBackOff",
    }
)  # fmt: skip
_LONGEST_REASON = 500
_QUANTITY = re.compile(r"(?P<number>\d{1,18}(?:\.\d{1,9})?)(?P<unit>m|k|M|G|T|P|[KMGTP]i)?")
_UNITS = {
    "": Decimal(1), "m": Decimal("0.001"),
    **{each: Decimal(1000) ** (power + 1) for power, each in enumerate("kMGTP")},
    **{f"{each}i": Decimal(1024) ** (power + 1) for power, each in enumerate("KMGTP")},
}  # fmt: skip
#: What a quota may limit, by which of its words: the places of pilots follow from it.
_CPU = ("requests.cpu", "cpu", "limits.cpu")
_PODS = ("pods", "count/pods", "count/jobs.batch", "count/secrets")


def inside(told: object, *path: str) -> Any:
    """Value at the end of a path of names, None where there is none."""
    for name in path:
        if not isinstance(told, Mapping):
            return None
        told = told.get(name)
    return told


def several(value: object) -> list[Told]:
    """Objects of a list; what is none, or no list, is left out."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def newest_pods(pods: Iterable[Told]) -> dict[str, Told]:
    """Newest pod of each pilot."""
    found: dict[str, Told] = {}
    for pod in sorted(pods, key=lambda each: str(inside(each, "metadata", "creationTimestamp"))):
        found[str(inside(pod, "metadata", "labels", PILOT))] = pod
    return found


def pilot_state(job: Told, pod: Told | None) -> PilotState:
    """State of a pilot, from its Job and, where it has one, its pod."""
    is_cancelled = inside(job, "metadata", "labels", CANCELLED) is not None
    finished = _finished(job)
    seen = _of_pod(pod) if pod else None
    if seen and seen.state in _LIVING and (not finished or seen.state == BatchState.RUNNING):
        return seen
    if seen is None and not finished:
        return PilotState(BatchState.QUEUED, "it has no pod yet")
    if finished and finished["type"] == "Complete":
        return PilotState(BatchState.DONE, "", seen.node if seen else "", 0, "Complete")
    if seen is None or seen.state in _LIVING:
        seen = PilotState(BatchState.FAILED, _words(finished), native="Failed")
    if is_cancelled and seen.state == BatchState.FAILED:
        return PilotState(BatchState.CANCELLED, "", seen.node, seen.exit_code, seen.native)
    return seen


_LIVING = frozenset({BatchState.QUEUED, BatchState.HELD, BatchState.RUNNING})


def _finished(job: Told) -> Told | None:
    """Condition that says that the Job is over."""
    for each in several(inside(job, "status", "conditions")):
        if each.get("status") == "True" and each.get("type") in {"Complete", "Failed"}:
            return each
    return None


def _of_pod(pod: Told) -> PilotState:
    phase = str(inside(pod, "status", "phase") or "Pending")
    node = str(inside(pod, "spec", "nodeName") or "")
    container = next(iter(several(inside(pod, "status", "containerStatuses"))), {})
    if phase == "Running":
        return PilotState(BatchState.RUNNING, "", node, native=phase)
    if phase == "Succeeded":
        return PilotState(BatchState.DONE, "", node, 0, phase)
    if phase == "Failed":
        return _of_failed_pod(pod, node, container)
    if phase == "Pending":
        return _of_waiting_pod(pod, node, container)
    return PilotState(BatchState.MISSING, f"its pod is {phase[:40]}", node, native=phase[:40])


def _of_failed_pod(pod: Told, node: str, container: Told) -> PilotState:
    ended = inside(container, "state", "terminated")
    code = inside(ended, "exitCode")
    code = code if isinstance(code, int) else None
    told = [_words(inside(pod, "status")), _words(ended)]
    if code:
        told.append(f"exit code {code}")
    native = str(inside(pod, "status", "reason") or inside(ended, "reason") or "Failed")
    why = "; ".join(filter(None, told)) or "its pod failed"
    return PilotState(BatchState.FAILED, why, node, code, native[:40])


def _of_waiting_pod(pod: Told, node: str, container: Told) -> PilotState:
    waits = inside(container, "state", "waiting")
    native = str(inside(waits, "reason") or "Pending")
    if native in _HELD:
        return PilotState(BatchState.HELD, _words(waits), node, native=native)
    for each in several(inside(pod, "status", "conditions")):
        if each.get("type") == "PodScheduled" and each.get("status") == "False":
            return PilotState(BatchState.QUEUED, _words(each), node, native="Unschedulable")
    return PilotState(BatchState.QUEUED, "", node, native=native[:40])


def _words(told: object) -> str:
    """Reason and message of something, in one line."""
    words = [str(inside(told, key) or "") for key in ("reason", "message")]
    return " ".join(": ".join(filter(None, words)).split())[:_LONGEST_REASON]


def places(quotas: Iterable[Told], cores: int) -> tuple[int, int] | None:
    """Places for pilots in all, and free ones, as the tightest quota leaves them; None: no quota.

    A quota of something else, or of some kinds of pods only, is not counted.
    """
    found = []
    for quota in quotas:
        if inside(quota, "spec", "scopes") or inside(quota, "spec", "scopeSelector"):
            continue
        for words, need in ((_CPU, cores), (_PODS, 1)):
            found += [_places_in(quota, word, need) for word in words]
    known = [each for each in found if each is not None]
    if not known:
        return None
    return min(total for total, _ in known), min(free for _, free in known)


def _places_in(quota: Told, word: str, need: int) -> tuple[int, int] | None:
    hard, used = (_amount(inside(quota, "status", key, word)) for key in ("hard", "used"))
    if hard is None:
        return None
    return int(hard // need), max(0, int((hard - (used or 0)) // need))


def _amount(value: object) -> Decimal | None:
    """Number that Kubernetes writes as `1500m`, `2` or `64Gi`."""
    found = _QUANTITY.fullmatch(str(value))
    return Decimal(found["number"]) * _UNITS[found["unit"] or ""] if found else None
