"""Program inside the fence that starts one script, stops it, and reports its exit code.

It sets resource limits, account and confinement, and kills what the script leaves. Its text is
given to an interpreter on the command line, so it needs only Python's standard library and the
module that goes with it. stdin brings one line of JSON; when that is closed, by the service or its
death, the script is stopped. The result is written as JSON to the descriptor that the first
argument names.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
from typing import Any

from wms.pilots.agent.supervisor import confinement

#: From the polite signal to the hard one.
GRACE_S = 3.0
_PR_SET_DUMPABLE = 4
_MOST_FAILURE = 300


def main() -> None:
    status_fd = int(sys.argv[1])
    os.set_inheritable(status_fd, False)
    _deny_inspection()
    spec = _read_spec()
    if spec["gate"]:
        # The script's account could not do it, and has it from us.
        confinement.empty_bounding_set()
    wake_up, sink = os.pipe()
    for end in (wake_up, sink):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(sink)
    path = _path_of(spec)
    try:
        process = _start(spec, path)
    except OSError as error:
        _report(status_fd, {"failure": _start_failure(error, spec, path)[:_MOST_FAILURE]})
        return
    _wait(process, wake_up)
    _kill_remaining(process, spec.get("uid"))
    process.wait()
    _report(status_fd, {"exit_code": process.returncode})


def _deny_inspection() -> None:
    """Keep processes of the same account, as the script may be, from our memory and descriptors."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0):
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")


def _read_spec() -> dict[str, Any]:
    text = b""
    while not text.endswith(b"\n"):
        piece = os.read(0, 65536)
        if not piece:
            sys.exit(1)
        text += piece
    spec: dict[str, Any] = json.loads(text)
    return spec


def _report(status_fd: int, status: dict[str, Any]) -> None:
    os.write(status_fd, json.dumps(status).encode())


def _path_of(spec: dict[str, Any]) -> str:
    """Path of the executable: a file of the directory, else a program in PATH."""
    name: str = spec["executable"]
    in_directory = os.path.join(spec["directory"], name)
    if "/" in name or os.path.exists(in_directory):
        return in_directory
    return shutil.which(name, path=spec["environment"].get("PATH", "")) or in_directory


def _start(spec: dict[str, Any], path: str) -> subprocess.Popen[bytes]:
    limits = [(getattr(resource, name), value) for name, value in spec["limits"].items()]

    def restrict() -> None:
        for kind, value in limits:
            # A lower hard limit cannot be raised, and need not be.
            hard = resource.getrlimit(kind)[1]
            most = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (most, most))
        if spec["gate"]:
            confinement.confine({**spec["gate"], "denied": bytes.fromhex(spec["gate"]["denied"])})

    account: dict[str, Any] = {}
    if spec.get("uid"):
        account = {"user": spec["uid"], "group": spec["uid"], "extra_groups": []}
    return subprocess.Popen(
        [spec["executable"], *spec["arguments"]],
        executable=path,
        cwd=spec["directory"],
        env=spec["environment"],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        umask=0o022,
        preexec_fn=restrict,
        **account,
    )


def _start_failure(error: OSError, spec: dict[str, Any], path: str) -> str:
    """Reason why the script could not be started, for its author."""
    name = spec["executable"]
    if error.filename == spec["directory"]:
        return f"the directory of the node cannot be entered: {error.strerror}"
    if not os.path.exists(path):
        where = "where scripts run" if name.startswith("/") else "in the node's directory"
        return f"{name} is not there: neither {where} nor among the programs of the system"
    if error.errno == errno.ENOEXEC:
        return f"{name} is no program, and its first line does not begin with #!"
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        hint = _line_end_hint(path)
        return f"the interpreter that the first line of {name} names is not there{hint}"
    return f"{name}: {error.strerror}"


def _line_end_hint(path: str) -> str:
    with contextlib.suppress(OSError), open(path, "rb") as file:
        if file.readline(256).endswith(b"\r\n"):
            return "; that line ends as on Windows, with a carriage return"
    return ""


def _wait(process: subprocess.Popen[bytes], wake_up: int) -> None:
    """Wait for the script's end; terminate it once stdin is closed."""
    stop_at = None
    watched = [0, wake_up]
    while not _has_ended(process):
        left = None if stop_at is None else max(stop_at - time.monotonic(), 0.05)
        ready = select.select(watched, [], [], left)[0]
        if wake_up in ready:
            os.read(wake_up, 512)
        if 0 in ready and not os.read(0, 512):
            watched.remove(0)
            stop_at = time.monotonic() + GRACE_S
            _signal_group(process, signal.SIGTERM)
        if stop_at is not None and time.monotonic() >= stop_at:
            _signal_group(process, signal.SIGKILL)


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    # It stays a zombie until all of its group are ended: till then the number is its own.
    how = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, process.pid, how) is not None


def _signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _kill_remaining(process: subprocess.Popen[bytes], uid: int | None) -> None:
    """Kill processes that the script has left: its group, and all others of its own account."""
    _signal_group(process, signal.SIGKILL)
    if not uid:
        return
    pid = os.fork()
    if pid == 0:
        try:
            # As this account, "all processes" are those of the account.
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
