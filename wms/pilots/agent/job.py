"""One job from its description to its final report."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import payload, sandbox
from .attributes import FILE_NAME, home_of
from .client import Client, HashMismatch, NodeFault, Rejected, Superseded
from .control import Attempt, Bell, Control
from .node import Share

#: What a payload sees of the pilot's own environment; the job's own variables come on top.
PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ")
DOWNLOAD_TRIES = 3
#: The server bounds what it reads. It finds out itself which outputs it did not receive.
NAMES_IN_REPORT = 100
REASON_LENGTH = 2000

# What the system says of names that are too long, or of a file and a folder of the same name.
_BAD_NAMES = frozenset({errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG})

log = logging.getLogger("pilot")


@dataclass(frozen=True)
class Input:
    """A file of the input sandbox."""

    path: str
    sha256: str


@dataclass(frozen=True)
class Job:
    """A job as the server handed it out."""

    job: int
    attempt: int
    name: str
    executable: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    inputs: tuple[Input, ...]
    outputs: tuple[str, ...]
    wall_limit_s: float | None
    share: Share

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Job:
        """Read the server's description; call it `understanding` that it may be none."""
        limit = data.get("wall_limit_s")
        return cls(
            job=int(data["job"]),
            attempt=int(data["attempt"]),
            name=str(data.get("name", "")),
            executable=str(data["executable"]),
            arguments=tuple(str(each) for each in data.get("arguments", ())),
            environment={str(k): str(v) for k, v in data.get("environment", {}).items()},
            inputs=tuple(Input(str(e["path"]), str(e["sha256"])) for e in data.get("inputs", ())),
            outputs=tuple(str(each) for each in data.get("outputs", ())),
            wall_limit_s=None if limit is None else float(limit),
            share=Share(int(data["cores"]), int(data["memory_mb"]), int(data["gpus"])),
        )

    @property
    def key(self) -> Attempt:
        """Job and attempt: what every message about it names."""
        return (self.job, self.attempt)

    @property
    def path(self) -> str:
        """The prefix of this attempt's addresses."""
        return f"jobs/{self.job}/{self.attempt}"


class NotRun(Exception):
    """The payload was not run, or not to its end, for a reason that is not its own.

    This node or its connection is not fit for work, or the pilot was told to go.
    """


def _are_names_bad(error: Exception) -> bool:
    """Tell a job whose file names cannot all exist from a node without resources."""
    cause = error if isinstance(error, OSError) else error.__cause__
    return isinstance(cause, OSError) and cause.errno in _BAD_NAMES


