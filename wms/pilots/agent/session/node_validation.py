"""Proves the node before the first job, and again and again while jobs run."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

from ..checks.chain import REASON_LENGTH, Chain, Result
from ..control import Control
from ..node import Share
from ..server.client import BadAnswer, Client, Rejected, Unauthorised, Unavailable
from .pilot_config import Mission

log = logging.getLogger("pilot")


class Validation:
    """The checks of the mission's manifest, and nothing else.

    `prove` is for the main thread; repetitions run in one of their own, and the first that fails
    makes the pilot drain.
    """

    def __init__(
        self,
        mission: Mission,
        slot: Share,
        client: Client,
        control: Control,
        *,
        skew_s: Callable[[], float | None],
    ) -> None:
        self._mission = mission
        self._slot = slot
        self._client = client
        self._skew_s = skew_s
        self._control = control
        self._over = threading.Event()
        self._numbers: dict[str, int] = {}
        self._chain = Chain(
            mission.checks,
            files=mission.files,
            work_dir=mission.work_dir,
            control=control,
            facts=self._facts,
        )
        self.failure = ""
        self.seconds = 0.0

    def prove(self, client: Client) -> bool:
        """Run all checks and tell the server; true when the node is fit.

        Raises the client's exceptions.
        """
        started = self._control.clock()
        results = self._unlisted() or self._chain.run()
        self.seconds = self._control.clock() - started
        # A check that had to be interrupted tells nothing of the node.
        is_whole = not self._control.is_terminated
        self._judge(client, [each for each in results if each.is_ok or is_whole])
        return not self.failure

    def fail(self, client: Client, what: str, reason: str) -> None:
        """Tell the server of what else keeps this node from work, as of a check that failed.

        Raises the client's exceptions.
        """
        self._judge(client, [Result(what, False, "node", reason[:REASON_LENGTH])])

    def start(self) -> None:
        """Repeat those checks that have a period, in the background."""
        if any(check.period_s for check in self._chain.checks):
            threading.Thread(target=self._repeat, name="checks", daemon=True).start()

    def stop(self) -> None:
        """Begin no further check."""
        self._over.set()

    def hold(self, until_s: float) -> None:
        """Keep the slot of an unfit node until this age of the pilot, unless it has to go."""
        until = self._control.clock() + until_s
        log.error("%s: the slot is kept for %.0f s", self.failure, max(0.0, until_s))
        control = self._control
        while not (control.is_terminated or control.is_locked_out or control.is_sent_off):
            left_s = until - control.clock()
            if left_s <= 0:
                return
            control.bell.wait(left_s)

    def _unlisted(self) -> list[Result]:
        """The failure of a work directory with other files than the manifest lists."""
        listed = {check.sha256 for check in self._mission.checks if not check.is_built_in}
        folder = self._mission.files
        found = set(os.listdir(folder)) if folder.is_dir() else set()
        reason = "the files of the checks are not those that the manifest lists"
        return [] if found == listed else [Result("files", False, "corruption", reason)]

    def _repeat(self) -> None:
        clock = self._control.clock
        checks = [(each, each.period_s) for each in self._chain.checks if each.period_s]
        due = [clock() + period_s for _, period_s in checks]
        while not self._control.is_terminated and not self.failure:
            index = due.index(min(due))
            if self._over.wait(max(0.0, due[index] - clock())):
                return
            check, period_s = checks[index]
            result = self._chain.run_one(check)
            due[index] = clock() + period_s
            if not result.is_ok and not self._control.is_terminated:
                self._fail_later(result)

    def _fail_later(self, result: Result) -> None:
        try:
            self._judge(self._client, [result])
        except (Unavailable, Unauthorised, Rejected, BadAnswer) as error:
            log.warning("the server did not take the result of a check: %s", error)

    def _judge(self, client: Client, results: list[Result]) -> None:
        """Take no more jobs where one has failed, and tell the server."""
        failed = [each for each in results if not each.is_ok]
        if failed:
            self.failure = self.failure or f"check {failed[0].name}: {failed[0].reason}"
            self._control.drain(self.failure)
        if results:
            told = [each.to_json(self._key(each.name)) for each in results]
            client.call("checks", {"checks": told, "is_final": True})

    def _key(self, name: str) -> str:
        """The name of one result, also when it is told twice."""
        number = self._numbers.get(name, 0)
        self._numbers[name] = number + 1
        return f"{name[:48]}:{number}"

    def _facts(self) -> Mapping[str, Any]:
        """What each check is given besides its name and settings: nothing secret."""
        slot = self._slot
        return {
            "server": self._mission.server_url,
            "work_dir": str(self._mission.work_dir),
            "clock_skew_s": self._skew_s(),
            "slot": {
                "cores": slot.cores,
                "memory_mb": slot.memory_mb,
                "gpus": slot.gpus,
                "disk_mb": slot.disk_mb,
            },
        }
