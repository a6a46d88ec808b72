"""Element (batch system adapter) of an ARC CE: pilots as its jobs, through its REST interface.

Every pilot is an activity of its own with the name `BATCH.INDEX`; the batch goes in one request.
The script follows by itself into the job's session folder: in the description it would be readable
among the arguments of the job. The element's settings in a queue are read and checked here, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlsplit

from wms.elements import rest_helper
from wms.elements.arc_description import ACTIVITY_NAME, LOG, SCRIPT, batch_description
from wms.elements.helper_process import ask
from wms.elements.logins import Login
from wms.elements.pilot_secrets import checked, with_secret
from wms.elements.protocol import (
    BatchState,
    Capacity,
    PilotState,
    Refused,
    Unreachable,
    by_index,
)
from wms.elements.rest_login import who_we_are
from wms.elements.runner import LONGEST_TIMEOUT_S, CommandRunner, LocalRunner, TimeLimit
from wms.elements.settings import Settings, SettingsReader

_KEYS = (
    "url", "queue", "ca_path", "certificate_file", "key_file", "token_file", "cores", "timeout_s",
)  # fmt: skip
TIMEOUT_S = 60
#: Keeps an answer with the whole records of jobs to some megabytes.
IDS_PER_REQUEST = 1000
#: Longer answers are cut, and then no JSON.
ANSWER_LIMIT_BYTES = 64 * 1024 * 1024

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_PILOT_ID = re.compile(r"[A-Za-z0-9]{6,128}")
_OK, _CREATED, _NOT_FOUND = 200, 201, 404
_CLIENT_ERROR, _SERVER_ERROR = 400, 500

_QUEUED = ("ACCEPTING", "ACCEPTED", "PREPARING", "PREPARED", "SUBMITTING", "QUEUING")
_RUNNING = ("RUNNING", "EXITINGLRMS", "OTHER", "EXECUTED", "FINISHING", "KILLING")
_STATES = {
    **dict.fromkeys(_QUEUED, BatchState.QUEUED),
    **dict.fromkeys(_RUNNING, BatchState.RUNNING),
    "HELD": BatchState.HELD,
    "FINISHED": BatchState.DONE,
    "FAILED": BatchState.FAILED,
    "KILLED": BatchState.CANCELLED,
}
_ENDED = (BatchState.DONE, BatchState.FAILED, BatchState.CANCELLED)

Answer = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ArcSettings:
    """Settings of an ARC element: where and as whom to submit.

    `url` is the CE's, such as `https://ce.example.org/arex`; an empty `queue` is its own choice.
    `ca_path` is a file or a folder of certificate authorities, that of the system if it is empty. A
    client certificate, which may be a proxy with its key in the same file, or a token says who we
    are; `cores` are those of a pilot.
    """

    url: str
    queue: str = ""
    ca_path: str = ""
    certificate_file: str = ""
    key_file: str = ""
    token_file: str = ""
    cores: int = 1
    timeout_s: float = TIMEOUT_S


class ArcElement:
    """One queue of a CE; every call ends after the time limit of the settings.

    The CE shows its jobs and places as it last collected them, which is up to some minutes ago.
    GPUs are not asked for, because the interface has no word for them: the queue has to mean them.
    """

    def __init__(
        self,
        settings: ArcSettings,
        runner: CommandRunner | None = None,
        login: Login | None = None,
    ) -> None:
        self.settings = settings
        self._login = login
        self._runner = runner or LocalRunner()
        self._jobs = f"{urlsplit(settings.url).path.rstrip('/')}/rest/1.0/jobs"

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
        slot = {"CORES": cores, "MEMORY_MB": memory_mb, "GPUS": gpus, "MINUTES": minutes}
        queue = self.settings.queue
        described = batch_description(name, count, slot, queue)
        new = _post(f"{self._jobs}?action=new", described, "application/xml")
        made = _listed(self._exchange([new], limit)[0])
        ids = [str(job["id"]) for job in made if _code(job) == _CREATED and "id" in job]
        if len(ids) < count:
            self._abandon(ids, limit)
            why = {str(job.get("reason", "")) for job in made if _code(job) != _CREATED}
            raise Refused(f"{len(ids)} of {count} taken: {', '.join(sorted(why)) or 'no reason'}")
        try:
            self._send_scripts(ids, script, checked(secrets, count), limit)
        except Refused:
            self._abandon(ids, limit)
            raise
        return ids

    def adopt(self, name: str) -> list[str]:
        if not _NAME.fullmatch(name):
            return []
        limit = TimeLimit(self.settings.timeout_s)
        all_of_ours = [str(job.get("id")) for job in _listed(self._get(self._jobs, limit))]
        indices = {}
        for pilot_id, activity in self._names(all_of_ours, limit).items():
            batch, _, index = activity.rpartition(".")
            if batch == name and index.isdecimal():
                indices[int(index)] = pilot_id
        return by_index(indices)

    def status(self, ids: Collection[str]) -> dict[str, PilotState]:
        return self._status(ids, TimeLimit(self.settings.timeout_s))

    def cancel(self, ids: Collection[str]) -> None:
        self._act("kill", ids, TimeLimit(self.settings.timeout_s))

    def capacity(self) -> Capacity:
        limit = TimeLimit(self.settings.timeout_s)
        queued, running = (
            len(_listed(self._get(f"{self._jobs}?state={','.join(states)}", limit)))
            for states in ((*_QUEUED, "HELD"), _RUNNING)
        )
        info = _json(self._get(self._jobs.removesuffix("jobs") + "info", limit))
        share, manager = _places(info, self.settings.queue)
        cores = self.settings.cores
        total = _number(manager.get("TotalSlots")) // cores
        free = _number(share.get("FreeSlots")) // cores
        return Capacity(
            is_up=share.get("ServingState") == "production",
            total=total,
            # What the CE says of its places is older than what it says of its jobs.
            free=max(0, min(free, total - running)),
            queued=queued,
            running=running,
        )

    def log(self, pilot_id: str, tail_bytes: int = 65536) -> str:
        if not _PILOT_ID.fullmatch(pilot_id):
            return ""
        limit = TimeLimit(self.settings.timeout_s)
        request = {"method": "GET", "paths": [f"{self._jobs}/{pilot_id}/session/{LOG}"]}
        [answer] = self._exchange([request], limit, limit_bytes=tail_bytes)
        if answer["status"] == _NOT_FOUND:
            return ""
        return str(_good(answer)["body"])

    def forget(self, ids: Collection[str]) -> None:
        limit = TimeLimit(self.settings.timeout_s)
        # The CE would also clean away a pilot that runs.
        states = self._status(ids, limit)
        ended = [each for each, found in states.items() if found.state in _ENDED]
        self._act("clean", ended, limit)

    def _status(self, ids: Collection[str], limit: TimeLimit) -> dict[str, PilotState]:
        natives = {
            pilot_id: str(job.get("state", ""))
            for pilot_id, job in self._act("status", ids, limit).items()
            if _code(job) == _OK
        }
        # Only what needs to be explained is asked for, because a record has two kilobytes.
        explained = {*_ENDED, BatchState.HELD}
        wanted = [each for each, native in natives.items() if _STATES.get(native) in explained]
        records = self._records(wanted, limit)
        missing = PilotState(BatchState.MISSING)
        return {
            each: _state(natives[each], records.get(each, {})) if each in natives else missing
            for each in ids
        }

    def _records(self, ids: Collection[str], limit: TimeLimit) -> dict[str, Answer]:
        """Return what the CE knows of each job; one that is gone by now is not there."""
        return {
            pilot_id: job["info_document"]["ComputingActivity"]
            for pilot_id, job in self._act("info", ids, limit).items()
            if _code(job) == _OK
        }

    def _names(self, ids: Collection[str], limit: TimeLimit) -> dict[str, str]:
        """Return the names of jobs; those that the CE has only just taken have no record yet."""
        records = self._records(ids, limit)
        names = {each: str(record.get("Name", "")) for each, record in records.items()}
        young = [each for each, name in names.items() if not name]
        if young:
            paths = [f"{self._jobs}/{each}/diagnose/description" for each in young]
            answers = self._exchange([{"method": "GET", "paths": paths}], limit)
            for pilot_id, answer in zip(young, answers, strict=True):
                found = ACTIVITY_NAME.search(str(answer["body"]))
                if found is None and answer["status"] != _NOT_FOUND:
                    raise Unreachable("the CE does not tell the name of a job")
                names[pilot_id] = found[1] if found else ""
        return names

    def _act(self, action: str, ids: Collection[str], limit: TimeLimit) -> dict[str, Answer]:
        """Return the CE's word on each id; an answer without one of them is no answer."""
        known: dict[str, Answer] = {}
        for some in _in_requests(ids):
            question = json.dumps({"job": [{"id": each} for each in some]})
            request = _post(f"{self._jobs}?action={action}", question, "application/json")
            told = {str(job.get("id")): job for job in _listed(self._exchange([request], limit)[0])}
            if not told.keys() >= set(some):
                raise Unreachable("the CE did not answer for each pilot")
            known |= told
        return known

    def _send_scripts(
        self, ids: Sequence[str], script: str, secrets: Sequence[str], limit: TimeLimit
    ) -> None:
        """Send each pilot the script, with its own secret."""
        requests = [
            {
                "method": "PUT",
                "paths": [f"{self._jobs}/{each}/session/{SCRIPT}"],
                "body": with_secret(script, secret),
                "type": "text/plain",
            }
            for each, secret in zip(ids, secrets, strict=False)
        ]
        for answer in self._exchange(requests, limit):
            _good(answer)

    def _abandon(self, ids: Sequence[str], limit: TimeLimit) -> None:
        """End what was taken of a refused batch; without a script it would wait in vain."""
        try:
            self._act("kill", ids, limit)
        except Refused as error:
            raise Unreachable(f"a part of the batch could not be ended: {error}") from error

    def _get(self, path: str, limit: TimeLimit) -> Answer:
        return self._exchange([{"method": "GET", "paths": [path]}], limit)[0]

    def _exchange(
        self,
        requests: Sequence[Mapping[str, object]],
        limit: TimeLimit,
        *,
        limit_bytes: int = ANSWER_LIMIT_BYTES,
    ) -> list[Answer]:
        settings = self.settings
        question = {
            "url": settings.url,
            "ca_path": settings.ca_path,
            **who_we_are(asdict(settings), self._login),
            "timeout_s": limit.left_s(),
            "limit_bytes": limit_bytes,
            "requests": list(requests),
        }
        answers: list[Answer] = ask(self._runner, rest_helper.__file__, question, limit)
        return answers


