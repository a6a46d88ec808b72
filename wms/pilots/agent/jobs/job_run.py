"""Run of one job on the node: fetch inputs, execute the payload, send outputs and report.

Also sends checkpoints and starts the payload again from them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..control import Control, Waker
from ..fence.base import Enclosure, Fence, FenceUnusable, LaunchPlan, Reservation
from ..files import sandbox
from ..files.job_directories import JobDirectories, SharedFolder, attempt_directory
from ..payload import execution
from ..payload.meter import Meter
from ..resources.cgroups import Cgroups
from ..resources.limits import Limits
from ..server.client import (
    BadAnswer,
    Client,
    NodeFault,
    Rejected,
    Superseded,
    Unavailable,
)
from ..server.report_delivery import REASON_LENGTH, AttachedFields, Upload, bounded_names
from ..server.report_spool import ReportSpool
from ..server.start_report import StartReport
from ..server.stream_upload import StreamUploader
from .images import Images
from .inputs import JobInputs, NotFetched
from .job_description import AttachedClaim, Job
from .job_transfers import FETCH, JobTransfers, NotRun
from .outputs import JobOutputs
from .payload_command import payload_command, payload_environment
from .token_renewal import TokenRenewal

#: So long a checkpoint waits for the server.
CHECKPOINT_RETRY_S = 60.0
#: Factor of the CPU time asked for that a job may use, on each of its cores.
_CPU_TOLERANCE = 1.2

log = logging.getLogger("pilot")


@dataclass(frozen=True)
class RunContext:
    """Context that all jobs of a pilot share: fence, limits, spool, control groups, time left."""

    work_dir: Path
    server_url: str
    control: Control
    fence: Fence
    images: Images
    limits: Limits
    spool: ReportSpool
    cgroups: Cgroups
    #: The claim that can go with the last report of a job, whose part of the slot is free then.
    next_claim: Callable[[Job], dict[str, Any] | None]
    #: Seconds that the pilot still has for a job that begins now.
    left_s: Callable[[], float]
    shared: tuple[SharedFolder, ...] = ()
    #: Variables that checks of the node publish for payloads.
    published: Callable[[], Mapping[str, str]] = dict


class JobRun:
    """Carries one attempt through: fetch, run, send back, report. `waker` is its thread's.

    `reservation` is what its fence keeps for it.

    Raises the client's exceptions, and `NotRun` after it was reported: whoever asked for another
    job would be given the same one, and use up its attempts. An attempt that the server gave to
    somebody else is dropped in silence.
    """

    def __init__(
        self,
        job: Job,
        *,
        client: Client,
        waker: Waker,
        context: RunContext,
        reservation: Reservation,
    ) -> None:
        self._job = job
        self._pilots_client = client
        self._client = client.with_token(job.token) if job.token else client
        self._context = context
        self._control = context.control
        self._waker = waker
        self._reservation = reservation
        self._directories = JobDirectories(
            attempt_directory(context.work_dir, job.key), job.owner, job.share.gpus, context.shared
        )
        self._stdout = self._directories.home / "stdout"
        self._stderr = self._directories.home / "stderr"
        self._limits = context.limits.narrowed(
            wall_s=job.wall_limit_s,
            cpu_s=_CPU_TOLERANCE * max(1, job.share.cores) * (job.cpu_time_s or 0),
            memory_mb=job.share.memory_mb,
            disk_mb=job.share.disk_mb,
            grace_s=job.kill_grace_s,
        )
        self._meter: Meter | None = None
        self.token = TokenRenewal(job.key, job.bearer)
        self._missing_checkpoint: list[str] = []
        self._transfers = JobTransfers(job, self._control, waker, context.left_s)
        self._inputs = JobInputs(
            job, self._directories, self._client, self._limits, self._transfers
        )

    def usage(self) -> dict[str, Any]:
        """Usage of the payload as last measured, and what was moved by URL; nothing before."""
        measured = {} if self._meter is None else self._meter.last.to_json()
        return {**measured, **self._transfers.moved.to_json()}

    def run(self) -> AttachedClaim | None:
        """Run the whole attempt; afterwards nothing is left of the job on this node."""
        try:
            return self._run()
        except Superseded as error:
            log.warning("job %d attempt %d is no longer ours: %s", *self._job.key, error)
            return None
        finally:
            self._reservation.close()
            sandbox.remove(self._directories.home)

    def _run(self) -> AttachedClaim | None:
        try:
            outcome = self._prepare_and_execute()
        except NotRun as error:
            log.error("job %d attempt %d did not run: %s", *self._job.key, error)
            self._report(
                {
                    "event": "not_run",
                    "reason": str(error)[:REASON_LENGTH],
                    "stopped_by": error.stopped_by,
                }
            )
            raise
        except NotFetched as error:
            log.error("job %d attempt %d did not run: %s", *self._job.key, error)
            reason = str(error)[:REASON_LENGTH]
            self._report({"event": "not_run", "reason": reason, "failed_transfer": FETCH})
            return None
        outcome, sent_to_urls = self._transfers.send_outputs(self._directories, outcome)
        results = JobOutputs(
            self._job.path,
            self._job.outputs,
            self._directories,
            self._limits,
            elsewhere=self._job.output_urls,
        )
        uploads = self._uploads(results, outcome)
        ended = {
            "event": "ended",
            "exit_code": outcome.exit_code,
            "signal": outcome.signal,
            "wall_s": outcome.usage.wall_s,
            "cpu_s": outcome.usage.cpu_s,
            "max_rss_mb": outcome.max_rss_mb,
            "usage": {**outcome.usage_json(), **self._transfers.moved.to_json()},
            "stopped_by": outcome.stopped_by,
            "reason": "; ".join(filter(None, [outcome.reason, *results.problems]))[:REASON_LENGTH],
            "missing_outputs": bounded_names([*self._missing_checkpoint, *results.missing]),
            **({"is_image_at_fault": True} if outcome.is_image_at_fault else {}),
            **({"failed_transfer": outcome.failed_transfer} if outcome.failed_transfer else {}),
            **({"sent_to_urls": sent_to_urls} if sent_to_urls else {}),
            **({"folders": results.folders_json()} if results.folders else {}),
        }
        log.info("job %d attempt %d ended: %s", *self._job.key, ended)
        claim = self._context.next_claim(self._job)
        attached = AttachedFields({"claim": claim}, self._pilots_client) if claim else None
        answer = self._report(ended, uploads, attached)
        return AttachedClaim(claim, (answer or {}).get("claim")) if claim else None

    def _uploads(self, results: JobOutputs, outcome: execution.Outcome) -> list[Upload]:
        """Files to send before the report; none where there is no time for them, nor any use."""
        if outcome.stopped_by in (execution.PREEMPTION, execution.PILOT):
            return []
        logs = results.logs(self._stdout, self._stderr)
        if outcome.stopped_by == execution.PILOT_TIME or self._missing_checkpoint:
            return logs
        return [*logs, *results.outputs()]

    def _deadline(self) -> execution.Deadline:
        """Deadline by the end of the pilot's time, where that comes before the payload's limit."""
        left_s, own_s = self._context.left_s(), self._limits.wall_s
        if own_s is not None and own_s <= left_s:
            return execution.Deadline()
        asked_s = self._job.wall_limit_s
        may = "without a limit" if asked_s is None else f"for {asked_s:g} s"
        reason = f"the job may run {may}, and its pilot had {max(0.0, left_s):.0f} s for it"
        return execution.Deadline(left_s, reason)

    def _prepare_and_execute(self) -> execution.Outcome:
        try:
            self._directories.make()
            enclosure = self._enclose()
            try:
                return self._lay_out_and_execute(enclosure)
            finally:
                enclosure.close()
        except sandbox.BadPath as error:
            return execution.Outcome.not_started(str(error))
        except (OSError, NodeFault, RuntimeError, FenceUnusable) as error:
            # The third one: no thread is left.
            raise NotRun(f"this node failed: {error}") from error

    def _enclose(self) -> Enclosure:
        """Enclose the job behind the fence, or in a container of its image."""
        if self._job.image:
            return self._context.images.enclose(self._directories, self._job.image)
        return self._context.fence.enclose(self._directories, self._reservation)

    def _lay_out_and_execute(self, enclosure: Enclosure) -> execution.Outcome:
        ended = self._inputs.fetch()
        if ended is not None:
            return ended
        if self._job.image:
            ended = self._context.images.prepare(
                self._job.image, self._directories, self._limits, self._run_to_fetch
            )
            if ended is not None:
                return ended
        executable = enclosure.executable(self._job.executable)
        self._transfers.check_still_wanted()
        started = StartReport(
            self._job.key, self._job.path, self._client, self._control, self._context.spool
        )
        try:
            problem = self._why_not_executable(enclosure)
            if problem:
                return execution.Outcome.not_started(problem)
            enclosure.enter()
            try:
                self.token.begin(enclosure.write_token)
                return self._execute(payload_command(self._job, executable, enclosure), enclosure)
            finally:
                self.token.stop()
                enclosure.leave(self._job.outputs)
        finally:
            started.finish()

    def _why_not_executable(self, enclosure: Enclosure) -> str:
        path = sandbox.on_node(self._directories.sandbox, self._job.executable)
        if path == self._job.executable and enclosure.hides(path):
            return f"cannot start {path}: it is not visible behind the fence {enclosure.name}"
        if path == self._job.executable and not enclosure.has_node_system:
            return ""
        return sandbox.why_not_executable(path, sees_node=enclosure.has_node_system)

    def _execute(self, command: list[str], enclosure: Enclosure) -> execution.Outcome:
        log.info("job %d attempt %d (%s) starts", *self._job.key, self._job.name)
        files = {"stdout": self._stdout, "stderr": self._stderr}
        self._meter = Meter(enclosure, list(files.values()), self._limits)
        for each in files.values():
            each.touch()
        stream_uploader = StreamUploader(self._client, self._job.path, files)
        stream_uploader.start()
        try:
            outcome = self._run_payload(command, enclosure, stream_uploader)
            while self._is_checkpoint(outcome) and self._keep_checkpoint(enclosure):
                self._meter = Meter(enclosure, list(files.values()), self._limits)
                again = self._run_payload(command, enclosure, stream_uploader)
                outcome = again.after(outcome)
            return outcome
        finally:
            stream_uploader.stop()

    def _is_checkpoint(self, outcome: execution.Outcome) -> bool:
        code = self._job.checkpoint.exit_code
        return code is not None and outcome.exit_code == code and not outcome.reason

    def _keep_checkpoint(self, enclosure: Enclosure) -> bool:
        """Send the files of a checkpoint; False if some are missing, and the job cannot go on.

        If the server does not take them, the payload goes on from them all the same; only another
        attempt begins with those before.
        """
        self._transfers.check_still_wanted()
        names = self._job.checkpoint.files
        enclosure.leave(names)
        files = JobOutputs(self._job.path, names, self._directories, self._limits)
        uploads = files.checkpoint()
        self._missing_checkpoint = files.missing
        if files.missing:
            return False
        try:
            for each in uploads:
                self._client.upload(each.path, each.source, retry_s=CHECKPOINT_RETRY_S)
            sent = [each.path.split("/files/incoming/", 1)[1] for each in uploads]
            body = {"event": "checkpointed", "files": sent}
            self._client.call(f"{self._job.path}/report", body, retry_s=CHECKPOINT_RETRY_S)
        except Superseded:
            raise
        except (Unavailable, Rejected, BadAnswer, NodeFault) as error:
            log.warning("job %d attempt %d: a checkpoint is not kept: %s", *self._job.key, error)
        return True

    def _run_payload(
        self, command: list[str], enclosure: Enclosure, stream_uploader: StreamUploader
    ) -> execution.Outcome:
        assert self._meter is not None
        context = self._context
        published = context.published()
        environment = payload_environment(self._job, enclosure, published, context.server_url)
        with self._context.cgroups.group(self._directories.home.name, self._limits) as group:
            outcome = execution.run_payload(
                enclosure.plan(command, environment, self._limits),
                stdout=self._stdout,
                stderr=self._stderr,
                limits=self._limits,
                meter=self._meter,
                attempt=self._job.key,
                control=self._control,
                waker=self._waker,
                deadline=self._deadline(),
                cgroup=group.path,
                on_peek=stream_uploader.send_now,
            )
            killed = group.why_killed()
        if killed and not outcome.reason:
            outcome = replace(outcome, reason=killed, stopped_by=execution.WATCHDOG)
        if self._job.image:
            outcome = self._context.images.judged(outcome, self._stderr)
        return outcome

    def _run_to_fetch(
        self, plan: LaunchPlan, measured: Enclosure, limits: Limits, said: Path
    ) -> execution.Outcome:
        """Run a program that fetches something for the job: it may use what memory it needs."""
        limits = replace(limits, memory_mb=None, cpu_s=None)
        return execution.run_payload(
            plan,
            stdout=said,
            stderr=said,
            limits=limits,
            meter=Meter(measured, [said], limits),
            attempt=self._job.key,
            control=self._control,
            waker=self._waker,
            deadline=self._deadline(),
        )

    def _report(
        self,
        report: dict[str, Any],
        uploads: list[Upload] | None = None,
        attached: AttachedFields | None = None,
    ) -> dict[str, Any] | None:
        """Report how the attempt ended, now or when the server is back."""
        return self._context.spool.put(
            f"{self._job.path}/report",
            report,
            client=self._client,
            uploads=uploads or (),
            attached=attached,
        )
