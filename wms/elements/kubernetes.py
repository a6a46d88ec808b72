"""Element (batch system adapter) of Kubernetes: pilots as Jobs of a namespace, through its API.

Every pilot is a Job `BATCH-INDEX` of one pod. Its script and its secret are in a Secret of the same
name that the Job owns, so that the cluster removes it with the Job; until it is there, the pod does
not start. Names follow from the batch, so nothing that was submitted twice runs twice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

from wms.elements import rest_helper
from wms.elements.helper_process import ask
from wms.elements.kubernetes_manifests import (
    BATCH,
    CONTAINER,
    LONGEST_SCRIPT_BYTES,
    OURS,
    OWNER,
    PILOT,
    cancelling_patch,
    job_manifest,
    pilot_name,
    secret_manifest,
)
from wms.elements.kubernetes_settings import KubernetesSettings, read_settings
from wms.elements.kubernetes_states import (
    Told,
    inside,
    newest_pods,
    pilot_state,
    places,
    several,
)
from wms.elements.logins import Login
from wms.elements.pilot_secrets import checked
from wms.elements.protocol import (
    BatchState,
    Capacity,
    PilotState,
    Refused,
    Unreachable,
    by_index,
)
from wms.elements.rest_login import who_we_are
from wms.elements.runner import CommandRunner, LocalRunner, TimeLimit
from wms.elements.settings import Settings

#: Objects in one page of a list, each of some kilobytes.
PAGE = 500
#: Batches in one question: their names are in its address.
BATCHES_PER_LIST = 50
#: Longer answers are cut, and then no JSON.
ANSWER_LIMIT_BYTES = 16 * 1024 * 1024
# A name of a label, and one of an object to which an index is added.
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,51}[a-z0-9])?")
_PILOT_ID = re.compile(rf"(?P<batch>{_NAME.pattern})-(?P<index>0|[1-9][0-9]{{0,6}})")
_LOG_LINES = 10_000
_OK, _BAD_REQUEST, _NOT_FOUND, _CONFLICT = 200, 400, 404, 409
#: Too slow, too old a page of a list, too many requests: nothing is known of what was asked.
_AGAIN, _SERVER_ERROR = frozenset({408, 410, 429}), 500
_ENDED = (BatchState.DONE, BatchState.FAILED, BatchState.CANCELLED)

Request = dict[str, Any]


class KubernetesElement:
    """One namespace of a cluster; every call ends after the time limit of the settings."""

    def __init__(
        self,
        settings: KubernetesSettings,
        runner: CommandRunner | None = None,
        login: Login | None = None,
    ) -> None:
        self.settings = settings
        self._login = login
        self._runner = runner or LocalRunner()
        base = urlsplit(settings.url).path.rstrip("/")
        self._jobs = f"{base}/apis/batch/v1/namespaces/{settings.namespace}/jobs"
        self._core = f"{base}/api/v1/namespaces/{settings.namespace}"

    def submit(
        self,
        count: int,
        script: str,
        *,
        name: str,
        cores: int,
        memory_mb: int,
        gpus: int,
        minutes: int,
        secrets: Sequence[str] = (),
    ) -> list[str]:
        if not _NAME.fullmatch(name):
            raise Refused(f"batch name {name!r}: small letters, digits and '-' only, at most 53")
        if len(script.encode()) > LONGEST_SCRIPT_BYTES:
            raise Refused(f"the script is longer than {LONGEST_SCRIPT_BYTES} bytes")
        limit = TimeLimit(self.settings.timeout_s)
        slot = {"CORES": cores, "MEMORY_MB": memory_mb, "GPUS": gpus, "MINUTES": minutes}
        jobs = [job_manifest(name, index, slot, self.settings.pod) for index in range(count)]
        private = [
            json.dumps(secret_manifest(name, index, script, each))
            for index, each in enumerate(checked(secrets, count))
        ]
        self._make(name, jobs, private, limit)
        return [pilot_name(name, index) for index in range(count)]

    def adopt(self, name: str) -> list[str]:
        if not _NAME.fullmatch(name):
            return []
        limit = TimeLimit(self.settings.timeout_s)
        indices = {}
        for job in self._lists([_list(self._jobs, f"{BATCH}={name}")], limit)[0]:
            found = _PILOT_ID.fullmatch(str(inside(job, "metadata", "name")))
            if found and found["batch"] == name:
                indices[int(found["index"])] = found[0]
        return by_index(indices)

    def status(self, ids: Collection[str]) -> dict[str, PilotState]:
        return self._status(ids, TimeLimit(self.settings.timeout_s))

    def cancel(self, ids: Collection[str]) -> None:
        patch = json.dumps(cancelling_patch())
        self._each("PATCH", ids, TimeLimit(self.settings.timeout_s), body=patch)

    def capacity(self) -> Capacity:
        limit = TimeLimit(self.settings.timeout_s)
        ours = _selector(OURS)
        quotas = {"method": "GET", "paths": [f"{self._core}/resourcequotas?limit={PAGE}"]}
        jobs, pods, limits = self._lists(
            [_list(self._jobs, ours), _list(f"{self._core}/pods", ours), quotas | {"paged": True}],
            limit,
        )
        newest = newest_pods(pods)
        states = [pilot_state(job, newest.get(_pilot_of(job))).state for job in jobs]
        running = states.count(BatchState.RUNNING)
        settings = self.settings
        total, free = places(limits, settings.cores) or (
            settings.slots,
            max(0, settings.slots - running),
        )
        return Capacity(
            is_up=True,
            total=total,
            free=min(free, max(0, total - running)),
            queued=states.count(BatchState.QUEUED) + states.count(BatchState.HELD),
            running=running,
        )

    def log(self, pilot_id: str, tail_bytes: int = 65536) -> str:
        if not _PILOT_ID.fullmatch(pilot_id):
            return ""
        limit = TimeLimit(self.settings.timeout_s)
        [pods] = self._lists([_list(f"{self._core}/pods", f"{PILOT}={pilot_id}")], limit)
        pod = newest_pods(pods).get(pilot_id)
        if pod is None:
            return ""
        name = quote(str(inside(pod, "metadata", "name")), safe="")
        path = f"{self._core}/pods/{name}/log?container={CONTAINER}&tailLines={_LOG_LINES}"
        request = {"method": "GET", "paths": [path]}
        [answer] = self._exchange([request], limit, limit_bytes=tail_bytes)
        if answer["status"] in {_NOT_FOUND, _BAD_REQUEST}:
            # Its container has not begun, or is gone.
            return ""
        return str(_good(answer)["body"])

    def forget(self, ids: Collection[str]) -> None:
        limit = TimeLimit(self.settings.timeout_s)
        # The API server would also remove a pilot that runs.
        states = self._status(ids, limit)
        ended = [each for each, found in states.items() if found.state in _ENDED]
        self._each("DELETE", ended, limit, query="?propagationPolicy=Background")

    def _make(
        self,
        batch: str,
        jobs: Sequence[Mapping[str, Any]],
        private: Sequence[str],
        limit: TimeLimit,
    ) -> None:
        """Make each Job and at once its Secret; those that are there already are not made anew."""
        follow = [_post(f"{self._core}/secrets", each) for each in private]
        requests = [
            _post(self._jobs, json.dumps(job)) | {"then": {**then, "path": then["paths"][0]}}
            for job, then in zip(jobs, follow, strict=True)
        ]
        answers = self._exchange(requests, limit)
        try:
            for answer, job, secret in zip(answers, jobs, private, strict=False):
                if answer["status"] == _CONFLICT:
                    self._complete(job, secret, limit)
                else:
                    _good(answer)
        except Refused:
            if any(map(_has_made, answers)):
                self._abandon(batch, limit)
            raise
        if len(answers) < len(jobs):
            raise Unreachable("the API server did not answer for each pilot")

    def _complete(self, job: Mapping[str, Any], secret: str, limit: TimeLimit) -> None:
        """Give a Job that was there before its Secret, which it may lack; raise `Refused`."""
        name = job["metadata"]["name"]
        [answer] = self._exchange([{"method": "GET", "paths": [f"{self._jobs}/{name}"]}], limit)
        there = _json(answer)
        if inside(there, "metadata", "labels", PILOT) != name:
            raise Refused(f"a Job {name} that is no pilot's is there already")
        owned = secret.replace(OWNER, str(inside(there, "metadata", "uid")))
        [answer] = self._exchange([_post(f"{self._core}/secrets", owned)], limit)
        if answer["status"] != _CONFLICT:
            _good(answer)

    def _abandon(self, name: str, limit: TimeLimit) -> None:
        """Remove what was taken of a refused batch."""
        query = f"labelSelector={quote(f'{BATCH}={name}')}&propagationPolicy=Background"
        request = {"method": "DELETE", "paths": [f"{self._jobs}?{query}"]}
        try:
            _good(self._exchange([request], limit)[0])
        except Refused as error:
            raise Unreachable(f"a part of the batch could not be removed: {error}") from error

    def _status(self, ids: Collection[str], limit: TimeLimit) -> dict[str, PilotState]:
        found = {each: _PILOT_ID.fullmatch(each) for each in ids}
        batches = sorted({each["batch"] for each in found.values() if each})
        requests = []
        for start in range(0, len(batches), BATCHES_PER_LIST):
            chosen = f"{BATCH} in ({','.join(batches[start : start + BATCHES_PER_LIST])})"
            # Pods last: so none is older than what its Job tells.
            requests += [_list(self._jobs, chosen), _list(f"{self._core}/pods", chosen)]
        lists = self._lists(requests, limit) if requests else []
        jobs = {_pilot_of(job): job for each in lists[::2] for job in each}
        pods = newest_pods(pod for each in lists[1::2] for pod in each)
        missing = PilotState(BatchState.MISSING)
        return {
            each: pilot_state(jobs[each], pods.get(each)) if each in jobs else missing
            for each in ids
        }

    def _each(
        self,
        method: str,
        ids: Collection[str],
        limit: TimeLimit,
        *,
        query: str = "",
        body: str | None = None,
    ) -> None:
        """Ask for something to be done with each pilot; unknown ones are passed over."""
        names = [each for each in ids if _PILOT_ID.fullmatch(each)]
        if not names:
            return
        request: Request = {
            "method": method,
            "paths": [f"{self._jobs}/{name}{query}" for name in names],
            "type": "application/merge-patch+json",
        }
        for answer in self._exchange([request | ({"body": body} if body else {})], limit):
            if answer["status"] != _NOT_FOUND:
                _good(answer)

    def _lists(self, requests: Sequence[Request], limit: TimeLimit) -> list[list[Told]]:
        """Objects of each list, over all of its pages."""
        pages = [_json(answer) for answer in self._exchange(requests, limit)]
        lists: list[list[Told]] = [[]]
        for page in pages:
            if not isinstance(inside(page, "items"), list | None):
                raise Unreachable("the API server's answer is garbled")
            lists[-1] += several(inside(page, "items"))
            if not inside(page, "metadata", "continue"):
                lists.append([])
        if len(lists) != len(requests) + 1:
            raise Unreachable("the API server's answer is not whole")
        return lists[:-1]

    def _exchange(
        self,
        requests: Sequence[Request],
        limit: TimeLimit,
        *,
        limit_bytes: int = ANSWER_LIMIT_BYTES,
    ) -> list[Told]:
        settings = self.settings
        files = {"certificate_file": "", "key_file": "", "token_file": settings.token_file}
        question = {
            "url": settings.url,
            "ca_path": settings.ca_path,
            **who_we_are(files, self._login),
            "timeout_s": limit.left_s(),
            "limit_bytes": limit_bytes,
            "requests": list(requests),
        }
        answers: list[Told] = ask(self._runner, rest_helper.__file__, question, limit)
        return answers


def _post(path: str, body: str) -> Request:
    return {"method": "POST", "paths": [path], "body": body, "type": "application/json"}


def _list(path: str, selector: str) -> Request:
    chosen = quote(selector, safe="")
    return {
        "method": "GET",
        "paths": [f"{path}?labelSelector={chosen}&limit={PAGE}"],
        "paged": True,
    }


def _selector(labels: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in labels.items())


def _pilot_of(job: Told) -> str:
    return str(inside(job, "metadata", "name"))


def _has_made(answer: Told) -> bool:
    """Whether a Job of ours is there, after the first request for it or an earlier one."""
    return bool(answer.get("follows")) or answer["status"] == _CONFLICT


def _good(answer: Told) -> Told:
    """Return the answer if the API server did what was asked."""
    status = int(answer["status"])
    if _OK <= status < _BAD_REQUEST:
        return answer
    said = f"the API server answered with status {status}: {_message(answer)}".rstrip(": ")
    if status < _OK or status >= _SERVER_ERROR or status in _AGAIN:
        raise Unreachable(said)
    raise Refused(said)


def _message(answer: Told) -> str:
    try:
        told = inside(json.loads(answer["body"]), "message")
    except ValueError:
        told = answer["body"]
    return " ".join(str(told or "").split())[:300]


def _json(answer: Told) -> Any:
    try:
        return json.loads(_good(answer)["body"])
    except ValueError as error:
        raise Unreachable("the API server's answer is garbled") from error


def kubernetes_element(settings: Settings, login: Login | None = None) -> KubernetesElement:
    """Return the adapter for the settings of a queue; raise `BadSettings`."""
    return KubernetesElement(read_settings(settings), login=login)
