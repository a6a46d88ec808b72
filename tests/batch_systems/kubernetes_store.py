"""Objects of `kubernetes_fake`, and what API server and controllers do with them.

A store outlives its process: each change is added to a file. Versions of resources grow
by one with every change. Removal of what bears an owner follows the owner's; a pod that runs is
removed when its kubelet has ended it.
"""

from __future__ import annotations

import copy
import json
import secrets
import threading
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.batch_systems.kubernetes_schema import check, check_change

Thing = dict[str, Any]
#: Resource, namespace (empty for what has none) and name.
Key = tuple[str, str, str]

#: What a quota counts, and of which resource.
_COUNTED = {"count/jobs.batch": "jobs", "count/secrets": "secrets", "pods": "pods"}
#: Where nothing changes, deadlines are looked at so often.
_DEADLINES_S = 0.5


class Denied(Exception):
    """An answer other than a good one: its status code, reason and message."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status, self.reason = status, reason


class Store:
    """All objects, under one lock."""

    def __init__(self, file: Path) -> None:
        self.lock = threading.RLock()
        self._file = file
        self._things: dict[Key, Thing] = {}
        self.version = 1
        #: Set with each change.
        self.has_changed = threading.Event()
        for line in file.read_text().splitlines() if file.exists() else ():
            self.version, words, thing = json.loads(line)
            self._things[tuple(words)] = thing
            if thing is None:
                del self._things[tuple(words)]

    def get(self, key: Key) -> Thing:
        if key not in self._things:
            raise Denied(404, "NotFound", f'{key[0]} "{key[2]}" not found')
        return self._things[key]

    def all_of(self, resource: str, namespace: str = "") -> list[Thing]:
        """Objects of a resource, of one namespace or of all, in the order of their names."""
        found = [key for key in self._things if key[0] == resource and namespace in {"", key[1]}]
        return [self._things[key] for key in sorted(found)]

    def add(self, key: Key, thing: Thing) -> Thing:
        resource, namespace, name = key
        if key in self._things:
            raise Denied(409, "AlreadyExists", f'{resource} "{name}" already exists')
        self._check_quota(resource, namespace)
        meta = thing.setdefault("metadata", {})
        meta |= {"uid": str(uuid.uuid4()), "creationTimestamp": now()}
        if namespace:
            meta["namespace"] = namespace
        check(thing)
        if resource in {"jobs", "pods"}:
            thing.setdefault("status", {})
        return self._put(key, thing)

    def change(self, key: Key, patch: Thing) -> Thing:
        """Apply a merge patch."""
        old = self.get(key)
        told = patch.get("metadata", {}).get("resourceVersion")
        if told not in {None, old["metadata"]["resourceVersion"]}:
            raise Denied(409, "Conflict", "the object has been modified")
        new = merged(old, patch)
        check_change(old, new)
        return self._put(key, new)

    def bind(self, key: Key, node: str) -> None:
        pod = copy.deepcopy(self.get(key))
        if pod["spec"].get("nodeName"):
            raise Denied(409, "Conflict", "the pod is bound already")
        pod["spec"]["nodeName"] = node
        self._put(key, pod)

    def remove(self, key: Key, *, grace_s: int | None = None) -> None:
        """Remove an object; a pod that is bound and not over is only marked, unless at once."""
        thing = self.get(key)
        is_bound = key[0] == "pods" and thing["spec"].get("nodeName")
        is_over = thing.get("status", {}).get("phase") in {"Succeeded", "Failed"}
        if is_bound and not is_over and grace_s != 0:
            self._put(key, merged(thing, {"metadata": {"deletionTimestamp": now()}}))
            return
        del self._things[key]
        self.version += 1
        self._write(key, None)

    def count_quotas(self) -> None:
        """Use of each quota, written into its status."""
        for key, quota in list(self._things.items()):
            if key[0] == "resourcequotas":
                hard = quota["spec"]["hard"]
                used = {word: str(self.used(key[1], word)) for word in hard if word in _COUNTED}
                told = {"hard": hard, "used": used}
                if quota.get("status") != told:
                    self.change(key, {"status": told})

    def collect(self) -> None:
        """Remove what has owners, all of which are gone."""
        living = {thing["metadata"]["uid"] for thing in self._things.values()}
        for key, thing in list(self._things.items()):
            owners = thing["metadata"].get("ownerReferences", [])
            is_orphan = owners and not any(each["uid"] in living for each in owners)
            if is_orphan and "deletionTimestamp" not in thing["metadata"]:
                self.remove(key)

    def used(self, namespace: str, word: str) -> int:
        """Number of objects that a quota counts."""
        return len(self.all_of(_COUNTED[word], namespace))

    def _check_quota(self, resource: str, namespace: str) -> None:
        for quota in self.all_of("resourcequotas", namespace) if namespace else []:
            for word, hard in quota["spec"]["hard"].items():
                if _COUNTED.get(word) == resource and self.used(namespace, word) >= int(hard):
                    name = quota["metadata"]["name"]
                    raise Denied(
                        403, "Forbidden", f"exceeded quota: {name}, limited: {word}={hard}"
                    )

    def _put(self, key: Key, thing: Thing) -> Thing:
        self.version += 1
        thing["metadata"]["resourceVersion"] = str(self.version)
        self._things[key] = thing
        self._write(key, thing)
        return thing

    def _write(self, key: Key, thing: Thing | None) -> None:
        # By one call of the system: a process that is killed leaves no half of it.
        with self._file.open("ab", buffering=0) as file:
            file.write(json.dumps([self.version, key, thing]).encode() + b"\n")
        self.has_changed.set()


def merged(old: Any, patch: Any) -> Any:
    """Result of a JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    new = dict(copy.deepcopy(old)) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            new.pop(key, None)
        else:
            new[key] = merged(new.get(key), value)
    return new


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Controllers:
    """Controllers that make pods of Jobs, tell Jobs what became of them, and count for quotas."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def run(self, stopped: threading.Event, period_s: float = 0.05) -> None:
        while not stopped.wait(period_s):
            self._store.has_changed.wait(_DEADLINES_S)
            self._store.has_changed.clear()
            with self._store.lock:
                for job in self._store.all_of("jobs"):
                    self._attend(job)
                self._store.collect()
                self._store.count_quotas()

    def _attend(self, job: Thing) -> None:
        status = job["status"]
        if any(each["status"] == "True" for each in status.get("conditions", [])):
            return
        pods = self._pods_of(job)
        phases = [pod["status"].get("phase") for pod in pods]
        if not status:
            self._tell(job, {"startTime": now(), "began": time.time()})
        elif time.time() > status["began"] + job["spec"].get("activeDeadlineSeconds", 2**31):
            for pod in pods:
                self._store.remove(_key("pods", pod))
            why = "Job was active longer than specified deadline"
            self._finish(job, "Failed", "DeadlineExceeded", why)
        elif "Succeeded" in phases:
            self._finish(job, "Complete", "", "")
        elif phases.count("Failed") > job["spec"]["backoffLimit"]:
            why = "Job has reached the specified backoff limit"
            self._finish(job, "Failed", "BackoffLimitExceeded", why)
        elif not pods:
            self._start(job)

    def _pods_of(self, job: Thing) -> list[Thing]:
        uid = job["metadata"]["uid"]
        return [
            pod
            for pod in self._store.all_of("pods", job["metadata"]["namespace"])
            if any(each["uid"] == uid for each in pod["metadata"].get("ownerReferences", []))
        ]

    def _start(self, job: Thing) -> None:
        meta, template = job["metadata"], copy.deepcopy(job["spec"]["template"])
        name = f"{meta['name']}-{secrets.token_hex(3)[:5]}"
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": meta["name"], "uid": meta["uid"]}
        labels = {"job-name": meta["name"], "controller-uid": meta["uid"]}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "labels": template["metadata"]["labels"] | labels,
                "ownerReferences": [owner | {"controller": True}],
            },
            "spec": template["spec"],
            "status": {"phase": "Pending"},
        }
        try:
            self._store.add(("pods", meta["namespace"], name), pod)
        except Denied:
            # Over quota: it is tried again.
            return

    def _finish(self, job: Thing, kind: str, reason: str, message: str) -> None:
        condition = {"type": kind, "status": "True", "reason": reason, "message": message}
        self._tell(job, {"conditions": [condition]})

    def _tell(self, job: Thing, status: Thing) -> None:
        self._store.change(_key("jobs", job), {"status": status})


def _key(resource: str, thing: Thing) -> Key:
    return resource, thing["metadata"]["namespace"], thing["metadata"]["name"]
