"""Order of messages: repeated and reordered ones leave the portal in the same state."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.portal.pilot_api.pilot_client import ENDED, PilotClient
from wms.accounting.accounts import Period, UseBy, use_lines
from wms.core.models import User
from wms.jobs.accounting import account_attempts
from wms.jobs.models import Attempt, Job, JobEvent, Stream, WorkspaceFile
from wms.jobs.output.streams import stream_text
from wms.jobs.output.texts import chunks_of
from wms.pilots.models import Pilot, PilotLog
from wms.pilots.monitoring.accounting import account_pilots
from wms.pilots.protocol.logs import log_text

pytestmark = pytest.mark.django_db

OUTPUT = b"the result"
PIECES = {"stdout": (b"one\n", b"two\n", b"three\n"), "stderr": (b"warning\n",)}
LOG = (b"registered\n", b"claimed a job\n")


class Messages:
    """What a pilot sends of one attempt, by a name; each may be sent at any time and again."""

    def __init__(self, client: PilotClient, job: int, attempt: int) -> None:
        self._client, self._job, self._attempt = client, job, attempt
        self._path = f"jobs/{job}/{attempt}"

    def send(self, name: str) -> None:
        """Send one; what the portal asks to be sent first is sent by the caller later."""
        kind, _, number = name.partition(" ")
        if kind == "beat":
            told = {"job": self._job, "attempt": self._attempt,
                    "usage": {"wall_s": float(number), "cpu_s": 1.0}}  # fmt: skip
            body: dict[str, Any] = {"jobs": [told], "sequence": int(number), "load": {}}
            self._client.post("heartbeat", body)
        elif kind == "log":
            self._piece("log", LOG, int(number))
        elif kind in PIECES:
            self._piece(f"{self._path}/streams/{kind}", PIECES[kind], int(number))
        elif kind == "started":
            self._client.post(f"{self._path}/report", {"event": "started"})
        elif kind == "ended":
            usage = {"wall_s": 9.0, "cpu_s": 8.0, "disk_mb": 3}
            self._client.post(f"{self._path}/report", ENDED | {"wall_s": 9.0, "usage": usage})
        else:
            totals = {"cores": 1, "lifetime_s": 20.0, "validation_s": 2.0}
            self._client.post("end", {"reason": "idle", "detail": "", "totals": totals})

    def _piece(self, path: str, pieces: Sequence[bytes], number: int) -> None:
        offset = sum(map(len, pieces[:number]))
        self._client.request("POST", f"{path}?offset={offset}", pieces[number])


OF_THE_ATTEMPT = ["started", "ended", "beat 1", "beat 2", "beat 3", "stdout 0", "stdout 1",
                  "stdout 2", "stderr 0", "log 0", "log 1"]  # fmt: skip


@pytest.fixture
def messages(registered: PilotClient, job_id: int) -> Messages:
    """A claimed job whose output has arrived: only the messages are still under way."""
    job = registered.claim()
    made = f"jobs/{job['job']}/{job['attempt']}/files/output/out.txt"
    assert registered.put(made, OUTPUT).status_code == 200
    Pilot.objects.update(registered_at="2026-11-20T12:00:00Z", created_at="2026-11-20T12:00:00Z")
    return Messages(registered, job["job"], job["attempt"])


@contextmanager
def taken_back() -> Iterator[None]:
    """Everything that happens inside is undone, the growth of files too."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def final_state() -> dict[str, Any]:
    """All that is left of the messages, without the moments at which they came."""
    account_attempts()
    account_pilots()
    [job] = Job.objects.all()
    [attempt] = Attempt.objects.all()
    [pilot] = Pilot.objects.all()
    accounts = dict(pilot.accounts or {})
    return {
        "job": (job.state, job.attempt_number, job.payload_failures),
        "attempt": (attempt.outcome, attempt.exit_code, attempt.wall_s, attempt.usage),
        "has_started": attempt.started_at is not None,
        "ends": JobEvent.objects.filter(event__in=["complete", "fail", "reschedule"]).count(),
        "late": JobEvent.objects.filter(event="late").count(),
        "files": sorted(WorkspaceFile.objects.values_list("path", "blob_id")),
        "streams": {
            stream.kind: b"".join(chunks_of(stream_text(stream), 1000))
            for stream in Stream.objects.all()
        },
        "log": [b"".join(chunks_of(log_text(log), 1000)) for log in PilotLog.objects.all()],
        "pilot": (pilot.state, pilot.heartbeat_sequence, json.dumps(accounts, sort_keys=True)),
        "use": [
            (line.name, line.spent.useful_s, line.spent.total_s, line.attempts, line.pilots)
            for line in use_lines(User.objects.get(username="alice"), UseBy.SITE, _EVER)
        ],
    }


_EVER = Period(date(2000, 1, 1), date(2100, 1, 1))

#: Every message at least once in any order, some of them several times; then the gaps that the
#: portal told of are filled as a pilot does, in order, before it says good-bye.
ORDERS = st.tuples(
    st.permutations(OF_THE_ATTEMPT), st.lists(st.sampled_from(OF_THE_ATTEMPT), max_size=8)
).flatmap(lambda both: st.permutations([*both[0], *both[1]]))
FILLING = ["stdout 0", "stdout 1", "stdout 2", "stderr 0", "log 0", "log 1"]
AFTERWARDS = st.lists(st.sampled_from([*OF_THE_ATTEMPT, "end"]), max_size=8)


@pytest.mark.slow
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=ORDERS, afterwards=AFTERWARDS)
def test_any_order_and_repetition_of_messages_ends_in_the_same_state(
    messages: Messages, order: list[str], afterwards: list[str]
) -> None:
    with taken_back():
        for name in [*OF_THE_ATTEMPT, "end"]:
            messages.send(name)
        expected = final_state()
    with taken_back():
        for name in [*order, *FILLING, "end", *afterwards]:
            messages.send(name)
        found = final_state()

    assert found == expected
    assert expected["job"] == ("done", 1, 0)
    assert expected["streams"] == {kind: b"".join(parts) for kind, parts in PIECES.items()}
    assert expected["use"] == [("UW", 9.0, 20.0, 1, 1)]
    assert ("out.txt", hashlib.sha256(OUTPUT).hexdigest()) in expected["files"]


@pytest.mark.slow
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.permutations([*OF_THE_ATTEMPT, "end"]), again=AFTERWARDS)
def test_a_good_bye_at_any_time_neither_loses_nor_doubles_the_job(
    messages: Messages, order: list[str], again: list[str]
) -> None:
    with taken_back():
        for name in [*order, *again]:
            messages.send(name)
        found = final_state()

    is_done = order.index("ended") < order.index("end")
    assert found["job"][0] == ("done" if is_done else "waiting")
    assert found["ends"] == 1
    assert found["late"] <= 3
    assert found["use"][0][-2:] == (1, 1)
