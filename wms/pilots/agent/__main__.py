"""Entry of the pilot: reads its mission from standard input, where no other process can see it."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from . import sandbox
from .control import Control
from .loop import EXIT_TERMINATED, Agent, Mission

#: After a termination signal the pilot is gone by then, even if the server does not answer.
LAST_RESORT_S = 9

log = logging.getLogger("pilot")


class OutOfTime(BaseException):
    """The pilot was told to end and could not do so in an orderly way."""


def main() -> int:
    """Run one pilot and return its exit code."""
    _log_to_stdout()
    mission = _read_mission()
    os.umask(0o077)
    control = Control()
    _listen_to_signals(control)
    try:
        return Agent(mission, control).run()
    except OutOfTime:
        log.error("no time left: the pilot ends without a good-bye")
        return EXIT_TERMINATED
    finally:
        sandbox.remove(mission.work_dir)


def _log_to_stdout() -> None:
    handler = logging.StreamHandler(sys.stdout)
    formatter = logging.Formatter("%(asctime)sZ %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    log.addHandler(handler)
    log.setLevel(logging.INFO)


def _read_mission() -> Mission:
    """Read the mission, then put nothing in place of standard input."""
    given = json.loads(sys.stdin.read())
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return Mission(given["server"], given["pilot"], given["secret"], Path(given["work_dir"]))


def _listen_to_signals(control: Control) -> None:
    def on_terminate(number: int, frame: FrameType | None) -> None:
        if not control.is_terminated:
            signal.alarm(LAST_RESORT_S)
        control.terminate()

    def on_alarm(number: int, frame: FrameType | None) -> None:
        raise OutOfTime

    signal.signal(signal.SIGALRM, on_alarm)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, on_terminate)


if __name__ == "__main__":
    sys.exit(main())
