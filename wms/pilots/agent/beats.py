"""Heartbeats: a thread that tells the server what the pilot holds, and brings back its commands."""

from __future__ import annotations

import logging
import random
import threading
from pathlib import Path
from typing import Any

from . import node
from .attributes import Told
from .client import BadAnswer, Client, Rejected, Unauthorised, Unavailable
from .control import Control

log = logging.getLogger("pilot")


class Heartbeats:
    """Beats until stopped, whatever the main thread does; one missed beat is not repeated."""

    def __init__(self, client: Client, control: Control, *, every_s: float, work_dir: Path) -> None:
        self._client = client
        self._control = control
        self._every_s = every_s
        self._work_dir = work_dir
        self._told = Told(work_dir)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat_on, name="heartbeats", daemon=True)

    def start(self) -> None:
        """Send the first beat now and the others in the background."""
        self._thread.start()

    def stop(self) -> None:
        """Send no more beats; does not wait for one that is under way."""
        self._over.set()

    def _beat_on(self) -> None:
        while not self._over.is_set():
            try:
                self._beat()
            except Unauthorised as error:
                log.error("the server does not know this pilot any more: %s", error)
                self._control.lock_out()
                return
            except (Unavailable, Rejected, BadAnswer, OSError) as error:
                log.warning("a heartbeat was not accepted: %s", error)
            self._over.wait(self._every_s * random.uniform(0.9, 1.0))

    def _beat(self) -> None:
        jobs = self._told.entries(self._control.held())
        body = {"jobs": jobs, "load": node.load(self._work_dir)}
        answer = self._client.call("heartbeat", body, patience_s=0.0)
        self._told.accepted(jobs)
        commands = answer.get("commands")
        for command in commands if isinstance(commands, list) else ():
            self._obey(command)

    def _obey(self, command: Any) -> None:
        """Carry out one command; one that a newer server may send is ignored."""
        try:
            name = command["command"]
            if name == "kill":
                self._control.kill((int(command["job"]), int(command["attempt"])))
            elif name == "drain":
                self._control.drain()
            else:
                log.warning("unknown command %r", name)
        except (KeyError, TypeError, ValueError):
            log.warning("not a command: %r", command)