class JobRun:
    """Carries one attempt through: fetch, run, send back, report. `bell` is its thread's.

    Raises the client's exceptions, and `NotRun` after it was reported: whoever asked for another
    job would be given the same one, and use up its attempts. An attempt that the server gave to
    somebody else is dropped in silence.
    """

    def __init__(
        self, job: Job, *, client: Client, control: Control, bell: Bell, work_dir: Path
    ) -> None:
        self._job = job
        self._client = client
        self._control = control
        self._bell = bell
        self._home = home_of(work_dir, job.key)
        self._sandbox = self._home / "sandbox"
        self._stdout = self._home / "stdout"
        self._stderr = self._home / "stderr"

    def run(self) -> None:
        """Do all of it; afterwards nothing is left of the job on this node."""
        try:
            self._run()
        except Superseded as error:
            log.warning("job %d attempt %d is no longer ours: %s", *self._job.key, error)
        finally:
            sandbox.remove(self._home)

    def _run(self) -> None:
        try:
            outcome = self._prepare_and_execute()
        except NotRun as error:
            log.error("job %d attempt %d did not run: %s", *self._job.key, error)
            self._report({"event": "not_run", "reason": str(error)[:REASON_LENGTH]})
            raise
        missing, problems = self._send_results()
        reasons = [outcome.reason, *problems] if outcome.reason else problems
        ended = {
            "event": "ended",
            "exit_code": outcome.exit_code,
            "signal": outcome.signal,
            "wall_s": outcome.wall_s,
            "cpu_s": outcome.cpu_s,
            "max_rss_mb": outcome.max_rss_mb,
            "reason": "; ".join(reasons)[:REASON_LENGTH],
            "missing_outputs": missing[:NAMES_IN_REPORT],
        }
        log.info("job %d attempt %d ended: %s", *self._job.key, ended)
        self._report(ended)

    def _prepare_and_execute(self) -> payload.Outcome:
        try:
            self._make_room()
            command = self._lay_out()
            self._check_still_wanted()
            self._report({"event": "started"})
            outcome = self._execute(command)
        except sandbox.BadPath as error:
            return payload.Outcome.not_started(str(error))
        except (OSError, NodeFault) as error:
            raise NotRun(f"this node failed: {error}") from error
        if outcome.reason:
            # Not the payload's fault, whatever it made of the signal.
            self._check_still_wanted()
        return outcome

    def _check_still_wanted(self) -> None:
        """A pilot that is told to go gives its job back."""
        if self._control.is_terminated:
            raise NotRun("terminated")

    def _make_room(self) -> None:
        self._sandbox.mkdir(parents=True)
        (self._home / "tmp").mkdir()

    def _lay_out(self) -> list[str]:
        """Fetch the inputs and return the command line."""
        for each in self._job.inputs:
            target = sandbox.inside(self._sandbox, each.path)
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                self._fetch(each, target)
            except (OSError, NodeFault) as error:
                if _are_names_bad(error):
                    raise sandbox.BadPath(f"input {each.path} cannot exist: {error}") from error
                raise
        executable = sandbox.locate_executable(self._sandbox, self._job.executable)
        return [executable, *self._job.arguments]

    def _fetch(self, each: Input, target: Path) -> None:
        problem = ""
        for _ in range(DOWNLOAD_TRIES):
            self._check_still_wanted()
            try:
                self._client.download(
                    f"{self._job.path}/inputs/{each.path}", target, sha256=each.sha256
                )
                return
            except HashMismatch as error:
                problem = str(error)
                log.warning("%s", problem)
            except Superseded:
                raise
            except Rejected as error:
                raise NotRun(f"input {each.path}: {error}") from error
        raise NotRun(problem)

    def _execute(self, command: list[str]) -> payload.Outcome:
        log.info("job %d attempt %d (%s) starts", *self._job.key, self._job.name)
        return payload.run_payload(
            command,
            environment=self._environment(),
            directory=self._sandbox,
            stdout=self._stdout,
            stderr=self._stderr,
            wall_limit_s=self._job.wall_limit_s,
            attempt=self._job.key,
            control=self._control,
            bell=self._bell,
        )

    def _environment(self) -> dict[str, str]:
        passed_on = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        return {
            **passed_on,
            "HOME": str(self._sandbox),
            "TMPDIR": str(self._home / "tmp"),
            "PILOTAGE_JOB": str(self._job.job),
            "PILOTAGE_ATTEMPT": str(self._job.attempt),
            "PILOTAGE_JOB_ATTRIBUTES": str(self._home / FILE_NAME),
            "PILOTAGE_CORES": str(self._job.share.cores),
            "PILOTAGE_MEMORY_MB": str(self._job.share.memory_mb),
            "PILOTAGE_GPUS": str(self._job.share.gpus),
            "OMP_NUM_THREADS": str(self._job.share.cores),
            **self._job.environment,
        }

    def _send_results(self) -> tuple[list[str], list[str]]:
        """Upload what the payload left; return the outputs that are missing, and why if refused."""
        missing: list[str] = []
        problems: list[str] = []
        for kind, path in (("stdout", self._stdout), ("stderr", self._stderr)):
            self._send_log(kind, path, problems)
        for name in self._job.outputs:
            source = sandbox.find_output(self._sandbox, name)
            if source is None or not self._send("output", name, source, problems):
                missing.append(name)
        return missing, problems

    def _send_log(self, kind: str, path: Path, problems: list[str]) -> None:
        try:
            log_file = sandbox.bounded_log(path) if path.is_file() else None
        except OSError as error:
            # A payload that prints until the disk is full leaves no room for shortening.
            problems.append(f"{kind} was not stored: {error}")
            return
        if log_file is not None:
            self._send(kind, kind, log_file, problems)

    def _send(self, kind: str, name: str, source: Path, problems: list[str]) -> bool:
        try:
            self._client.upload(f"{self._job.path}/files/{kind}/{name}", source)
        except Superseded:
            raise
        except (Rejected, NodeFault) as error:
            problems.append(f"{kind} {name} was not stored: {error}")
            return False
        return True

    def _report(self, report: dict[str, Any]) -> None:
        self._client.call(f"{self._job.path}/report", report)
