"""Stand-in for a scheduler, a kubelet and its container runtime: pods as processes of this host.

    python -m tests.batch_systems.kubernetes_node FOLDER

It binds pods of all namespaces to its one node, runs the command of their container as a process
with the pod's environment and account, writes their status and serves their logs, as a kubelet
does. There are no containers: images are not looked at, but for one that cannot be pulled.
"""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.batch_systems.kubernetes_api import Api, ApiError

NODE = "node1"
CPUS, MEMORY_MB = 16, 64 * 1024
#: What no registry has.
MISSING_IMAGE = "registry.invalid/missing:1"
#: So often it looks while pods live, or have until lately; else more rarely.
PERIOD_S, IDLE_S = 0.1, 0.5
_LATELY_S = 3.0
#: The polite signal gets no longer than this, whatever the pod says.
MOST_GRACE_S = 1.0
_LOG_PATH = re.compile(r"/containerLogs/([a-z0-9-]+)/([a-z0-9.-]+)/pilot")


@dataclass
class Running:
    """A pod's process."""

    process: subprocess.Popen[bytes]
    began: float
    deadline_s: float | None
    memory_mb: int
    killed_at: float | None = None
    #: Why the kubelet ended it: reason of the pod, and of its container.
    because: tuple[str, str, str] | None = None


