"""Fixture `world` of tests of the pilot agent: a real portal, and pilots that are real processes.

Its server is reached through a proxy that can fail. `World` submits jobs, starts agents, and reads
states, outputs and logs.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import io
import json
import marshal
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from matching.task_queues.needs import Needs
from tests.wms.pilots.agent.faulty_proxy import FaultyProxy
from wms.core.actors import Actor
from wms.core.models import User
from wms.jobs import operations
from wms.jobs.content import blobs
from wms.jobs.models import Attempt, Job, WorkspaceFile
from wms.pilots.agent.control import Control
from wms.pilots.agent.session.loop import Agent
from wms.pilots.agent.session.pilot_config import PilotConfig
from wms.pilots.models import Pilot
from wms.pilots.program.bundle import agent_bundle
from wms.pilots.protocol.registration import secret_digest
from wms.pilots.protocol.waiting_list import WAITING_LIST
from wms.sites.models import Queue, Site

SECRET = "a-secret-that-is-good-for-one-registration"
LIMIT_S = 90.0


def wait_until(condition: Callable[[], object], what: str, limit_s: float = LIMIT_S) -> None:
    """Return as soon as the condition holds; fail when the time is over."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {limit_s} s: {what}"
        time.sleep(0.05)


@functools.cache
def _compiled_bundle() -> bytes:
    """The agent's bundle with its modules compiled by the tests' Python; others read the sources.

    A short pilot would spend half of its time compiling them.
    """
    bundle = io.BytesIO(agent_bundle().content)
    with zipfile.ZipFile(bundle, "a") as archive:
        for name in archive.namelist():
            source = archive.read(name)
            # It is not compared with the source.
            head = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little")
            code = marshal.dumps(compile(source, name, "exec", dont_inherit=True))
            archive.writestr(f"{name}c", head + importlib.util.source_hash(source) + code)
    return bundle.getvalue()


@dataclass
class RunningAgent:
    """An agent's process."""

    pilot: Pilot
    process: subprocess.Popen[bytes]
    log_file: Path
    work_dir: Path

    @property
    def log(self) -> str:
        return self.log_file.read_text()

    def wait(self, limit_s: float = LIMIT_S) -> int:
        """Return the exit code."""
        try:
            return self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            pytest.fail(f"the agent does not end; its log:\n{self.log}")


