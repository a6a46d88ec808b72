"""Element (batch system adapter) of a host without a batch system: pilots as plain processes.

They run in a few slots, by `sh`, on this host or on another by `ssh`. Every pilot has a directory
`BASE/<batch name>.<index>` with `run` (the script), `born` (time of its making), `pid` (process id
and start time of its session leader), `log`, `rc` (exit code, written last) and, once somebody
cancelled it, `cancel`. These files are the only memory, so any process may take over. All are for
the account of the pilots alone; a payload runs as the same account and can read them. The
element's settings in a queue are read and checked here, too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from secrets import token_hex

from wms.elements import host_shell
from wms.elements.logins import Login
from wms.elements.pilot_secrets import checked
from wms.elements.protocol import (
    BatchState,
    Capacity,
    PilotState,
    Refused,
    Unreachable,
    by_index,
)
from wms.elements.runner import (
    LONGEST_TIMEOUT_S,
    TIMEOUT_S,
    CommandRunner,
    Completed,
    LocalRunner,
    TimeLimit,
)
from wms.elements.settings import Settings, SettingsReader
from wms.elements.ssh import runner_from

#: A pilot that has not written its pid after this time never will.
START_LIMIT_S = 60
#: From the polite signal to the hard one; the agent needs up to 10 s to say good-bye.
CANCEL_GRACE_S = 15
#: Keeps a command line well below the kernel's limit, and a command within its time.
IDS_PER_COMMAND = 500

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_PILOT_ID = re.compile(rf"({_NAME.pattern})\.([0-9]{{1,6}})")
#: Exit code of `timeout` when the wall time of the slot is over.
_TIME_IS_OVER = 124
#: Words of the status program for each pilot, after its id.
_FIELDS = 5
_UNREADABLE = "its record cannot be read"


class HostElement:
    """Runs at most `slots` pilots at a time as detached processes under the directory `base`.

    A pilot over its minutes gets TERM and 30 s later KILL. There is no queue: what does not fit is
    refused. Two processes that submit at the same time could both see the last free slot; the
    director's lock per site prevents it.
    """

    def __init__(
        self,
        base: Path,
        *,
        slots: int,
        runner: CommandRunner | None = None,
        cancel_grace_s: int = CANCEL_GRACE_S,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._base = str(base)
        self._slots = slots
        self._runner = runner if runner is not None else LocalRunner()
        self._cancel_grace_s = cancel_grace_s
        self._timeout_s = timeout_s

    def submit(
        self,
        count: int,
        script: str,
        *,
        name: str,
        cores: int,
        memory_mb: int,
        gpus: int,
        minutes: int,
        secrets: Sequence[str] = (),
    ) -> list[str]:
        if not _NAME.fullmatch(name):
            raise Refused(f"batch name {name!r}: letters, digits, '-' and '_' only")
        limit = TimeLimit(self._timeout_s)
        free = self._capacity(limit).free
        if count > free:
            raise Refused(f"{count} pilots for {free} free of {self._slots} slots")
        program = host_shell.submit_program(script, f"END-{token_hex(16)}", checked(secrets, count))
        numbers = (str(number) for number in (count, cores, memory_mb, gpus, minutes))
        done = self._done(program, name, *numbers, timeout_s=limit.left_s())
        started = done.stdout.split()
        if done.returncode and not started:
            raise _refusal(done)
        # Where the disk is full after some, those run: they are to be found by the batch's name.
        if started != [f"{name}.{index}" for index in range(count)]:
            raise Unreachable(f"the answer to the submission is not whole: {started!r}"[:500])
        return started

    def adopt(self, name: str) -> list[str]:
        found = (_PILOT_ID.fullmatch(pilot_id) for pilot_id in self._all())
        return by_index({int(match[2]): match[0] for match in found if match and match[1] == name})

    def status(self, ids: Collection[str]) -> dict[str, PilotState]:
        known = self._all()
        return {each: known.get(each, PilotState(BatchState.MISSING)) for each in ids}

    def cancel(self, ids: Collection[str]) -> None:
        limit = TimeLimit(self._timeout_s)
        for some in _in_commands(ids):
            self._run(host_shell.CANCEL, str(self._cancel_grace_s), *some, limit=limit)

    def capacity(self) -> Capacity:
        return self._capacity(TimeLimit(self._timeout_s))

    def _capacity(self, limit: TimeLimit) -> Capacity:
        states = [pilot.state for pilot in self._all(limit).values()]
        queued = states.count(BatchState.QUEUED)
        running = states.count(BatchState.RUNNING)
        free = max(0, self._slots - queued - running)
        return Capacity(
            is_up=True,
            total=self._slots,
            free=free,
            queued=queued,
            running=running,
            can_queue=False,
        )

    def log(self, pilot_id: str, tail_bytes: int = 65536) -> str:
        if not _PILOT_ID.fullmatch(pilot_id):
            return ""
        return self._run(host_shell.LOG, str(tail_bytes), pilot_id)

    def forget(self, ids: Collection[str]) -> None:
        limit = TimeLimit(self._timeout_s)
        for some in _in_commands(ids):
            self._run(host_shell.FORGET, *some, limit=limit)

    def _all(self, limit: TimeLimit | None = None) -> dict[str, PilotState]:
        first, _, rest = self._run(host_shell.STATUS, limit=limit).partition("\n")
        clock, _, node = first.partition(" ")
        now = _number(clock)
        if now is None:
            raise Unreachable(f"the status program answered {first!r}")
        *lines, last = rest.splitlines() or [""]
        if last != "END":
            raise Unreachable("the answer of the status program is not whole")
        rows = (line.split() for line in lines)
        return {row[0]: _state(row[1:], node=node, now=now) for row in rows if row}

    def _run(self, program: str, *arguments: str, limit: TimeLimit | None = None) -> str:
        timeout_s = self._timeout_s if limit is None else limit.left_s()
        done = self._done(program, *arguments, timeout_s=timeout_s)
        if done.returncode:
            raise _refusal(done)
        return done.stdout

    def _done(self, program: str, *arguments: str, timeout_s: float) -> Completed:
        argv = ["sh", "-s", "--", self._base, *arguments]
        return self._runner.run(argv, stdin=program, timeout_s=timeout_s)


def _refusal(done: Completed) -> Refused:
    return Refused(done.stderr.strip()[-500:] or f"sh ended with {done.returncode}")


def _state(fields: Sequence[str], *, node: str, now: int) -> PilotState:
    """Translate one line of the status program, whatever a full disk has left of the record."""
    if len(fields) != _FIELDS:
        return PilotState(BatchState.FAILED, _UNREADABLE, node=node)
    is_alive, code, is_cancelled, has_pid, born = fields
    if is_alive == "1":
        return PilotState(BatchState.RUNNING, node=node)
    if code == "-" and has_pid == "0":
        born_at = _number(born)
        if born_at is None:
            # Perhaps it is being written just now; the pilot is gone if it stays so.
            return PilotState(BatchState.MISSING, _UNREADABLE, node=node)
        if now - born_at < START_LIMIT_S:
            return PilotState(BatchState.QUEUED, "starting", node=node)
    exit_code = _number(code)
    if is_cancelled == "1":
        return PilotState(BatchState.CANCELLED, node=node, exit_code=exit_code)
    if exit_code == 0:
        return PilotState(BatchState.DONE, node=node, exit_code=0)
    return PilotState(BatchState.FAILED, _why(exit_code, has_pid), node, exit_code)


def _number(text: str) -> int | None:
    """Return the number that the text is, or None if it is none."""
    return int(text) if text.isascii() and text.isdigit() else None


def _why(exit_code: int | None, has_pid: str) -> str:
    if exit_code == _TIME_IS_OVER:
        return "wall time of the slot is over"
    if exit_code is not None:
        return f"exit code {exit_code}"
    return "ended without an exit code" if has_pid == "1" else "never started"


def _in_commands(ids: Collection[str]) -> Iterator[list[str]]:
    """Yield well-formed ids in portions; anything else cannot be a pilot of ours."""
    good = [each for each in ids if _PILOT_ID.fullmatch(each)]
    for start in range(0, len(good), IDS_PER_COMMAND):
        yield good[start : start + IDS_PER_COMMAND]


def host_element(settings: Settings, login: Login | None = None) -> HostElement:
    """Return the adapter for the settings of a queue; raise `BadSettings`."""
    reader = SettingsReader(settings, {"directory", "slots", "timeout_s", "ssh"})
    directory = reader.absolute_path("directory")
    return HostElement(
        Path(login.directory) if login and login.directory else directory,
        slots=reader.number("slots", 1, low=1, high=10_000),
        timeout_s=reader.number("timeout_s", int(TIMEOUT_S), low=1, high=LONGEST_TIMEOUT_S),
        runner=runner_from(reader, login),
    )
