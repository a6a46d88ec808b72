"""Trials: kept for their owner within quotas, carried out once, lost and doubled by no kill."""

from __future__ import annotations

import io
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from wms.accounting.models import Quota
from wms.core.actors import Actor
from wms.core.conf import conf
from wms.core.errors import Conflict, InvalidInput, NotFound, NotPermitted, QuotaExceeded
from wms.core.models import AuditEntry, User
from wms.dags.models import Trial
from wms.dags.trials import operations, runner
from wms.dags.trials.archives import sweep_archives, unpack_into
from wms.dags.trials.operations import Progress, Report
from wms.dags.trials.selectors import find_trial, visible_trials
from wms.dags.trials.services import MAX_ACTIVE, TrialRequest, request_trial, stop_trial
from wms.dags.trials.states import TrialKind

pytestmark = pytest.mark.django_db
FILES = {"a.dag": b"JOB A d/a.sub\n", "d/a.sub": b"executable = /bin/true\nqueue\n"}
WELL = Report(0, '{"errors": []}', "well")


def ask(owner: User, files: dict[str, bytes] | None = None, **more: Any) -> Trial:
    streams = {name: io.BytesIO(content) for name, content in (files or FILES).items()}
    request = TrialRequest(TrialKind.CHECK, ("a.dag",), streams, **more)
    return request_trial(request, owner=owner, actor=Actor.person(owner))


def archives() -> list[Path]:
    return sorted((conf().blobs_dir / "trials").glob("*"))


def test_a_trial_is_taken_once_and_its_files_are_gone_after_its_end(
    alice: User, tmp_path: Path, django_capture_on_commit_callbacks: Any
) -> None:
    trial, now = ask(alice), timezone.now()
    assert AuditEntry.objects.get().target == f"trial {trial.pk}"
    taken = operations.take_trial(now)
    assert taken is not None
    assert operations.take_trial(now) is None
    unpack_into(taken.archive, tmp_path / "files")
    assert (tmp_path / "files" / "d" / "a.sub").read_bytes() == FILES["d/a.sub"]

    assert operations.renew_lease(taken, Progress(5, 2), now=now)
    with django_capture_on_commit_callbacks(execute=True):
        assert operations.end_trial(taken, WELL, now=now)
    assert not operations.end_trial(taken, WELL, now=now)

    trial.refresh_from_db()
    assert (trial.state, trial.ended_count, trial.report) == ("done", 2, WELL.report)
    assert list(trial.events.order_by("pk").values_list("event", flat=True)) == ["start", "finish"]
    assert archives() == []
    assert operations.forget_trials(now + operations.KEPT_FOR + timedelta(seconds=1)) == 1


def test_a_trial_whose_worker_is_lost_is_begun_anew_and_at_last_given_up(
    alice: User, django_capture_on_commit_callbacks: Any
) -> None:
    trial, now = ask(alice), timezone.now()
    for _ in range(operations.MAX_ATTEMPTS):
        taken = operations.take_trial(now)
        assert taken is not None
        now += 2 * operations.LEASE
        with django_capture_on_commit_callbacks(execute=True):
            assert operations.end_lost_trials(now) == 1
        assert not operations.renew_lease(taken, Progress(), now=now)
        assert not operations.end_trial(taken, WELL, now=now)

    trial.refresh_from_db()
    assert (trial.state, archives()) == ("failed", [])
    assert operations.take_trial(now) is None


def test_no_more_trials_run_at_once_than_there_are_places(alice: User, charlie: User) -> None:
    for owner in (alice, charlie, alice):
        ask(owner)
    now = timezone.now()
    taken = [operations.take_trial(now) for _ in range(operations.MAX_RUNNING + 1)]

    assert taken[-1] is None
    assert None not in taken[:-1]


def test_stopping_is_for_the_owner_and_shifters_and_removes_the_files(
    alice: User, charlie: User, sam: User, django_capture_on_commit_callbacks: Any
) -> None:
    trial = ask(alice)
    taken = operations.take_trial(timezone.now())
    assert taken is not None
    with pytest.raises(NotFound):
        stop_trial(trial.pk, actor=Actor.person(charlie))
    assert not visible_trials(charlie).exists()

    with django_capture_on_commit_callbacks(execute=True):
        stop_trial(trial.pk, actor=Actor.person(sam), reason="enough")

    assert find_trial(alice, trial.pk).state == "stopped"
    assert archives() == []
    assert not operations.renew_lease(taken, Progress(), now=timezone.now())
    assert stop_trial(trial.pk, actor=Actor.person(alice)).state == "stopped"
    Trial.objects.update(state="failed")
    with pytest.raises(Conflict):
        stop_trial(trial.pk, actor=Actor.person(alice))


def test_what_is_refused_leaves_nothing(alice: User) -> None:
    viewer = User.objects.create_user("vera", role="viewer")
    with pytest.raises(NotPermitted):
        ask(viewer)
    for files in ({"../a.dag": b""}, {"a.dag": b"", "a.dag/b": b""}):
        with pytest.raises(InvalidInput):
            ask(alice, files)
    for _ in range(MAX_ACTIVE):
        ask(alice)
    with pytest.raises(QuotaExceeded) as refused:
        ask(alice)
    assert (refused.value.quota, refused.value.used) == ("trials", MAX_ACTIVE)
    assert len(archives()) == MAX_ACTIVE

    Trial.objects.last().delete()
    Quota.objects.create(user=alice, max_bytes=150)
    with pytest.raises(QuotaExceeded) as refused:
        ask(alice)
    assert refused.value.quota == "size_bytes"
    assert len(archives()) == MAX_ACTIVE


def test_what_killed_processes_left_is_swept(alice: User, tmp_path: Path) -> None:
    kept, ended = ask(alice), ask(alice)
    Trial.objects.filter(pk=ended.pk).update(state="stopped", ended_at=timezone.now())
    for name in ("5" * 32, "of-somebody-else"):
        (conf().blobs_dir / "trials" / name).write_bytes(b"x")
    taken = operations.take_trial(timezone.now())
    assert taken is not None
    for name in ("left", taken.lease):
        (conf().trials_dir / name).mkdir(parents=True)

    now = timezone.now()
    assert sweep_archives(operations.active_archives(), now=now) == 1
    assert sweep_archives(operations.active_archives(), now=now + timedelta(hours=2)) == 1
    assert runner.sweep_folders() == 1

    assert {path.name for path in archives()} == {kept.archive, "of-somebody-else"}
    assert [path.name for path in conf().trials_dir.iterdir()] == [taken.lease]


@pytest.mark.process
@pytest.mark.parametrize(
    ("command", "why"),
    [
        (["sh", "-c", "echo broken >&2; exit 3"], "broken"),
        (["true"], "no report"),
        (["sh", "-c", "sleep 60"], "longer"),
    ],
)
def test_a_tool_that_fails_or_takes_too_long_fails_the_trial(
    alice: User, settings: Any, command: list[str], why: str
) -> None:
    settings.PILOTAGE = {**settings.PILOTAGE, "TRIAL_COMMAND": command, "TRIAL_LIMIT_S": 0.3}
    trial = ask(alice)

    assert runner.run_next()

    trial.refresh_from_db()
    assert trial.state == "failed"
    assert why in trial.state_reason
    assert list(conf().trials_dir.iterdir()) == []