@dataclass
class World:
    """A site with a queue, its owner Alice, and pilots sent to it."""

    server: FaultyProxy
    directory: Path
    queue: Queue
    alice: User
    agents: list[RunningAgent] = field(default_factory=list)
    #: Command of the agents' Python, where they run in another node than this host, and their
    #: account there.
    python: Sequence[str] = (sys.executable,)
    uid: int = 0

    def submit(
        self,
        script: str,
        *,
        inputs: dict[str, bytes] | None = None,
        outputs: tuple[str, ...] = (),
        arguments: tuple[str, ...] = (),
        wall_limit_s: int = 60,
        environment: dict[str, str] | None = None,
        directives: dict[str, Any] | None = None,
        max_retries: int = 0,
        owner: User | None = None,
        **needs: Any,
    ) -> Job:
        """Submit a job of this owner, else Alice's, that runs this script."""
        files = {"run.sh": script.encode(), **(inputs or {})}
        stored = {path: blobs.store_bytes(content) for path, content in files.items()}
        spec = operations.JobSpec(
            name="test",
            executable="run.sh",
            needs=Needs.of((owner or self.alice).username, **needs),
            arguments=arguments,
            environment={"COLOUR": "blue", **(environment or {})},
            input_files=tuple(inputs or ()),
            directives=directives,
            max_retries=max_retries,
            output_files=outputs,
            wall_limit_s=wall_limit_s,
        )
        owner = owner or self.alice
        workspace = operations.create_workspace(owner, stored)
        [job_id] = operations.submit_jobs(
            [spec], owner=owner, workspace=workspace, actor=Actor.person(owner)
        )
        return Job.objects.get(pk=job_id)

    def start(
        self,
        *,
        secret: str = SECRET,
        pilot: Pilot | None = None,
        slot: dict[str, int] | None = None,
        manifest: dict[str, Any] | None = None,
        scripts: Sequence[bytes] = (),
        sha256: str = "",
    ) -> RunningAgent:
        """Start an agent as a batch system would: with one core, where `slot` says nothing else.

        It checks its node only where a manifest is given; `scripts` are its files.
        """
        variables = {"PILOTAGE_INDEX": 0, "PILOTAGE_CORES": 1, **(slot or {})}
        number = len(self.agents)
        work_dir = self.directory / f"work-{number}"
        work_dir.mkdir()
        program = work_dir / "agent.pyz"
        program.write_bytes(_compiled_bundle())
        (work_dir / "files").mkdir()
        for script in scripts:
            (work_dir / "files" / hashlib.sha256(script).hexdigest()).write_bytes(script)
        log_file = self.directory / f"agent-{number}.log"
        pilot = pilot or Pilot.objects.create(
            queue=self.queue, batch=f"batch-{number}", secret_sha256=secret_digest(SECRET)
        )
        manifest_sha256 = self._lay_out(work_dir, manifest)
        config = {
            "server": self.server.url,
            "pilot": str(pilot.uuid),
            "secret": secret,
            "work_dir": str(work_dir),
            "manifest_sha256": sha256 or manifest_sha256,
            "used_s": 0.0,
        }
        for path in (work_dir, *work_dir.rglob("*")) if self.uid else ():
            os.chown(path, self.uid, self.uid)
        with log_file.open("wb") as log:
            process = subprocess.Popen(
                [*self.python, "-I", str(program)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=self.directory,
                env={
                    "PATH": os.environ["PATH"],
                    "LANG": "C.UTF-8",
                    **{name: str(value) for name, value in variables.items()},
                },
                start_new_session=True,
            )
        assert process.stdin is not None
        process.stdin.write(json.dumps(config).encode())
        process.stdin.close()
        self.agents.append(RunningAgent(pilot, process, log_file, work_dir))
        return self.agents[-1]

    def _lay_out(self, work_dir: Path, manifest: dict[str, Any] | None) -> str:
        """Write a manifest where the bootstrap leaves it; return its hash."""
        content = json.dumps(manifest or {"checks": [], "settings": {}}).encode()
        (work_dir / "manifest.json").write_bytes(content)
        return hashlib.sha256(content).hexdigest()

    def agent(self, control: Control) -> Agent:
        """An agent of a new pilot, to be run in a thread of this process."""
        pilot = Pilot.objects.create(
            queue=self.queue, batch="here", secret_sha256=secret_digest(SECRET)
        )
        work_dir = self.directory / "work-here"
        work_dir.mkdir()
        return Agent(PilotConfig(self.server.url, str(pilot.uuid), SECRET, work_dir), control)

    def wait_for_state(self, job: Job, *states: str) -> Job:
        """Return the job once it is in one of these states."""
        wait_until(
            lambda: Job.objects.filter(pk=job.pk, state__in=states).exists(),
            f"job in {states}; the agents' logs:\n" + "\n".join(each.log for each in self.agents),
        )
        return Job.objects.get(pk=job.pk)

    def output(self, job: Job, path: str) -> bytes:
        """The content of a file in the job's workspace."""
        file = WorkspaceFile.objects.get(workspace_id=job.workspace_id, path=path)
        with blobs.open_blob(file.blob_id) as content:
            return content.read()

    def log_of(self, job: Job, kind: str = "stdout") -> str:
        """What the latest attempt printed."""
        attempt = Attempt.objects.filter(job=job).latest("number")
        with blobs.open_blob(attempt.files.get(kind=kind).blob_id) as content:
            return content.read().decode()


@pytest.fixture
def world(
    live_server: Any, processes: None, transactional_db: None, settings: Any, tmp_path: Path
) -> Iterator[World]:
    settings.PILOTAGE = {
        **settings.PILOTAGE,
        "AGENT_HEARTBEAT_S": 0.3,
        "AGENT_POLL_S": 0.1,
        "AGENT_IDLE_LIMIT_S": 0.3,
        "BLOBS_DIR": str(tmp_path / "blobs"),
    }
    (tmp_path / "blobs").mkdir()
    (tmp_path / "node").mkdir()
    site = Site.objects.create(name="UW")
    # Payloads of these tests tell of themselves by files anywhere on this host.
    queue = Queue.objects.create(
        site=site, name="short", element="host", hold_after_failure_s=0, fence="none"
    )
    alice = User.objects.create_user("alice")
    proxy = FaultyProxy(live_server.url)
    world = World(proxy, tmp_path / "node", queue, alice)
    yield world
    for each in world.agents:
        if each.process.poll() is None:
            each.process.kill()
            each.process.wait()
    # Claims that are held would go on in the next test.
    WAITING_LIST.release_all()
    wait_until(lambda: not WAITING_LIST._slots, "no claim is held")
    proxy.stop()
