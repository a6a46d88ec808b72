"""Element (batch system adapter) of a remote HTCondor pool: pilots as its jobs.

It is reached over the network by a token. A batch is one cluster of jobs that carry its name as an
attribute; a pilot's id is `CLUSTER.PROC`. Nothing of HTCondor is installed here: its own Python
library, in a helper process, speaks to the schedd, and the schedd keeps the script and the output
of its jobs in its spool. The element's settings in a queue are read and checked here, too.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wms.elements.helper_process import ask
from wms.elements.htcondor_login import TokenRunner, environment
from wms.elements.logins import Login
from wms.elements.pilot_secrets import checked, with_secrets
from wms.elements.protocol import BatchState, Capacity, PilotState, Refused, by_index
from wms.elements.runner import LONGEST_TIMEOUT_S, CommandRunner, LocalRunner, TimeLimit
from wms.elements.settings import Settings, SettingsReader

_KEYS = ("collector", "schedd", "token_directory", "commands", "cores", "timeout_s")
#: Lines of a submit description that a queue may add, besides attributes: `+Name`.
_COMMANDS = (
    "accounting_group", "accounting_group_user", "concurrency_limits", "priority", "rank",
    "request_disk", "requirements",
)  # fmt: skip
TIMEOUT_S = 60
#: From the polite signal to the hard one; the agent needs up to 10 s to say good-bye.
CANCEL_GRACE_S = 15
#: Time for which an ended pilot's record and log stay in the queue if nobody forgets them.
KEEP_ENDED_S = 7 * 86_400
#: A pilot whose script has not arrived after this time waits for it in vain.
SPOOLING_LIMIT_S = 600
#: A longer log stays where it is: it would have to be fetched as a whole.
LOG_LIMIT_BYTES = 64 * 1024 * 1024

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_PILOT_ID = re.compile(r"([1-9][0-9]{0,9})\.(0|[1-9][0-9]{0,5})")
_ATTRIBUTE = re.compile(r"\+(?!Pilotage)[A-Za-z][A-Za-z0-9_]{0,99}")
_PATH = "/usr/local/bin:/usr/bin:/bin"
#: Run, not imported: HTCondor's library would take its time in each of the portal's processes.
_HELPER = str(Path(__file__).with_name("htcondor_helper.py"))
_SCRIPT = "pilot.sh"
_LOG = "pilot.log"
_IS_OURS = "PilotageBatch isnt undefined"
_STATUS_ATTRIBUTES = (
    "ClusterId",
    "ProcId",
    "JobStatus",
    "EnteredCurrentStatus",
    "ServerTime",
    "HoldReason",
    "HoldReasonCode",
    "RemoveReason",
    "LastRejMatchReason",
    "RemoteHost",
    "LastRemoteHost",
    "LastJobStatus",
    "ExitBySignal",
    "ExitCode",
    "ExitSignal",
)
_SLOT_ATTRIBUTES = ("Cpus", "State", "SlotType", "TotalSlotCpus")
_IDLE, _RUNNING, _REMOVED, _COMPLETED, _HELD, _TRANSFERRING, _SUSPENDED = range(1, 8)
_WORDS = {
    _IDLE: "idle",
    _RUNNING: "running",
    _REMOVED: "removed",
    _COMPLETED: "completed",
    _HELD: "held",
    _TRANSFERRING: "transferring output",
    _SUSPENDED: "suspended",
}
#: The hold in which a job waits for its input files.
_SPOOLING = 16
_SIGNAL_BASE = 128
_ON_A_NODE = (_RUNNING, _TRANSFERRING, _SUSPENDED)
_LEAVE_IN_QUEUE = (
    f"(JobStatus == {_REMOVED} || JobStatus == {_COMPLETED}) && "
    f"time() - EnteredCurrentStatus < {KEEP_ENDED_S}"
)

# A pilot's secret works once, so it is never started a second time.
_REQUIREMENTS = "NumJobStarts == 0"
_PERIODIC_REMOVE = (
    "(JobStatus == 1 && NumJobStarts > 0) || "
    "(JobStatus == 2 && time() - JobCurrentStartDate > {wall_s}) || "
    f"(JobStatus == 5 && HoldReasonCode == {_SPOOLING} && "
    f"time() - EnteredCurrentStatus > {2 * SPOOLING_LIMIT_S})"
)
#: Beginning of the reason of a job that was removed by the rule above, and why, by the state
#: that it had until then.
_BY_RULE = "The job attribute PeriodicRemove "
_WHY_BY_RULE = {
    _IDLE: "its node was lost",
    _RUNNING: "wall time of the slot is over",
    _HELD: "its script never arrived",
}
#: Pattern of the schedd's own refusals among the library's errors.
_REFUSAL = re.compile(
    r"AUTHENTICATE:|commit transaction.*SCHEDD:\d+:|Failed to create (job|a cluster) ad|DENIED"
)

Ad = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class HTCondorSettings:
    """Settings of an HTCondor element: where and how to submit.

    `schedd` may be empty where the collector knows only one. `token_directory` has the tokens of
    this pool and no others. `commands` are further lines of the submit description, such as an
    accounting group; `cores` are those of a pilot.
    """

    collector: str
    token_directory: Path
    schedd: str = ""
    commands: Mapping[str, str] = field(default_factory=dict)
    cores: int = 1
    timeout_s: float = TIMEOUT_S


class HTCondorElement:
    """One schedd of a remote pool; every call ends after the time limit of the settings.

    Capacity is counted in slots of as many cores as a pilot has, each free in one slot of the pool;
    the collector's figures are some minutes old. A pilot's log comes when it has ended, that of a
    cancelled one never.
    """

    def __init__(self, settings: HTCondorSettings, runner: CommandRunner | None = None) -> None:
        self.settings = settings
        self._runner = runner or LocalRunner(environment(settings.token_directory))

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
        slot = {"CORES": cores, "MEMORY_MB": memory_mb, "GPUS": gpus, "MINUTES": minutes}
        # The script holds secrets: a folder for this account alone, gone when it has been sent.
        with tempfile.TemporaryDirectory(prefix="pilotage-condor-") as folder:
            whole = with_secrets(script, checked(secrets, count))
            Path(folder, _SCRIPT).write_text(whole, encoding="utf-8")
            description = {**self.settings.commands, **_description(name, folder, slot)}
            wanted = self.settings.commands.get("requirements", "true")
            description["requirements"] = f"{_REQUIREMENTS} && ({wanted})"
            ids = self._ask("submit", {"description": description, "count": count})
        return [str(each) for each in ids]

    def adopt(self, name: str) -> list[str]:
        if not _NAME.fullmatch(name):
            return []
        ads = self._query(f'PilotageBatch == "{name}"', ("ClusterId", "ProcId"))
        found = filter(None, (_PILOT_ID.fullmatch(_pilot_id(ad)) for ad in ads))
        return by_index({int(each[2]): each[0] for each in found})

    def status(self, ids: Collection[str]) -> dict[str, PilotState]:
        if not ids:
            return {}
        # All of our own at once: a condition with thousands of ids costs the schedd more.
        ads = self._query(_IS_OURS, _STATUS_ATTRIBUTES)
        known = {_pilot_id(ad): ad for ad in ads}
        return {
            each: _state(known[each]) if each in known else PilotState(BatchState.MISSING)
            for each in ids
        }

    def cancel(self, ids: Collection[str]) -> None:
        if constraint := _constraint(ids):
            self._ask("remove", {"constraint": constraint, "reason": "cancelled by Pilotage"})

    def capacity(self) -> Capacity:
        limit = TimeLimit(self.settings.timeout_s)
        slots: list[Ad] = self._ask("machines", {"attributes": _SLOT_ATTRIBUTES}, limit)
        states = [ad.get("JobStatus") for ad in self._query(_IS_OURS, ("JobStatus",), limit)]
        running = sum(states.count(each) for each in _ON_A_NODE)
        cores = self.settings.cores
        total = sum(_total_cores(slot) // cores for slot in slots)
        free = sum(_free_cores(slot) // cores for slot in slots)
        return Capacity(
            is_up=True,
            total=total,
            # The collector may not have heard yet of what has just started.
            free=max(0, min(free, total - running)),
            queued=states.count(_IDLE) + states.count(_HELD),
            running=running,
        )

    def log(self, pilot_id: str, tail_bytes: int = 65536) -> str:
        limit = TimeLimit(self.settings.timeout_s)
        constraint = _constraint([pilot_id])
        if not constraint:
            return ""
        ended = self._query(f"{constraint} && JobStatus == {_COMPLETED}", ("BytesSent",), limit)
        if not ended:
            return ""
        if ended[0].get("BytesSent", 0) > LOG_LIMIT_BYTES:
            return f"The log has more than {LOG_LIMIT_BYTES} bytes: it stays with the schedd.\n"
        with tempfile.TemporaryDirectory(prefix="pilotage-condor-") as folder:
            place = {"pilot_id": pilot_id, "folder": folder, "limit_bytes": LOG_LIMIT_BYTES}
            self._ask("retrieve", place, limit)
            return _tail(Path(folder, _LOG), tail_bytes)

    def forget(self, ids: Collection[str]) -> None:
        if constraint := _constraint(ids):
            self._ask("forget", {"constraint": constraint})

    def _query(
        self, constraint: str, attributes: Collection[str], limit: TimeLimit | None = None
    ) -> list[Ad]:
        question = {"constraint": constraint, "attributes": list(attributes)}
        ads: list[Ad] = self._ask("query", question, limit)
        return ads

    def _ask(
        self, operation: str, question: Mapping[str, object], limit: TimeLimit | None = None
    ) -> Any:
        asked = {
            "operation": operation,
            "collector": self.settings.collector,
            "schedd": self.settings.schedd,
            **question,
        }
        limit = limit or TimeLimit(self.settings.timeout_s)
        return ask(self._runner, _HELPER, asked, limit, refusal=_REFUSAL)


def _description(name: str, folder: str, slot: Mapping[str, int]) -> dict[str, str]:
    told = {"INDEX": "$(ProcId)", "SCRIPT": _SCRIPT, **slot}
    variables = " ".join(f"PILOTAGE_{key}={value}" for key, value in told.items())
    gpus = {"request_gpus": str(slot["GPUS"])} if slot["GPUS"] else {}
    return gpus | {
        "executable": "/bin/sh",
        "transfer_executable": "false",
        "arguments": _SCRIPT,
        "initialdir": folder,
        "transfer_input_files": _SCRIPT,
        # Nothing but the log comes back, whatever the payloads have left behind.
        "transfer_output_files": '""',
        "should_transfer_files": "YES",
        "when_to_transfer_output": "ON_EXIT",
        "output": _LOG,
        "error": _LOG,
        "environment": f'"PATH={_PATH} {variables}"',
        "request_cpus": str(slot["CORES"]),
        "request_memory": str(slot["MEMORY_MB"]),
        "job_max_vacate_time": str(CANCEL_GRACE_S),
        "+PilotageBatch": f'"{name}"',
        "batch_name": name,
        "leave_in_queue": _LEAVE_IN_QUEUE,
        "periodic_remove": _PERIODIC_REMOVE.format(wall_s=slot["MINUTES"] * 60),
    }


def _constraint(ids: Collection[str]) -> str:
    """Return the condition that these pilots fulfil; anything else cannot be a pilot of ours."""
    procs = defaultdict(list)
    for found in filter(None, map(_PILOT_ID.fullmatch, ids)):
        procs[found[1]].append(found[2])
    parts = (
        f"(ClusterId == {cluster} && member(ProcId, {{{', '.join(some)}}}))"
        for cluster, some in procs.items()
    )
    return f"{_IS_OURS} && ({' || '.join(parts)})" if procs else ""


def _pilot_id(ad: Ad) -> str:
    return f"{ad.get('ClusterId')}.{ad.get('ProcId')}"


def _state(ad: Ad) -> PilotState:
    status = ad.get("JobStatus", 0)
    native = _WORDS.get(status, f"status {status}")
    node = str(ad.get("RemoteHost") or ad.get("LastRemoteHost") or "").rpartition("@")[2]
    if status == _IDLE:
        reason = str(ad.get("LastRejMatchReason", "")).strip()
        return PilotState(BatchState.QUEUED, reason, native=native)
    if status == _HELD:
        return _held(ad, native)
    if status == _COMPLETED:
        return _completed(ad, node, native)
    # A removed pilot keeps its host until its last process is gone.
    if status in _ON_A_NODE or (status == _REMOVED and "RemoteHost" in ad):
        return PilotState(BatchState.RUNNING, str(ad.get("RemoveReason", "")), node, native=native)
    if status == _REMOVED:
        reason = str(ad.get("RemoveReason", ""))
        if not reason.startswith(_BY_RULE):
            return PilotState(BatchState.CANCELLED, reason, node, native=native)
        why = _WHY_BY_RULE.get(ad.get("LastJobStatus", 0), reason)
        return PilotState(BatchState.FAILED, why, node, native=native)
    return PilotState(BatchState.MISSING, f"the schedd says {native}", native=native)


def _held(ad: Ad, native: str) -> PilotState:
    reason = str(ad.get("HoldReason", ""))
    waited_s = ad.get("ServerTime", 0) - ad.get("EnteredCurrentStatus", 0)
    if ad.get("HoldReasonCode") == _SPOOLING and waited_s < SPOOLING_LIMIT_S:
        return PilotState(BatchState.QUEUED, reason, native=native)
    return PilotState(BatchState.HELD, reason, native=native)


def _completed(ad: Ad, node: str, native: str) -> PilotState:
    if ad.get("ExitBySignal"):
        signal = ad.get("ExitSignal", 0)
        code = _SIGNAL_BASE + signal
        return PilotState(BatchState.FAILED, f"ended by signal {signal}", node, code, native)
    code = ad.get("ExitCode")
    if code == 0:
        return PilotState(BatchState.DONE, "", node, 0, native)
    reason = "ended without an exit code" if code is None else f"exit code {code}"
    return PilotState(BatchState.FAILED, reason, node, code, native)


def _total_cores(slot: Ad) -> int:
    """Return the cores of a slot; those that were cut off a divisible one are counted there."""
    if slot.get("SlotType") == "Dynamic":
        return 0
    return int(slot.get("TotalSlotCpus", slot.get("Cpus", 0)))


def _free_cores(slot: Ad) -> int:
    is_free = slot.get("SlotType") == "Partitionable" or slot.get("State") == "Unclaimed"
    return int(slot.get("Cpus", 0)) if is_free else 0


def _tail(path: Path, tail_bytes: int) -> str:
    try:
        # The other side chose what to send: a link could lead anywhere.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return ""
    with os.fdopen(descriptor, "rb") as log:
        log.seek(max(0, os.fstat(descriptor).st_size - tail_bytes))
        return log.read(tail_bytes).decode("utf-8", errors="replace")


def htcondor_element(settings: Settings, login: Login | None = None) -> HTCondorElement:
    """Return the adapter for the settings of a queue; raise `BadSettings`."""
    reader = SettingsReader(settings, _KEYS)
    return HTCondorElement(
        HTCondorSettings(
            collector=reader.text(
                "collector", pattern=r"[A-Za-z0-9.-]+(:[0-9]{1,5})?", what="HOST or HOST:PORT"
            ),
            schedd=reader.text(
                "schedd", "", pattern=r"[A-Za-z0-9][A-Za-z0-9_.@-]*", what="the name of a schedd"
            ),
            token_directory=reader.absolute_path("token_directory"),
            commands=_commands(settings, reader),
            cores=reader.number("cores", 1, low=1, high=10_000),
            timeout_s=reader.number("timeout_s", TIMEOUT_S, low=1, high=LONGEST_TIMEOUT_S),
        ),
        TokenRunner(login) if login else None,
    )


def _commands(settings: Settings, reader: SettingsReader) -> dict[str, str]:
    given = settings.get("commands")
    names = list(given) if isinstance(given, Mapping) else []
    attributes = [name for name in names if _ATTRIBUTE.fullmatch(str(name))]
    commands = reader.group("commands", [*_COMMANDS, *attributes])
    return {name: commands.text(name) for name in names} if commands else {}
