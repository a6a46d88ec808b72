"""Self-test on the terminal: text of its findings, and its start beside a portal that starts.

    python -m portal.cli.self_test

Waits for the tables of the starting portal, then becomes `manage.py check_installation`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

from matching.plurals import counted
from portal.cli.state_directory import BASE, StateDirectory
from portal.embedded.readiness import POLL_S
from portal.selftest.findings import Finding, Level, troubles


def lines_of(findings: Sequence[Finding], *, is_whole: bool = False) -> Iterator[str]:
    """Lines of a self-test for the terminal: each finding, errors first, and the counts."""
    yield from (each.as_text() for each in troubles(findings))
    if is_whole:
        yield from (each.as_text() for each in findings if each.level == Level.OK)
    count = {level: sum(each.level == level for each in findings) for level in Level}
    yield (
        f"Self-test: {counted(count[Level.ERROR], 'error', 'errors')}, "
        f"{counted(count[Level.WARNING], 'warning', 'warnings')}, {count[Level.OK]} well."
    )


def begin_self_test() -> None:
    """Start the self-test as a child on the same terminal; it ends with this process."""
    subprocess.Popen(
        ["setpriv", "--pdeathsig", "TERM", "--", sys.executable, "-m", "portal.cli.self_test"],
        cwd=BASE,
        stdin=subprocess.DEVNULL,
    )


def main() -> None:
    state_dir = StateDirectory.from_environment()
    while not state_dir.is_migrated.exists():
        time.sleep(POLL_S)
    os.execv(sys.executable, [sys.executable, str(BASE / "manage.py"), "check_installation"])


if __name__ == "__main__":
    main()
