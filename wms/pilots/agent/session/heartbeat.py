"""Heartbeat thread of the pilot: sends attempts at hand, usage, attributes; obeys the answer.

The answer has commands: kill, peek, drain. After each heartbeat the thread uploads what is new in
the pilot's log, and has waiting reports sent again.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import node
from ..control import Attempt, Control
from ..files.job_attributes import ReportedAttributes
from ..jobs.job_description import BearerToken
from ..jobs.running_jobs import RunningJobs
from ..server.client import BadAnswer, Client, Rejected, Unauthorised, Unavailable
from ..server.log_upload import LogUploader
from ..server.report_spool import ReportSpool
from .told_time import ToldTime

log = logging.getLogger("pilot")


class Heartbeats:
    """Sends heartbeats until stopped, whatever the main thread does; a lost one is not repeated.

    `jobs` are those at hand, once the pilot takes some; `told_time` the time that its batch system
    leaves. `validation_s` and the payloads' `network` are sent once known.
    """

    def __init__(
        self,
        client: Client,
        control: Control,
        *,
        every_s: float,
        work_dir: Path,
        jobs: Callable[[], RunningJobs | None],
        told_time: ToldTime,
        spool: ReportSpool,
        log_uploader: LogUploader,
    ) -> None:
        self._client = client
        self._control = control
        self._every_s = every_s
        self._work_dir = work_dir
        self._jobs = jobs
        self._told_time = told_time
        self._spool = spool
        self._log_uploader = log_uploader
        self._reported = ReportedAttributes(work_dir)
        self._sequence = 0
        self.validation_s: float | None = None
        self.network = ""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeats", daemon=True)

    def start(self) -> None:
        """Send the first heartbeat now and the others in the background."""
        self._thread.start()

    def stop(self) -> None:
        """Send no more heartbeats; does not wait for one that is under way."""
        self._over.set()

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                self._send()
            except Unauthorised as error:
                log.error("the server does not know this pilot any more: %s", error)
                self._control.lock_out()
                return
            except (Unavailable, Rejected, BadAnswer, OSError) as error:
                log.warning("a heartbeat was not accepted: %s", error)
            except Exception:
                # A pilot that falls silent is taken for dead, and its jobs are run elsewhere too.
                log.exception("a heartbeat failed")
            else:
                self._spool.retry_now()
                self._log_uploader.upload()
            self._over.wait(self._every_s * random.uniform(0.9, 1.0))

    def _send(self) -> None:
        # Reports that are still spooled belong to attempts that the pilot has not let go of.
        held = dict.fromkeys([*self._control.attempts(), *self._spool.attempts()])
        entries = self._reported.entries(list(held))
        self._sequence += 1
        body: dict[str, Any] = {
            "jobs": self._with_usage(entries),
            "load": node.load(self._work_dir),
            "is_draining": self._control.is_draining,
            "sequence": self._sequence,
            **self._told_time.news(),
        }
        if self.validation_s is not None:
            body["totals"] = {"validation_s": round(self.validation_s, 3)}
        if self.network:
            body["network"] = self.network
        answer = self._client.call("heartbeat", body, retry_s=0.0)
        self._reported.accepted(entries)
        self._told_time.accepted()
        commands = answer.get("commands")
        for command in commands if isinstance(commands, list) else ():
            self._execute(command)

    def _with_usage(self, entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Entries with the usage of their payloads, and those that need another token."""
        running = self._jobs()
        if running is None:
            return [dict(entry) for entry in entries]
        usage, wanting = running.usage(), set(running.want_tokens())
        more = {
            key: {
                **({"usage": usage[key]} if usage.get(key) else {}),
                **({"wants_token": True} if key in wanting else {}),
            }
            for key in {*usage, *wanting}
        }
        return [{**entry, **more.get((entry["job"], entry["attempt"]), {})} for entry in entries]

    def _execute(self, command: Any) -> None:
        """Execute one command of the server; one that a newer server may send is ignored."""
        try:
            name, reason = command["command"], str(command.get("reason") or "")
            if name == "kill":
                self._control.kill((int(command["job"]), int(command["attempt"])), reason)
            elif name == "peek":
                self._control.peek((int(command["job"]), int(command["attempt"])))
            elif name == "token":
                self._renew((int(command["job"]), int(command["attempt"])), command)
            elif name == "drain":
                self._control.drain_on_request(reason)
            else:
                log.warning("unknown command %r", name)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            # Without the command, which may hold a token.
            log.warning("not a command: %s", type(error).__name__)

    def _renew(self, attempt: Attempt, command: Mapping[str, Any]) -> None:
        running = self._jobs()
        if running is not None:
            running.renew_token(attempt, BearerToken.from_json(command))
