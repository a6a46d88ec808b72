"""Entry point of the pilot agent: configuration from standard input, signal handlers, exit code.

Also hides the pilot's memory, and tells the server why a pilot never registers.
"""

from __future__ import annotations

import ctypes
import functools
import json
import logging
import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

from .control import Control
from .files import sandbox
from .server.client import BadAnswer, Client, Rejected, Unauthorised, Unavailable
from .server.log_upload import LOG_FILE, log_to
from .session.loop import EXIT_ERROR, EXIT_TERMINATED, Agent
from .session.pilot_config import BadManifest, read_config

#: After a termination signal the pilot is gone by then, even if the server does not answer.
LAST_RESORT_S = 9
UNFIT_RETRY_S = 60.0
_PR_SET_DUMPABLE = 4
_TERMINATIONS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
#: A signal that nobody else sends, ignored where it has no handler, with a number above those.
_LAST_OF_ALL = signal.SIGURG

log = logging.getLogger("pilot")


class OutOfTime(BaseException):
    """The pilot had to end at once: nothing more is sent to the server."""


def main() -> int:
    """Run one pilot and return its exit code."""
    _hide_memory()
    given = _read_given()
    os.umask(0o077)
    control = Control()
    listen_to_signals(control)
    work_dir = Path(given["work_dir"])
    log_to(work_dir / LOG_FILE)
    try:
        return Agent(read_config(given), control).run()
    except BadManifest as error:
        log.error("nothing is run: %s", error)
        _tell_unfit(given, str(error), control)
        return EXIT_ERROR
    except OutOfTime:
        log.error("no time left: the pilot ends without a good-bye")
        return EXIT_TERMINATED
    finally:
        sandbox.remove(work_dir)


def _tell_unfit(given: dict[str, Any], reason: str, control: Control) -> None:
    """Tell the server why this pilot never registers."""
    body = {"pilot": given["pilot"], "secret": given["secret"], "reason": reason}
    client = Client(given["server"], given["pilot"], "", control)
    try:
        client.call("unfit", body, retry_s=UNFIT_RETRY_S, is_authorised=False)
    except (Unavailable, Unauthorised, Rejected, BadAnswer) as error:
        log.error("the server did not take this: %s", error)


def _read_given() -> dict[str, Any]:
    """Read the configuration, then put nothing in place of standard input."""
    given: dict[str, Any] = json.loads(sys.stdin.read())
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return given


def _hide_memory() -> None:
    """Let nobody of our account look into this process, nor let a core of it be left."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def listen_to_signals(control: Control) -> None:
    """Install the handlers of signals, which ask the pilot to end; for the main thread."""

    def on_terminate(number: int, frame: FrameType | None) -> None:
        if not control.is_terminated:
            signal.alarm(LAST_RESORT_S)
        if number == signal.SIGINT:
            control.terminate()
        else:
            control.preempt()

    def on_alarm(number: int, frame: FrameType | None) -> None:
        raise OutOfTime

    def on_ring(number: int, frame: FrameType | None) -> None:
        control.note_handled()

    signal.signal(signal.SIGALRM, on_alarm)
    for number in _TERMINATIONS:
        signal.signal(number, on_terminate)
    signal.signal(_LAST_OF_ALL, on_ring)
    main_thread = threading.main_thread().ident
    assert main_thread is not None
    control.ring = functools.partial(signal.pthread_kill, main_thread, _LAST_OF_ALL)


if __name__ == "__main__":
    sys.exit(main())
