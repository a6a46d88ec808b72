"""Contents that rows name and the store has lost: what needs them is held, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.utils import timezone

from tests import factories
from tests.stored_files import blob_path, stream_path
from wms.core.actors import Actor
from wms.core.storage.current import current_store
from wms.core.storage.folder import FolderStore
from wms.core.storage.owners import OWNER, StoreOfOthers
from wms.core.storage.protocol import StoreFailed
from wms.dags.models import Dag
from wms.dags.states import DagCause, DagState
from wms.jobs.models import Attempt, Job, WorkspaceFile
from wms.jobs.output.streams import append_to_stream
from wms.jobs.states import JobCause, JobState
from wms.recovery.account import reconcile
from wms.recovery.lost_contents import hold_for_lost_contents

pytestmark = pytest.mark.django_db
ACTOR = Actor.system("test")


def _lose(workspace_id: int, path: str) -> str:
    file = WorkspaceFile.objects.get(workspace=workspace_id, path=path)
    blob_path(file.blob_id).unlink()
    return file.blob_id


def test_what_reads_a_lost_file_is_held_with_a_cause_and_the_rest_goes_on() -> None:
    alice = factories.person("alice")
    reader = factories.job(alice, files={"in.txt": b"input", "other.txt": b"other"})
    factories.describe(Job.objects.filter(pk=reader.pk), input_files=["in.txt"])
    other = factories.job(alice, files={"unread.txt": b"unread"})
    lacking, whole = (
        factories.dag(alice, name=f"{name}.dag", files={"data": name.encode()})
        for name in ("lacking", "whole")
    )
    lost = {
        _lose(reader.workspace_id, "in.txt"),
        _lose(other.workspace_id, "unread.txt"),
        _lose(lacking.workspace_id, "data"),
    }

    found = hold_for_lost_contents(current_store(), actor=ACTOR)
    repeated = hold_for_lost_contents(current_store(), actor=ACTOR)

    assert set(found.sha256s) == lost
    assert found.named_by == {"WorkspaceFile": 3}
    assert (found.held_jobs, found.held_dags) == ([reader.pk], [lacking.pk])
    assert (repeated.count, repeated.held_jobs, repeated.held_dags) == (3, [], [])
    reader.refresh_from_db()
    assert (reader.state, reader.state_cause) == (JobState.HELD, JobCause.INPUTS)
    assert Job.objects.get(pk=other.pk).state == JobState.WAITING
    held = Dag.objects.get(pk=lacking.pk)
    assert (held.state, held.state_cause) == (DagState.HELD, DagCause.SUBMISSION)
    assert Dag.objects.get(pk=whole.pk).state == DagState.IDLE


def test_a_store_that_is_not_there_or_anothers_holds_nothing(tmp_path: Path) -> None:
    dag = factories.dag(factories.person("alice"))
    elsewhere = FolderStore(tmp_path)

    with pytest.raises(StoreFailed):
        reconcile(elsewhere, actor=ACTOR)
    (tmp_path / OWNER).write_text('{"id": "8-1", "address": "https://other.example"}')
    with pytest.raises(StoreOfOthers):
        reconcile(elsewhere, actor=ACTOR)

    assert Dag.objects.get(pk=dag.pk).state == DagState.IDLE


def test_output_of_which_bytes_are_lost_is_told_by_its_attempt() -> None:
    pilot = factories.pilot()
    factories.job(factories.person("alice"))
    taken = factories.claim(pilot)
    assert taken is not None
    attempt = Attempt.objects.get()
    append_to_stream(
        attempt.job_id, attempt.number, pilot_id=pilot.pk, kind="stdout", offset=0,
        content=b"line\n", now=timezone.now(),
    )  # fmt: skip
    assert reconcile(current_store(), actor=ACTOR).streams.ids == ()

    stream_path(attempt.pk, "stdout").unlink()

    assert reconcile(current_store(), actor=ACTOR).streams.ids == (attempt.pk,)
