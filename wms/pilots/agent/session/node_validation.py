"""Node validation: the pilot runs its node checks before the first job, and later beside jobs.

A check that fails makes the pilot drain. What checks publish is kept for payloads. Also sends the
results, and those of other trials, and keeps the slot of an unfit node for a while.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

from ..checks.publication import NOTHING_PUBLISHED, Publication
from ..checks.runner import REASON_LENGTH, CheckRunner, NodeCheckResult
from ..control import Control
from ..node import Share
from ..server.client import BadAnswer, Client, Rejected, Unauthorised, Unavailable
from .pilot_config import PilotConfig

log = logging.getLogger("pilot")


class NodeValidation:
    """Runs the checks of the pilot's manifest, and keeps what they published.

    `validate` is for the main thread; repetitions run in one of their own, and the first that fails
    makes the pilot drain.
    """

    def __init__(
        self,
        config: PilotConfig,
        slot: Share,
        client: Client,
        control: Control,
        *,
        skew_s: Callable[[], float | None],
    ) -> None:
        self._config = config
        self._slot = slot
        self._client = client
        self._skew_s = skew_s
        self._control = control
        self._over = threading.Event()
        self._numbers: dict[str, int] = {}
        # Each time replaced as a whole: jobs begin in other threads.
        self._published: dict[str, Publication] = {}
        self._check_runner = CheckRunner(
            config.checks,
            files=config.files,
            work_dir=config.work_dir,
            control=control,
            facts=self._facts,
        )
        self.failure = ""
        self.seconds = 0.0

    def validate(self, client: Client) -> bool:
        """Run all checks and send their results; true when the node is fit.

        Raises the client's exceptions.
        """
        started = self._control.clock()
        results = self._unlisted() or self._check_runner.run(goes_on=self._config.runs_all_checks)
        self.seconds = self._control.clock() - started
        # A check that had to be interrupted tells nothing of the node.
        is_whole = not self._control.is_terminated
        self._judge(client, [each for each in results if each.is_ok or is_whole])
        return not self.failure

    def variables(self) -> dict[str, str]:
        """Variables for payloads, as checks published them; of the same, that of the later check.

        In the order of the manifest, whichever was repeated last.
        """
        published = self._published
        merged: dict[str, str] = {}
        for check in self._check_runner.checks:
            if check.name in published:
                merged.update(published[check.name].variables)
        return merged

    def report_failure(self, client: Client, what: str, reason: str) -> None:
        """Report another fault that keeps this node from work, as a failed check.

        Raises the client's exceptions.
        """
        self._judge(client, [NodeCheckResult(what, False, "node", reason[:REASON_LENGTH])])

    def tell(self, client: Client, name: str, *, failure: str) -> None:
        """Tell the result of a trial that no node has to pass. Raises the client's exceptions."""
        kind = "node" if failure else ""
        result = NodeCheckResult(name, not failure, kind, failure[:REASON_LENGTH])
        client.call("checks", {"checks": [result.to_json(self._key(name))], "is_final": True})

    def start(self) -> None:
        """Repeat the checks that have a period, in the background."""
        if any(check.period_s for check in self._check_runner.checks):
            threading.Thread(target=self._repeat, name="checks", daemon=True).start()

    def stop(self) -> None:
        """Begin no further check."""
        self._over.set()

    def keep_slot(self, until_s: float) -> None:
        """Keep the slot of an unfit node until this age of the pilot, unless it has to end."""
        until = self._control.clock() + until_s
        log.error("%s: the slot is kept for %.0f s", self.failure, max(0.0, until_s))
        control = self._control
        while not (control.is_terminated or control.is_locked_out or control.is_drain_requested):
            left_s = until - control.clock()
            if left_s <= 0:
                return
            control.waker.wait(left_s)

    def _unlisted(self) -> list[NodeCheckResult]:
        """Failed result where the work directory has other files than the manifest lists."""
        listed = {check.sha256 for check in self._config.checks if not check.is_built_in}
        folder = self._config.files
        present = set(os.listdir(folder)) if folder.is_dir() else set()
        reason = "the files of the checks are not those that the manifest lists"
        return [] if present == listed else [NodeCheckResult("files", False, "corruption", reason)]

    def _repeat(self) -> None:
        clock = self._control.clock
        checks = [(each, each.period_s) for each in self._check_runner.checks if each.period_s]
        due = [clock() + period_s for _, period_s in checks]
        while not self._control.is_terminated and not self.failure:
            index = due.index(min(due))
            if self._over.wait(max(0.0, due[index] - clock())):
                return
            check, period_s = checks[index]
            result = self._check_runner.run_one(check)
            due[index] = clock() + period_s
            is_news = not result.is_ok or self._is_changed(result)
            if is_news and not self._control.is_terminated:
                self._tell_later(result)

    def _is_changed(self, result: NodeCheckResult) -> bool:
        before = self._published.get(result.name, NOTHING_PUBLISHED)
        return result.is_ok and result.published != before

    def _tell_later(self, result: NodeCheckResult) -> None:
        try:
            self._judge(self._client, [result])
        except (Unavailable, Unauthorised, Rejected, BadAnswer) as error:
            log.warning("the server did not take the result of a check: %s", error)

    def _judge(self, client: Client, results: list[NodeCheckResult]) -> None:
        """Take no more jobs where a check has failed; send the results."""
        failed = [each for each in results if not each.is_ok]
        if failed:
            self.failure = self.failure or f"check {failed[0].name}: {failed[0].reason}"
            self._control.drain(self.failure)
        if results:
            entries = [each.to_json(self._key(each.name)) for each in results]
            client.call("checks", {"checks": entries, "is_final": True})
            # What the server does not know is told again at the next repetition.
            passed = {each.name: each.published for each in results if each.is_ok}
            self._published = {**self._published, **passed}

    def _key(self, name: str) -> str:
        """Name of one result, the same when it is sent twice."""
        number = self._numbers.get(name, 0)
        self._numbers[name] = number + 1
        return f"{name[:48]}:{number}"

    def _facts(self) -> Mapping[str, Any]:
        """Input of each check besides its name and settings: nothing secret."""
        slot = self._slot
        return {
            "server": self._config.server_url,
            "work_dir": str(self._config.work_dir),
            "clock_skew_s": self._skew_s(),
            "slot": {
                "cores": slot.cores,
                "memory_mb": slot.memory_mb,
                "gpus": slot.gpus,
                "disk_mb": slot.disk_mb,
            },
        }
