"""Releases: pilots of an earlier and of a later one are served to their end.

The conversation was recorded between a pilot and a server of before pilots checked their nodes,
kept reports in a spool, sent output while they ran, and told what they use. In the file `@1@` is a
job, `@PILOT@` and `@SECRET@` are the pilot's.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.http import HttpResponse

from matching.task_queues.needs import Needs
from tests.portal.pilot_api.pilot_client import SECRET, PilotClient
from wms.core.actors import Actor
from wms.core.models import User
from wms.jobs import operations
from wms.jobs.content import blobs
from wms.jobs.models import Job, WorkspaceFile
from wms.pilots.models import Pilot

pytestmark = pytest.mark.django_db

RECORDED = Path(__file__).parents[2] / "samples/pilots/former_conversation.jsonl"
#: With what the recording server was configured.
CONFIGURED = {"AGENT_HEARTBEAT_S": 0.3, "AGENT_POLL_S": 0.1, "AGENT_IDLE_LIMIT_S": 0.3}
#: Words for people, which may change.
WORDS = frozenset({"detail", "reason"})
#: Whatever a payload tells has a meaning.
OPEN = frozenset({"attributes"})

Message = dict[str, Any]


class Replay:
    """Sends what was recorded; jobs come into being when they were claimed."""

    def __init__(self, client: PilotClient) -> None:
        self._client = client
        self._owner = User.objects.create_user("alice")
        self._lines = RECORDED.read_text().splitlines()
        self._names = {"@PILOT@": str(client.pilot.uuid), "@SECRET@": SECRET}

    def run(self, *, has_unknown_fields: bool) -> None:
        for number, line in enumerate(self._lines):
            self._prepare(json.loads(line)["answer"], number)
            message = json.loads(self._named(line))
            answer = self._send(message, has_unknown_fields)
            assert answer.status_code == message["status"], (message, answer.content)
            if message["method"] == "GET":
                assert b"".join(answer.streaming_content).decode() == message["answer"]  # type: ignore[attr-defined]
            else:
                assert_told(message["answer"], json.loads(answer.content))

    def job(self, number: int) -> Job:
        return Job.objects.get(pk=int(self._names[f"@{number}@"]))

    def _named(self, line: str) -> str:
        for name, here in self._names.items():
            quoted = f'"{name}"'
            line = line.replace(quoted, here if here.isdigit() else f'"{here}"')
            line = line.replace(name, here)
        return line

    def _prepare(self, told: Any, number: int) -> None:
        """See to it that there is the same to be told as when it was recorded."""
        if not isinstance(told, dict):
            return
        if told.get("job"):
            self._submit(told["job"], number)
        for command in told.get("commands", []):
            pk = int(self._names[command["job"]])
            operations.kill_jobs([pk], actor=Actor.person(self._owner), reason="not needed")

    def _submit(self, told: dict[str, Any], number: int) -> None:
        prefix = f"jobs/{told['job']}/1/inputs/"
        later = [json.loads(line) for line in self._lines[number:]]
        fetched = {each["path"]: each["answer"] for each in later if each["method"] == "GET"}
        contents = {
            path.removeprefix(prefix): blobs.store_bytes(text.encode())
            for path, text in fetched.items()
            if path.startswith(prefix)
        }
        spec = operations.JobSpec(
            name=told["name"],
            executable=told["executable"],
            needs=Needs.of(self._owner.username),
            environment=told["environment"],
            input_files=tuple(path for path in contents if path != told["executable"]),
            output_files=tuple(told["outputs"]),
            wall_limit_s=told["wall_limit_s"],
        )
        [pk] = operations.submit_jobs(
            [spec],
            owner=self._owner,
            workspace=operations.create_workspace(self._owner, contents),
            actor=Actor.person(self._owner),
        )
        self._names[told["job"]] = str(pk)

    def _send(self, message: Message, has_unknown_fields: bool) -> HttpResponse:
        path, send = message["path"], message["send"]
        if message["method"] == "POST":
            return self._client.post(path, with_unknown(send) if has_unknown_fields else send)
        if message["method"] == "PUT":
            return self._client.put(path, send.encode())
        return self._client.request(message["method"], path)


def with_unknown(value: Any) -> Any:
    """The same with one more field in every object, as a later release may have."""
    if isinstance(value, list):
        return [with_unknown(each) for each in value]
    if not isinstance(value, dict):
        return value
    known = {name: each if name in OPEN else with_unknown(each) for name, each in value.items()}
    return {**known, "of_a_later_release": {"list": [1, None, {"text": "x"}]}}


def assert_told(recorded: Any, answered: Any) -> None:
    """Everything that was told then is told today, perhaps beside more."""
    if isinstance(recorded, dict):
        assert set(recorded) <= set(answered), (recorded, answered)
        for name, value in recorded.items():
            if name not in WORDS:
                assert_told(value, answered[name])
    elif isinstance(recorded, list):
        assert len(recorded) == len(answered), (recorded, answered)
        for then, today in zip(recorded, answered, strict=True):
            assert_told(then, today)
    else:
        assert recorded == answered


@pytest.mark.parametrize("has_unknown_fields", [False, True], ids=["former", "later"])
def test_a_pilot_of_another_release_is_served_from_its_registration_to_its_good_bye(
    fresh: PilotClient, settings: Any, has_unknown_fields: bool
) -> None:
    settings.PILOTAGE = {**settings.PILOTAGE, **CONFIGURED}
    replay = Replay(fresh)

    replay.run(has_unknown_fields=has_unknown_fields)

    done, failed, killed = replay.job(1), replay.job(2), replay.job(3)
    assert (done.state, failed.state, killed.state) == ("done", "failed", "killed")
    assert "exit code 3" in failed.state_reason
    output = WorkspaceFile.objects.get(workspace=done.workspace_id, path="out.txt")
    with blobs.open_blob(output.blob_id) as content:
        assert content.read() == b"in"
    pilot = Pilot.objects.get()
    assert (pilot.state, pilot.state_reason) == ("done", "idle")
