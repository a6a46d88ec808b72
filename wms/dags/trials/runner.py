"""Runner of trials: unpacks the files, runs the tool as a process of its own, stores its report.

The tool is the command that the settings name, started with a folder: it reads `request.json` and
`files/` there, and writes `progress.json` and `report.json`. It has limits of time and memory, and
ends with this process. Folders that a killed process left are removed by a later one.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import structlog
from django.db import InterfaceError, OperationalError, connection
from django.utils import timezone

from wms.core.conf import conf
from wms.core.errors import PilotageError
from wms.dags.trials import operations
from wms.dags.trials.archives import unpack_into
from wms.dags.trials.operations import Progress, Report, Taken

log = structlog.get_logger(__name__)
#: The largest report that is kept.
MAX_REPORT_BYTES: Final = 16 * 1024 * 1024
_LOOK_S: Final = 0.25
_PULSE_S: Final = 2.0
#: A tool that is told to end stops its own servers first.
_PATIENCE_S: Final = 30.0
_ERROR_CHARACTERS: Final = 2000


class _Left(Exception):
    """The trial was stopped, or is another worker's."""


class _Failed(Exception):
    """The trial cannot be made; the text says why."""


def run_next() -> bool:
    """Carry out the trial that waits longest; False when there is none, or no place for it."""
    taken = operations.take_trial(timezone.now())
    if taken is not None:
        run_trial(taken)
    return taken is not None


def run_trial(taken: Taken) -> None:
    """Carry out one trial and write its end."""
    report, reason = None, ""
    try:
        with _folder_of(taken) as folder:
            report = _carry_out(taken, folder)
    except _Left:
        log.info("trial_left", trial=taken.trial_id)
        return
    except (_Failed, PilotageError, OSError) as error:
        reason = str(error)[-_ERROR_CHARACTERS:].replace("\0", "")
    operations.end_trial(taken, report, reason=reason, now=timezone.now())


def sweep_folders() -> int:
    """Remove folders of trials that this host's workers have left; their number."""
    here = [each for each in conf().trials_dir.glob("*") if each.is_dir()]
    running = operations.active_leases() if here else set()
    left = [each for each in here if each.name not in running]
    for folder in left:
        shutil.rmtree(folder, ignore_errors=True)
    return len(left)


@contextmanager
def _folder_of(taken: Taken) -> Iterator[Path]:
    folder = conf().trials_dir / taken.lease
    folder.mkdir(parents=True, mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _carry_out(taken: Taken, folder: Path) -> Report:
    unpack_into(taken.archive, folder / "files")
    request = {"kind": taken.kind, "memory_mb": conf().trial_memory_mb, **taken.request}
    (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
    with (folder / "errors").open("wb") as errors:
        # With this process it ends as well, and ends its own servers.
        tool = subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", "--", *conf().trial_command, str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=errors,
            cwd=conf().base_dir,
            start_new_session=True,
        )
    try:
        _wait(tool, taken, folder)
    finally:
        _end(tool)
    _renew(taken, folder)
    if tool.returncode:
        raise _Failed(f"it ended with exit code {tool.returncode}: {_last_words(folder)}")
    return _report(folder)


def _wait(tool: subprocess.Popen[bytes], taken: Taken, folder: Path) -> None:
    """Wait for the end of the tool. Raises _Left, and _Failed when its time is over."""
    limit_s = conf().trial_limit_s
    until_s, pulse_s = time.monotonic() + limit_s, 0.0
    while True:
        now_s = time.monotonic()
        if now_s >= until_s:
            raise _Failed(f"it took longer than {limit_s:g} s")
        if now_s >= pulse_s:
            pulse_s = now_s + _PULSE_S
            _renew(taken, folder)
        with suppress(subprocess.TimeoutExpired):
            tool.wait(_LOOK_S)
            return


def _renew(taken: Taken, folder: Path) -> None:
    try:
        lives = operations.renew_lease(taken, _progress(folder), now=timezone.now())
    except (OperationalError, InterfaceError):
        # The database is away; the lease lasts longer than a restart.
        connection.close()
        return
    if not lives:
        raise _Left


def _progress(folder: Path) -> Progress:
    try:
        told = json.loads((folder / "progress.json").read_bytes())
        return Progress(int(told["nodes"]), int(told["ended"]))
    except (OSError, ValueError, KeyError, TypeError):
        return Progress()


def _end(tool: subprocess.Popen[bytes]) -> None:
    """End the tool, if it goes on, and all that it has started."""
    if tool.poll() is None:
        tool.terminate()
        with suppress(subprocess.TimeoutExpired):
            tool.wait(_PATIENCE_S)
    with suppress(ProcessLookupError):
        os.killpg(tool.pid, signal.SIGKILL)
    tool.wait()


def _report(folder: Path) -> Report:
    path = folder / "report.json"
    if not path.exists():
        raise _Failed(f"it made no report: {_last_words(folder)}")
    if path.stat().st_size > MAX_REPORT_BYTES:
        raise _Failed(f"its report is larger than {MAX_REPORT_BYTES} bytes")
    told: dict[str, Any] = json.loads(path.read_bytes())
    # A text of the database has no zeros; as JSON they are escaped.
    text = str(told["text"]).replace("\0", "").encode(errors="replace").decode()
    return Report(int(told["exit_code"]), json.dumps(told["report"]), text)


def _last_words(folder: Path) -> str:
    text = (folder / "errors").read_bytes()[-_ERROR_CHARACTERS:].decode(errors="replace")
    return text.strip() or "it said nothing"
