"""Element (batch system adapter) of Slurm: pilots as jobs of a partition.

Slurm's commands are run here or over `ssh`. A pilot is an array of one task, with the id
`JOB_TASK`; its log is a file there. Only text in columns that we ask for ourselves is read: the
JSON of `squeue` differs between versions. What has ended stays in `squeue` for the site's
MinJobAge, which is 300 s by default; the pilots report their end themselves, so that is enough. The
element's settings in a queue are read and checked here, too.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

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
from wms.elements.runner import LONGEST_TIMEOUT_S, CommandRunner, Completed, TimeLimit
from wms.elements.settings import Settings, SettingsReader
from wms.elements.ssh import runner_from

_KEYS = (
    "log_directory", "partition", "arguments", "slurm_conf", "path", "cores", "timeout_s", "ssh",
)  # fmt: skip

#: The client programs ask a controller that is down again and again, for 10 s and more.
TIMEOUT_S = 30
#: Options by which pilots would be started, named, numbered or logged otherwise than we look for
#: them, or a second time.
_OURS = (
    "array", "error", "export", "export-file", "job-name", "output", "parsable", "requeue",
    "test-only", "wait", "wrap",
)  # fmt: skip
#: Keeps a command line well below the kernel's limit for one argument, which it is over ssh.
COMMAND_BYTES = 60_000
PATH = "/usr/local/bin:/usr/bin:/bin"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_PILOT_ID = re.compile(r"([0-9]{1,12})_([0-9]{1,9})")
#: CPUs of a partition that is up: allocated, idle, other and in total.
_CPUS = re.compile(r"[^|*]+(?P<star>\*?)\|up\|\d+/(?P<idle>\d+)/\d+/(?P<total>\d+)")
_NO_CONTROLLER = re.compile(
    r"Unable to contact|Socket timed out|Zero Bytes|Connection refused|connect failure"
    r"|Connection timed out|Unable to establish|standby mode|authentication error"
    r"|temporarily unable|not responding",
    re.IGNORECASE,
)
#: A job that waits for such a reason never runs by itself.
_HELD_REASON = re.compile(
    r"held|BadConstraints|Partition(Node|Time)Limit|Invalid(Account|QOS)"
    r"|(Account|QOS)NotAllowed|DependencyNeverSatisfied",
    re.IGNORECASE,
)
_STATES = {
    **dict.fromkeys(["PENDING", "REQUEUED", "REQUEUE_FED"], BatchState.QUEUED),
    **dict.fromkeys(["SPECIAL_EXIT", "REQUEUE_HOLD", "RESV_DEL_HOLD"], BatchState.HELD),
    **dict.fromkeys(
        ["CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "RESIZING",
         "STAGE_OUT"],
        BatchState.RUNNING,
    ),
    "COMPLETED": BatchState.DONE,
    "CANCELLED": BatchState.CANCELLED,
    **dict.fromkeys(
        ["FAILED", "TIMEOUT", "NODE_FAIL", "BOOT_FAIL", "OUT_OF_MEMORY", "DEADLINE", "PREEMPTED",
         "REVOKED"],
        BatchState.FAILED,
    ),
}  # fmt: skip

_ENDED = {BatchState.DONE, BatchState.FAILED}
_LIVING = {BatchState.QUEUED, BatchState.HELD, BatchState.RUNNING}

_ALL_OF_MINE = ("--me", "-h", "-r", "-t", "all")
# Long enough for what Slurm writes there; the reason is last, for it may hold anything.
_COLUMNS = "JobArrayID:32|,State:24|,NodeList:64|,exit_code:12|,Reason:96|"
_COLUMN_COUNT = 5
_END = "END"
#: Stands for the secret of a pilot that has none.
_NO_SECRET = "none"

# An answer without its last line was cut on the way.
_ASK = f'"$@" && echo {_END}'
# Jobs of one pilot each, in arrays of one task that has the pilot's number: the owner of a job may
# read its script for as long as it lives, wherever it waits, and what an array is given each of its
# tasks has. The secrets, up to an empty line of standard input, are in the environment of `sbatch`,
# which no command line shows and Slurm shows nobody; the script follows.
_SUBMIT = f"""\
umask 077
mkdir -p -- "$1" && size=$2 && shift 2 || exit
secrets= PILOTAGE_INDEX=0
while read -r each && [ -n "$each" ]; do secrets="$secrets $each"; done
script=$(cat)
export PILOTAGE_INDEX PILOTAGE_SECRET
for PILOTAGE_SECRET in $secrets; do
  printf '%s\\n' "$script" | sbatch --array="$((PILOTAGE_INDEX % size))" "$@" || exit
  PILOTAGE_INDEX=$((PILOTAGE_INDEX + 1))
