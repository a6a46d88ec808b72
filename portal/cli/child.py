"""`manage.py up` as a child process: started, waited for, checked, and stopped with its programs.

Also the first answers of a portal on this host: its name, and JSON of its addresses.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPException
from types import TracebackType
from typing import Any
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

from portal.cli.state_directory import BASE, StateDirectory
from portal.cli.steps import ProgressTimeout, Stalled, Steps
from portal.config.env import text, words
from portal.config.instance import instance_of
from portal.embedded.ports import LOOPBACK

#: So long no step of a start may take; the start as a whole takes as long as it takes.
STEP_LIMIT_S = 300
#: supervisord stops one program after the other and kills those that take too long.
STOP_LIMIT_S = 180


_LOOK_S = 0.1
_WAITING = re.compile(r"waiting for (.+) to die$", re.MULTILINE)


class PortalDidNotStart(Exception):
    """The portal ended or did not answer in time; the text has the last lines of its logs."""


class ChildPortal:
    """Context manager: inside the block a portal runs in `state_dir` and answers at `url`.

    The portal stops when the block ends, and also when this process is killed. `tell` is called
    with each step of the start, and with the names of the programs that it waits for at the end.
    """

    def __init__(
        self,
        state_dir: StateDirectory,
        *,
        tell: Callable[[str], None] = lambda line: None,
        step_limit_s: float = STEP_LIMIT_S,
    ) -> None:
        self._state_dir = state_dir
        self._step_limit_s = step_limit_s
        self._steps = Steps(state_dir)
        self._tell = tell
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return (self._state_dir.run / "public.url").read_text(encoding="utf-8").strip()

    @property
    def local_url(self) -> str:
        """The address on this host, whatever the public one is."""
        ports = json.loads((self._state_dir.run / "ports.json").read_text(encoding="utf-8"))
        return f"http://{LOOPBACK}:{ports['web']}"

    def __enter__(self) -> ChildPortal:
        self._state_dir.log.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._steps.begin()
        with (self._state_dir.log / "up.log").open("wb") as log:
            # A session of its own: Ctrl-C reaches this process only, which then stops the portal.
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", sys.executable, str(BASE / "manage.py"), "up"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                start_new_session=True, env=os.environ | {"PILOTAGE_VAR": str(self._state_dir.var)},
            )  # fmt: skip
        try:
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop all programs in order and wait until they have ended."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_LIMIT_S
        last = ""
        while self._process.poll() is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(self._process.args, STOP_LIMIT_S)
            if (names := self._waited_for()) not in {"", last}:
                last = names
                self._tell(f"Stopping the portal; still running: {names}")
            time.sleep(_LOOK_S)

    def _waited_for(self) -> str:
        """Programs that supervisord is still waiting for, by its last message."""
        file = self._state_dir.log / "up.log"
        text = file.read_text(errors="replace") if file.exists() else ""
        return next(reversed(_WAITING.findall(text)), "")

    def check(self) -> None:
        """Raise PortalDidNotStart when the portal has ended by itself."""
        if self._process is None or self._process.poll() is not None:
            raise PortalDidNotStart(f"the portal has ended:\n{self._tail('up')}")

    def _wait_until_ready(self) -> None:
        timeout = ProgressTimeout(self._step_limit_s, self._tell)
        seen = 0
        try:
            for is_there, step in (
                (self._is_web_there, "the web server answers"),
                (self._is_worker_there, "the workers answer"),
            ):
                while not is_there():
                    self.check()
                    lines = self._steps.lines()
                    timeout.saw(lines[seen:])
                    seen = len(lines)
                    timeout.check()
                    time.sleep(0.2)
                timeout.saw([*self._steps.lines()[seen:], step])
                seen = len(self._steps.lines())
        except Stalled as error:
            tails = "\n".join(self._tail(name) for name in ("migrate", "web", "worker"))
            raise PortalDidNotStart(f"{error}\n{tails}") from error

    def _is_web_there(self) -> bool:
        # What an earlier run left in the folder does not count: the process is compared first.
        pid_file = self._state_dir.run / "supervisord.pid"
        if self._process is None or not pid_file.exists():
            return False
        if pid_file.read_text(encoding="ascii").strip() != str(self._process.pid):
            return False
        return self._state_dir.is_migrated.exists() and self._answers()

    def _answers(self) -> bool:
        # Another portal may have taken the port in the same moment: no token goes to that one.
        key = text("PILOTAGE_SECRET_KEY", run_file=self._state_dir.run / "secret_key")
        return answering(f"{self.local_url}/health/live") == instance_of(key)

    def _is_worker_there(self) -> bool:
        """Whether a worker took a control loop's task."""
        found = fetch_json(f"{self.local_url}/health/ready")
        loops = found["checks"]["loops"].values() if found else ()
        return any(loop["status"] == "ok" for loop in loops)

    def _tail(self, name: str) -> str:
        file = self._state_dir.log / f"{name}.log"
        lines = file.read_text(errors="replace").splitlines() if file.exists() else []
        return "\n".join([f"{file}:", *lines[-15:]])


def answering(url: str) -> str | None:
    """Name of the portal that answers at the address; None without an answer of a portal."""
    found = fetch_json(url)
    return str(found["portal"]) if isinstance(found, dict) and "portal" in found else None


def fetch_json(url: str) -> Any:
    """JSON answer of a portal on this host, whatever its status; None without an answer."""
    try:
        # The portal is on this host: a proxy that the environment names is not asked.
        request = Request(url, headers={"Host": _allowed_host()})
        with build_opener(ProxyHandler({})).open(request, timeout=30) as answer:
            return json.load(answer)
    except HTTPError as error:
        with error, suppress(OSError, HTTPException, ValueError):
            return json.load(error)
    except (OSError, HTTPException, ValueError):
        return None
    return None


def _allowed_host() -> str:
    """Host name that the web server accepts, which may differ from this host's address."""
    first = words("PILOTAGE_ALLOWED_HOSTS", LOOPBACK)[0].removeprefix(".")
    return LOOPBACK if first == "*" else first