def _post(path: str, body: str, content_type: str) -> dict[str, object]:
    return {"method": "POST", "paths": [path], "body": body, "type": content_type}


def _good(answer: Answer) -> Answer:
    """Return the answer if the CE did what was asked."""
    status = int(answer["status"])
    if status < _OK or status >= _SERVER_ERROR:
        raise Unreachable(f"the CE answered with status {status}")
    if status >= _CLIENT_ERROR:
        said = " ".join(str(answer["body"]).split())[:300]
        raise Refused(f"the CE answered with status {status}: {said}".rstrip(": "))
    return answer


def _json(answer: Answer) -> Any:
    try:
        return json.loads(_good(answer)["body"])
    except ValueError as error:
        raise Unreachable("the CE's answer is garbled") from error


def _listed(answer: Answer) -> list[Answer]:
    """Return the jobs of an answer: the CE writes one as an object, several as a list."""
    if _good(answer)["body"].strip() == "":
        return []
    found = _json(answer)
    jobs = found.get("job", []) if isinstance(found, dict) else None
    if isinstance(jobs, dict):
        return [jobs]
    if not isinstance(jobs, list) or not all(isinstance(job, dict) for job in jobs):
        raise Unreachable("the CE's answer is garbled")
    return jobs


def _in_requests(ids: Collection[str]) -> Iterator[list[str]]:
    """Yield well-formed ids in portions; anything else cannot be a pilot of ours."""
    good = [each for each in ids if _PILOT_ID.fullmatch(each)]
    for start in range(0, len(good), IDS_PER_REQUEST):
        yield good[start : start + IDS_PER_REQUEST]