class Node:
    """The node; `work` is one turn of its loop."""

    def __init__(self, api: Api, folder: Path, port: int) -> None:
        self._api = api
        self._folder = folder
        self._port = port
        self._running: dict[str, Running] = {}
        self._busy_at = time.monotonic()

    @property
    def pause_s(self) -> float:
        """Seconds for which nothing is to be looked at."""
        return PERIOD_S if time.monotonic() < self._busy_at + _LATELY_S else IDLE_S

    def register(self) -> None:
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": NODE, "labels": {"kubernetes.io/hostname": NODE}},
        }
        try:
            self._api.post("/api/v1/nodes", node)
        except ApiError as error:
            if error.status != 409:
                raise
        status = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._port}},
            "capacity": {"cpu": str(CPUS), "memory": f"{MEMORY_MB}Mi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        }
        self._api.patch(f"/api/v1/nodes/{NODE}/status", {"status": status})

    def work(self) -> None:
        pods = self._api.get("/api/v1/pods")["items"]
        if any(pod["status"].get("phase") in _LIVING for pod in pods):
            self._busy_at = time.monotonic()
        free = CPUS - sum(
            _cpus(pod) for pod in pods if _is_bound(pod) and pod["status"].get("phase") in _LIVING
        )
        for pod in sorted(pods, key=lambda each: each["metadata"]["creationTimestamp"]):
            try:
                if not _is_bound(pod):
                    free -= self._schedule(pod, free)
                else:
                    self._attend(pod)
            except ApiError as error:
                # Gone, or changed, since the list was made.
                if error.status not in {404, 409}:
                    raise

    def end_all(self) -> None:
        for each in self._running.values():
            _signal(each.process, signal.SIGKILL)

    def _schedule(self, pod: dict[str, Any], free: int) -> int:
        """Bind a pod if there is room for it; return the CPUs that it takes."""
        wanted, selector = _cpus(pod), pod["spec"].get("nodeSelector", {})
        if "deletionTimestamp" in pod["metadata"]:
            return 0
        if selector.items() - {"kubernetes.io/hostname": NODE}.items():
            self._unschedulable(pod, "node(s) didn't match Pod's node affinity/selector")
            return 0
        if wanted > free:
            self._unschedulable(pod, "Insufficient cpu")
            return 0
        target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod["metadata"]["name"]},
            "target": target,
        }
        self._api.post(f"{_path(pod)}/binding", binding)
        return wanted

    def _unschedulable(self, pod: dict[str, Any], why: str) -> None:
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": f"0/1 nodes are available: 1 {why}.",
        }
        self._tell(pod, phase="Pending", conditions=[condition])

    def _attend(self, pod: dict[str, Any]) -> None:
        uid = pod["metadata"]["uid"]
        running = self._running.get(uid)
        if pod["status"].get("phase") in {"Succeeded", "Failed"}:
            if "deletionTimestamp" in pod["metadata"]:
                self._remove(pod)
        elif running is None:
            self._begin(pod)
        elif (code := running.process.poll()) is not None:
            self._ended(pod, running, code)
        else:
            self._watch(pod, running)

    def _begin(self, pod: dict[str, Any]) -> None:
        if "deletionTimestamp" in pod["metadata"]:
            self._remove(pod)
            return
        container = pod["spec"]["containers"][0]
        if container["image"] == MISSING_IMAGE:
            why = f'Back-off pulling image "{MISSING_IMAGE}"'
            self._waits(pod, "ImagePullBackOff", why)
            return
        try:
            environment = self._environment(pod, container)
        except ApiError as error:
            if error.status != 404:
                raise
            self._waits(pod, "CreateContainerConfigError", str(error))
            return
        name = pod["metadata"]["name"]
        with (self._folder / "logs" / name).open("ab") as log:
            process = subprocess.Popen(
                container["command"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                cwd=container.get("workingDir", "/"),
                start_new_session=True,
                **_account(pod),
            )
        memory = container["resources"]["limits"]["memory"]
        self._running[pod["metadata"]["uid"]] = Running(
            process,
            time.monotonic(),
            pod["spec"].get("activeDeadlineSeconds"),
            int(memory.removesuffix("Mi")),
        )
        state = {"running": {"startedAt": _now()}}
        self._tell(pod, phase="Running", startTime=_now(), containerStatuses=[_status(pod, state)])

    def _environment(self, pod: dict[str, Any], container: dict[str, Any]) -> dict[str, str]:
        namespace = pod["metadata"]["namespace"]
        found = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOSTNAME": pod["metadata"]["name"]}
        for each in container["env"]:
            value = each.get("value", "")
            if "valueFrom" in each:
                reference = each["valueFrom"]["secretKeyRef"]
                path = f"/api/v1/namespaces/{namespace}/secrets/{reference['name']}"
                data = self._api.get(path).get("data", {})
                value = base64.b64decode(data.get(reference["key"], "")).decode()
            found[each["name"]] = value
        return found

    def _watch(self, pod: dict[str, Any], running: Running) -> None:
        """End a process for what a kubelet ends it for."""
        age = time.monotonic() - running.began
        evict = self._folder / "evict" / pod["metadata"]["labels"]["job-name"]
        if running.killed_at is not None:
            grace = min(pod["spec"]["terminationGracePeriodSeconds"], MOST_GRACE_S)
            if time.monotonic() > running.killed_at + grace:
                _signal(running.process, signal.SIGKILL)
        elif "deletionTimestamp" in pod["metadata"]:
            self._end(running, None)
        elif running.deadline_s is not None and age > running.deadline_s:
            why = "Pod was active on the node longer than the specified deadline"
            self._end(running, ("DeadlineExceeded", why, "Error"))
        elif evict.exists():
            evict.unlink()
            self._end(running, ("Evicted", "The node was low on resource: memory. ", "Error"))
        elif _resident_mb(running.process.pid) > running.memory_mb:
            running.because = ("", "", "OOMKilled")
            _signal(running.process, signal.SIGKILL)

    def _end(self, running: Running, because: tuple[str, str, str] | None) -> None:
        running.because, running.killed_at = because, time.monotonic()
        _signal(running.process, signal.SIGTERM)

    def _ended(self, pod: dict[str, Any], running: Running, code: int) -> None:
        _signal(running.process, signal.SIGKILL)
        code = 128 - code if code < 0 else code
        reason, message, inner = running.because or ("", "", "Error" if code else "Completed")
        ended = {"exitCode": code, "reason": inner, "finishedAt": _now()}
        told: dict[str, Any] = {"containerStatuses": [_status(pod, {"terminated": ended})]}
        if reason:
            told |= {"reason": reason, "message": message}
        is_good = code == 0 and not reason
        self._tell(pod, phase="Succeeded" if is_good else "Failed", **told)
        if "deletionTimestamp" in pod["metadata"]:
            self._remove(pod)

    def _remove(self, pod: dict[str, Any]) -> None:
        (self._folder / "logs" / pod["metadata"]["name"]).unlink(missing_ok=True)
        self._running.pop(pod["metadata"]["uid"], None)
        self._api.delete(_path(pod), {"gracePeriodSeconds": 0})

    def _waits(self, pod: dict[str, Any], reason: str, message: str) -> None:
        state = {"waiting": {"reason": reason, "message": message}}
        self._tell(pod, phase="Pending", containerStatuses=[_status(pod, state)])

    def _tell(self, pod: dict[str, Any], **status: Any) -> None:
        if all(pod["status"].get(key) == value for key, value in status.items()):
            return
        self._api.patch(f"{_path(pod)}/status", {"status": status})


_LIVING = {None, "Pending", "Running"}


def _is_bound(pod: dict[str, Any]) -> bool:
    return bool(pod["spec"].get("nodeName"))


def _path(pod: dict[str, Any]) -> str:
    meta = pod["metadata"]
    return f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"


def _cpus(pod: dict[str, Any]) -> int:
    return sum(int(each["resources"]["requests"]["cpu"]) for each in pod["spec"]["containers"])


def _status(pod: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
    container = pod["spec"]["containers"][0]
    return {
        "name": container["name"],
        "image": container["image"],
        "imageID": "",
        "ready": "running" in state,
        "restartCount": 0,
        "state": state,
    }


def _account(pod: dict[str, Any]) -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    account = pod["spec"]["securityContext"]["runAsUser"]
    return {"user": account, "group": account, "extra_groups": []}


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _resident_mb(pid: int) -> int:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024 // 1024


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _log_server(folder: Path) -> ThreadingHTTPServer:
    """The part of a kubelet that an API server asks for logs."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            place = urlsplit(self.path)
            found = _LOG_PATH.fullmatch(place.path)
            log = folder / "logs" / found[2] if found else None
            if log is None or not log.exists():
                self.send_error(404)
                return
            lines = log.read_bytes().splitlines(keepends=True)
            tail = int(parse_qs(place.query).get("tailLines", ["-1"])[0])
            body = b"".join(lines if tail < 0 else lines[-tail:])
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "host.pem", folder / "host.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def main(folder: Path) -> None:
    """Work until a signal comes."""
    told = json.loads((folder / "cluster.json").read_text())
    for name in ("logs", "evict"):
        (folder / name).mkdir(exist_ok=True)
    server = _log_server(folder)
    # It asks as long as the tests run: a handshake each time would cost more than all that the
    # tests ask.
    api = Api(told["port"], folder / "ca.pem", told["admin_token"], keeps_open=True)
    node = Node(api, folder, server.server_address[1])
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    is_registered = False
    while not stopped.wait(node.pause_s):
        try:
            if not is_registered:
                node.register()
                is_registered = True
            node.work()
        except (OSError, ApiError) as error:
            # The API server is down, or busy; pods run on.
            sys.stderr.write(f"{error}\n")
    node.end_all()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