done
echo {_END}
"""
_LOG = '[ -f "$1" ] || exit 0; tail -c "$2" -- "$1"'
_FORGET = 'cd -- "$1" 2>/dev/null || exit 0; xargs -r rm -f --'
# A command comes first, so that Slurm takes no comment of the script for an option.
_WRAPPED = """\
#!/bin/sh
export PILOTAGE_CORES={cores} PILOTAGE_MEMORY_MB={memory_mb} PILOTAGE_GPUS={gpus}
export PILOTAGE_MINUTES={minutes} TMPDIR="${{TMPDIR:-/tmp}}"
cd "$TMPDIR" || exit 1
{script}
"""


@dataclass(frozen=True, slots=True)
class SlurmSettings:
    """Settings of a Slurm element: where and how to submit.

    Without `partition` it is the default one; `arguments` are further options of `sbatch`; `path`
    says where Slurm's programs are; `cores` are those of a pilot.
    """

    log_directory: Path
    partition: str = ""
    arguments: tuple[str, ...] = ()
    slurm_conf: Path | None = None
    path: str = PATH
    cores: int = 1
    timeout_s: float = TIMEOUT_S


class SlurmElement:
    """One partition, with the commands of a host that can submit to it.

    A slot is as many cores as a pilot has, wherever in the partition they are free. A pilot that is
    cancelled before it began may be unknown to Slurm afterwards.
    """

    def __init__(self, settings: SlurmSettings, runner: CommandRunner) -> None:
        self.settings = settings
        self._runner = runner
        conf = [f"SLURM_CONF={settings.slurm_conf}"] if settings.slurm_conf else []
        # `--export=NONE` would start a login shell for each job: the environment is clean instead.
        self._env = ["env", "-i", f"PATH={settings.path}", "HOME=/", "LANG=C.UTF-8", *conf]

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
        limit = TimeLimit(self.settings.timeout_s)
        size = self._largest_array(limit)
        resources = {"cores": cores, "memory_mb": memory_mb, "gpus": gpus, "minutes": minutes}
        gres = [f"--gres=gpu:{gpus}"] if gpus else []
        options = [
            f"--job-name={name}", f"--time={minutes}", "--nodes=1", "--ntasks=1",
            f"--cpus-per-task={cores}", f"--mem={memory_mb}", *gres, "--export=ALL", "--no-requeue",
            *self._partition(), *self.settings.arguments,
        ]  # fmt: skip
        wrapped = _WRAPPED.format(script=script, **resources)
        lines = [each or _NO_SECRET for each in checked(secrets, count)]
        return self._sbatch(options, "\n".join([*lines, "", wrapped]), size, count, limit)

    def adopt(self, name: str) -> list[str]:
        if not _NAME.fullmatch(name):
            return []
        limit = TimeLimit(self.settings.timeout_s)
        rows = self._ask("squeue", *_ALL_OF_MINE, f"--name={name}", "-o", "%i", limit=limit)
        found = [(int(m[1]), int(m[2])) for m in map(_PILOT_ID.fullmatch, rows) if m]
        size = self._largest_array(limit)
        indices: dict[int, str] = {}
        before, rounds = -1, 0
        for job, task in sorted(found):
            # Numbers of tasks begin anew where an array may have no larger ones.
            rounds += task <= before
            before = task
            indices[rounds * size + task] = f"{job}_{task}"
        return by_index(indices)

    def status(self, ids: Collection[str]) -> dict[str, PilotState]:
        return self._status(ids, TimeLimit(self.settings.timeout_s))

    def _status(self, ids: Collection[str], limit: TimeLimit) -> dict[str, PilotState]:
        if not ids:
            return {}
        rows = self._ask("squeue", *_ALL_OF_MINE, "-O", _COLUMNS, limit=limit)
        seen = dict(_pilot(row) for row in rows)
        return {each: _state_of(each, seen) for each in ids}

    def cancel(self, ids: Collection[str]) -> None:
        limit = TimeLimit(self.settings.timeout_s)
        for some in _in_commands(ids):
            self._run(["scancel", "--quiet", *some], limit=limit)

    def capacity(self) -> Capacity:
        limit = TimeLimit(self.settings.timeout_s)
        columns = ["--noconvert", "-o", "%P|%a|%C"]
        rows = self._ask("sinfo", "-h", *self._partition(), *columns, limit=limit)
        found = [_CPUS.fullmatch(row) for row in rows]
        # Without a partition of its own, a job goes to the one with the star.
        cpus = [m for m in found if m and (self.settings.partition or m["star"])]
        states = self._ask("squeue", *_ALL_OF_MINE, *self._partition(), "-o", "%T", limit=limit)
        ours = [_STATES.get(state) for state in states]
        return Capacity(
            is_up=bool(cpus),
            total=sum(int(m["total"]) for m in cpus) // self.settings.cores,
            free=sum(int(m["idle"]) for m in cpus) // self.settings.cores,
            queued=ours.count(BatchState.QUEUED) + ours.count(BatchState.HELD),
            running=ours.count(BatchState.RUNNING),
        )

    def log(self, pilot_id: str, tail_bytes: int = 65536) -> str:
        if not _PILOT_ID.fullmatch(pilot_id):
            return ""
        file = str(self.settings.log_directory / f"{pilot_id}.log")
        return self._run(["sh", "-c", _LOG, "sh", file, str(tail_bytes)])

    def forget(self, ids: Collection[str]) -> None:
        limit = TimeLimit(self.settings.timeout_s)
        states = self._status(ids, limit)
        ended = [each for each, found in states.items() if found.state not in _LIVING]
        logs = "".join(f"{each}.log\n" for each in ended if _PILOT_ID.fullmatch(each))
        directory = str(self.settings.log_directory)
        self._run(["sh", "-c", _FORGET, "sh", directory], stdin=logs, limit=limit)

    def _abandon(self, ids: list[str], limit: TimeLimit) -> None:
        """Cancel the pilots of a batch whose rest is refused: then none of it was taken."""
        for some in _in_commands(ids):
            try:
                self._run(["scancel", "--quiet", *some], limit=limit)
            except Refused as error:
                raise Unreachable(f"a part of the batch could not be cancelled: {error}") from error

    def _partition(self) -> list[str]:
        partition = self.settings.partition
        return [f"--partition={partition}"] if partition else []

    def _largest_array(self, limit: TimeLimit) -> int:
        """Return how many tasks an array may have here; their numbers begin at 0."""
        answer = self._run(["scontrol", "show", "config"], limit=limit)
        found = re.search(r"^MaxArraySize\s*=\s*(\d+)", answer, re.MULTILINE)
        if found is None:
            raise Unreachable("scontrol told no MaxArraySize")
        if int(found[1]) < 1:
            raise Refused("this Slurm takes no job arrays: its MaxArraySize is 0")
        return int(found[1])

    def _sbatch(
        self, options: list[str], stdin: str, size: int, count: int, limit: TimeLimit
    ) -> list[str]:
        """Submit pilots one by one; where one is refused, those before it are cancelled."""
        directory = str(self.settings.log_directory)
        output = f"--output={directory}/%A_%a.log"
        argv = ["sh", "-c", _SUBMIT, "sh", directory, str(size), "--parsable", output, *options]
        done = self._done(argv, stdin=stdin, limit=limit)
        *lines, last = done.stdout.splitlines() or [""]
        if done.returncode:
            lines.append(last)
        jobs = [job[1] for job in map(re.compile(r"([0-9]+)(;.*)?").fullmatch, lines) if job]
        ids = [f"{job}_{index % size}" for index, job in enumerate(jobs)]
        if done.returncode:
            fault = _fault(argv[0], done)
            if isinstance(fault, Refused):
                self._abandon(ids, limit)
            raise fault
        if last != _END or len(ids) != count:
            raise Unreachable(f"sbatch answered {done.stdout[-500:]!r}")
        return ids

    def _ask(self, *argv: str, limit: TimeLimit | None = None) -> list[str]:
        """Return the lines of an answer that is whole."""
        lines = self._run(["sh", "-c", _ASK, "sh", *argv], limit=limit).splitlines()
        if not lines or lines.pop() != _END:
            raise Unreachable(f"the answer of {argv[0]} is not whole")
        return lines

    def _run(self, argv: list[str], *, stdin: str = "", limit: TimeLimit | None = None) -> str:
        done = self._done(argv, stdin=stdin, limit=limit)
        if done.returncode == 0:
            return done.stdout
        raise _fault(argv[0], done)

    def _done(self, argv: list[str], *, stdin: str, limit: TimeLimit | None) -> Completed:
        timeout_s = self.settings.timeout_s if limit is None else limit.left_s()
        return self._runner.run([*self._env, *argv], stdin=stdin, timeout_s=timeout_s)


def _fault(program: str, done: Completed) -> Refused | Unreachable:
    """Return what it means that a command has failed."""
    said = done.stderr.strip()[-500:] or f"{program} ended with {done.returncode}"
    return (Unreachable if _NO_CONTROLLER.search(said) else Refused)(said)


def _pilot(row: str) -> tuple[str, PilotState]:
    """Return the id and the state of a job; a row that cannot be read says nothing of its pilot."""
    fields = [field.strip() for field in row.split("|", _COLUMN_COUNT - 1)]
    if len(fields) < _COLUMN_COUNT or not fields[3].isdigit():
        return fields[0], PilotState(BatchState.MISSING, "its row cannot be read")
    pilot_id, native, node, wait_status, reason = fields
    reason = reason.removesuffix("|").strip()
    reason = "" if reason == "None" else reason
    state = _STATES.get(native, BatchState.MISSING)
    if state == BatchState.QUEUED and _HELD_REASON.search(reason):
        state = BatchState.HELD
    code = _exit_code(int(wait_status)) if state in _ENDED else None
    if state == BatchState.FAILED:
        reason = ", ".join(filter(None, [native, reason, f"exit code {code}" if code else ""]))
    if state == BatchState.MISSING:
        reason = f"unknown state {native}"
    return pilot_id, PilotState(state, reason, node, code, native)


def _exit_code(wait_status: int) -> int:
    """Return the exit code as a shell would tell it."""
    signal = wait_status & 0x7F
    return 128 + signal if signal else wait_status >> 8


def _state_of(pilot_id: str, seen: dict[str, PilotState]) -> PilotState:
    """Return the state of a pilot; a whole array that was cancelled has one row for all."""
    found = seen.get(pilot_id) or seen.get(pilot_id.partition("_")[0])
    return found or PilotState(BatchState.MISSING)


def _in_commands(ids: Collection[str]) -> Iterator[list[str]]:
    """Yield the pilots as `7_[0-3,5]`, in portions; a pilot of an earlier release shares its array.

    No array is in two portions: cancelled in parts before they began, pilots are forgotten.
    """
    tasks: dict[int, set[int]] = defaultdict(set)
    for match in filter(None, map(_PILOT_ID.fullmatch, ids)):
        tasks[int(match[1])].add(int(match[2]))
    portion: list[str] = []
    for job, numbers in sorted(tasks.items()):
        array = f"{job}_[{','.join(_ranges(sorted(numbers)))}]"
        if portion and sum(map(len, portion)) + len(array) > COMMAND_BYTES:
            yield portion
            portion = []
        portion.append(array)
    if portion:
        yield portion


def _ranges(numbers: list[int]) -> Iterator[str]:
    """Yield sorted numbers as `0-3` and `5`."""
    # What lies side by side has the same distance to its place in the list.
    for _, group in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        run = [number for _, number in group]
        yield str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}"


def slurm_element(settings: Settings, login: Login | None = None) -> SlurmElement:
    """Return the adapter for the settings of a queue; raise `BadSettings`."""
    reader = SettingsReader(settings, _KEYS)
    log_directory = reader.absolute_path("log_directory")
    if login and login.directory:
        log_directory = Path(login.directory)
    if "%" in str(log_directory):
        raise reader.bad("log_directory", "must not contain '%', which Slurm would replace")
    arguments = reader.texts("arguments", pattern=r"\A--[a-z]", what="an option of sbatch")
    for each in arguments:
        name = each.removeprefix("--").partition("=")[0]
        # Slurm takes the beginning of an option for the option.
        if any(ours.startswith(name) for ours in _OURS):
            raise reader.bad("arguments", f"--{name} is set for each batch by the portal itself")
    return SlurmElement(
        SlurmSettings(
            log_directory=log_directory,
            partition=reader.text(
                "partition", "", pattern=r"[A-Za-z0-9][A-Za-z0-9_.,-]*", what="a partition's name"
            ),
            arguments=arguments,
            slurm_conf=reader.optional_path("slurm_conf"),
            path=reader.text("path", PATH, pattern=r"/[^:]*(:/[^:]*)*", what="absolute paths"),
            cores=reader.number("cores", 1, low=1, high=10_000),
            timeout_s=reader.number("timeout_s", TIMEOUT_S, low=1, high=LONGEST_TIMEOUT_S),
        ),
        runner_from(reader, login),
    )