def _code(job: Answer) -> int:
    return _number(job.get("status-code"))


def _number(value: object) -> int:
    return int(value) if isinstance(value, str) and value.isdecimal() else 0


def _state(native: str, record: Answer) -> PilotState:
    state = _STATES.get(native)
    if state is None:
        return PilotState(BatchState.MISSING, f"the CE says {native}", native=native)
    node = str(_first(record.get("ExecutionNode", "")))
    code_text = str(record.get("ExitCode", ""))
    code = int(code_text) if code_text.lstrip("-").isdecimal() else None
    if state == BatchState.DONE and code is None:
        code = 0
    reason = "; ".join(str(each) for each in _several(record.get("Error", [])))
    if state == BatchState.FAILED and not reason:
        reason = "failed" if code is None else f"exit code {code}"
    return PilotState(state, reason, node, code, native)


def _several(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def _first(value: object) -> object:
    return next(iter(_several(value)), "")


def _places(info: Any, queue: str) -> tuple[Answer, Answer]:
    """Return what the CE says of the queue, and of the batch system behind all of its queues."""
    try:
        service = info["Domains"]["AdminDomain"]["Services"]["ComputingService"]
        shares = [each for each in _several(service["ComputingShare"]) if isinstance(each, dict)]
        manager = _first(service["ComputingManager"])
    except (KeyError, TypeError) as error:
        raise Unreachable("the CE's information is garbled") from error
    ours = [each for each in shares if not queue or each.get("Name") == queue]
    if not ours:
        raise Refused(f"the CE has no queue {queue}")
    return ours[0], manager if isinstance(manager, dict) else {}


def arc_element(settings: Settings, login: Login | None = None) -> ArcElement:
    """Return the adapter for the settings of a queue; raise `BadSettings`."""
    reader = SettingsReader(settings, _KEYS)
    files = {
        key: str(reader.optional_path(key) or "")
        for key in ("ca_path", "certificate_file", "key_file", "token_file")
    }
    if not files["certificate_file"] and not files["token_file"]:
        raise reader.bad("certificate_file", "is missing; it needs an absolute path, or token_file")
    if files["key_file"] and not files["certificate_file"]:
        raise reader.bad("key_file", "needs certificate_file")
    return ArcElement(
        ArcSettings(
            url=reader.text(
                "url",
                pattern=r"https://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._/-]*)?",
                what="an address https://HOST:PORT/arex",
            ),
            queue=reader.text("queue", "", pattern=r"[A-Za-z0-9][A-Za-z0-9_.-]*", what="a queue"),
            **files,
            cores=reader.number("cores", 1, low=1, high=10_000),
            timeout_s=reader.number("timeout_s", TIMEOUT_S, low=1, high=LONGEST_TIMEOUT_S),
        ),
        login=login,
    )
