"""View of the history page as addresses: shown window and panes, and links to other ranges.

Links lead earlier, later, wider, and to each range that ends now.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from urllib.parse import urlencode

from portal.history.groupings import USUAL_TOP
from portal.history.pane_data import stamp
from portal.history.panes import Pane, panes, usual_panes
from portal.history.parts import WHOLE
from portal.history.windows import LONGEST, RANGES, USUAL_RANGE, Window

_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class RangeButton:
    """A range with its address."""

    label: str
    address: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class Timeline:
    """View of the page as addresses: window, site, function, panes.

    Without a window, which a fault leaves it, the buttons lead to the usual view.
    """

    window: Window | None
    chosen: Sequence[str]

    @property
    def panes(self) -> list[Pane]:
        """Panes to be drawn, in the order of the page."""
        if not self.chosen:
            if self.window is None:
                return usual_panes(WHOLE)
            by = self.window.group_by
            return [pane.titled(by) for pane in usual_panes(self.window.part, by)]
        by = self.window.group_by if self.window else None
        return [pane.titled(by) for pane in panes().values() if pane.name in self.chosen]

    @property
    def drawn(self) -> set[str]:
        """Names of the drawn panes."""
        return {pane.name for pane in self.panes}

    @property
    def query(self) -> str:
        """Query of the window alone, for charts and exports."""
        return self._address(self.window, with_panes=False) if self.window else ""

    @property
    def ranges(self) -> list[RangeButton]:
        """A button for each range that ends now."""
        current = self.window.range if self.window else ""
        return [
            RangeButton(label, self._of_range(name), name == current)
            for name, (label, _) in RANGES.items()
        ]

    @property
    def earlier(self) -> str:
        """Address half a window earlier; empty where nothing is kept."""
        if self.window is None:
            return ""
        end = self.window.until - self.window.length / 2
        return self._moved(-0.5, 0.5) if end - _MINUTE > self.window.now - LONGEST else ""

    @property
    def later(self) -> str:
        """Address half a window later; empty where the window ends now."""
        if self.window is None or self.window.until >= self.window.now:
            return ""
        return self._moved(0.5, 1.5)

    @property
    def wider(self) -> str:
        """Address of twice the window around the same middle; empty where nothing more is kept."""
        if self.window is None or self.window.length * 2 > LONGEST:
            return ""
        return self._moved(-0.5, 1.5)

    def _of_range(self, name: str) -> str:
        if self.window is None:
            return f"?range={name}"
        return self._address(replace(self.window, range=name))

    def _moved(self, since: float, until: float) -> str:
        """Address of the window between these fractions of it, shifted to end now at the latest."""
        if self.window is None:
            return ""
        old, start = self.window, self.window.since
        length = (until - since) * old.length
        end = min(start + until * old.length, old.now)
        moved = replace(old, since=_whole(end - length), until=_whole(end), range="")
        return self._address(moved)

    def _address(self, window: Window, *, with_panes: bool = True) -> str:
        pairs: list[tuple[str, str]] = []
        if not window.range:
            pairs += [
                ("from", stamp(window.since.timestamp())),
                ("to", stamp(window.until.timestamp())),
            ]
        elif window.range != USUAL_RANGE or not with_panes:
            pairs.append(("range", window.range))
        pairs += [
            (name, value)
            for name, value, usual in (
                ("site", window.part.site, ""),
                ("frontend", window.part.frontend, ""),
                ("function", window.function, "avg"),
                ("resolution", window.archive, "auto"),
                ("group_by", window.group_by or "", ""),
                ("top", str(window.top) if window.group_by else "", str(USUAL_TOP)),
            )
            if value not in ("", usual)
        ]
        if with_panes:
            pairs += [("pane", name) for name in self.chosen]
        return f"?{urlencode(pairs)}"


def _whole(moment: datetime) -> datetime:
    """The nearest minute: seconds in an address are noise."""
    return (moment + timedelta(seconds=30)).replace(second=0, microsecond=0)
