"""Scheduler of Celery beat for the control loops, with at most one waiting message for each.

Each loop is asked for at the start and once in its period, less often while the installation is
idle. Of several schedulers the one with the lease asks; when it falls silent, another one does.
"""

from __future__ import annotations

import time
from typing import Any

from celery.beat import Scheduler

from portal.config.leases import Lease
from wms.core import loops
from wms.core.idling import idle_for_s

#: Activity in an idle installation is noticed after so long at the latest.
_LOOK_S = 1.0
_SHORTEST_SLEEP_S = 0.05


class LoopScheduler(Scheduler):
    """Celery scheduler that asks for each loop once in its period, less often while it is idle.

    It keeps its own times in memory only: periods are seconds, and a file could be torn by a crash.
    All loops run at once when it begins to lead.
    """

    def setup_schedule(self) -> None:
        """Read the registered loops."""
        self.app.loader.import_default_modules()
        self._asked_at_s: dict[str, float] = {}
        self._lease = Lease("beat")

    def tick(self, *_: Any, **__: Any) -> float:
        """Ask for the turns that are due, if it leads; return the seconds until the next look."""
        if not self._lease.is_held():
            self._asked_at_s.clear()
            return _LOOK_S
        idle_s, now_s = idle_for_s(), time.monotonic()
        until_next_s = _LOOK_S
        for loop in loops.LOOPS.values():
            asked_at_s = self._asked_at_s.get(loop.name)
            if asked_at_s is not None:
                left_s = asked_at_s + loop.due_after_s(idle_s) - now_s
                if left_s > 0:
                    until_next_s = min(until_next_s, left_s)
                    continue
            self._asked_at_s[loop.name] = now_s
            loops.ask_loop(loop.task)
        return max(until_next_s, _SHORTEST_SLEEP_S)

    def close(self) -> None:
        """Release of the lease: another one leads at once."""
        self._lease.release()
        super().close()
