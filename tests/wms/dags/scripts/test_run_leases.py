from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from tests.wms.dags.scripts.conftest import content, files_of, put
from wms.core.models import InboxEntry
from wms.dags.models import ScriptRun
from wms.dags.scripts import publishing, run_leases, script_service
from wms.dags.scripts.process import ProcessResult
from wms.dags.scripts.publishing import Change, Changes
from wms.jobs.content.blobs import store_bytes

pytestmark = pytest.mark.django_db

NOW = timezone.now()


def as_it_is(run: ScriptRun) -> ScriptRun:
    return ScriptRun.objects.get(pk=run.pk)


def started(run: ScriptRun, now=NOW) -> run_leases.LeasedRun:
    taken = run_leases.take_run(now)
    assert taken is not None
    assert taken.run_id == run.pk
    assert run_leases.start_run(run.pk, taken.lease, now=now)
    return taken


def test_runs_are_taken_in_the_order_in_which_they_were_asked_for(ask):
    runs = [ask(), ask()]

    taken = [run_leases.take_run(NOW) for _ in range(3)]

    assert [each and each.run_id for each in taken] == [runs[0].pk, runs[1].pk, None]


def test_a_run_that_was_taken_and_not_started_goes_to_another_service(ask):
    run = ask()
    first = run_leases.take_run(NOW)

    second = run_leases.take_run(NOW + timedelta(seconds=61))

    assert second.run_id == run.pk
    assert not run_leases.start_run(run.pk, first.lease, now=NOW)
    assert run_leases.start_run(run.pk, second.lease, now=NOW)


def test_a_run_that_was_started_is_never_taken_again(ask):
    run = ask()
    started(run)

    assert run_leases.take_run(NOW + timedelta(days=1)) is None


def test_a_started_run_of_a_lost_service_ends_without_a_code_of_its_own(ask, dag):
    run = ask()
    taken = started(run)

    assert run_leases.end_lost_runs(NOW + timedelta(seconds=59)) == []
    assert run_leases.end_lost_runs(NOW + timedelta(seconds=61)) == [run.pk]

    ended = as_it_is(run)
    assert (ended.state, ended.exit_code) == ("ended", -1003)
    assert "was lost" in ended.failure
    assert InboxEntry.objects.get().subject_id == run.pk
    assert not run_leases.end_run(run.pk, taken.lease, exit_code=0, now=NOW)
    assert InboxEntry.objects.count() == 1


def test_signs_of_life_keep_a_run(ask):
    run = ask()
    taken = started(run)
    later = NOW + timedelta(minutes=10)

    assert run_leases.renew_lease(run.pk, taken.lease, now=later)

    assert run_leases.end_lost_runs(later) == []


def test_an_end_is_written_once_with_all_that_belongs_to_it(ask, dag):
    run = ask()
    taken = started(run)
    new = store_bytes(b"new").pk

    is_end = run_leases.end_run(
        run.pk, taken.lease, exit_code=7, failure="why", output=b"said", now=NOW,
        changes=Changes(files={"new": Change(new)}),
    )  # fmt: skip
    again = run_leases.end_run(run.pk, taken.lease, exit_code=0, now=NOW)

    assert (is_end, again) == (True, False)
    ended = as_it_is(run)
    assert (ended.state, ended.exit_code, ended.failure, ended.ended_at) == (
        "ended", 7, "why", NOW,
    )  # fmt: skip
    assert content(ended.output_id) == "said"
    assert files_of(dag) == {"new": "new"}
    assert InboxEntry.objects.filter(topic="dag-scripts", key=dag.pk).count() == 1


def test_only_who_has_the_lease_ends_a_run(ask):
    run = ask()
    started(run)

    assert not run_leases.end_run(run.pk, "another", exit_code=0, now=NOW)
    assert as_it_is(run).state == "running"


def test_runs_of_a_dag_are_cancelled_in_every_state(ask, dag):
    running, granted, waiting = ask(), ask(), ask(state="waiting")
    taken = started(running)

    reason = "the DAG was removed"

    cancelled = run_leases.cancel_runs(dag.pk, reason=reason, now=NOW)

    assert cancelled == [running.pk, granted.pk, waiting.pk]
    for run in (running, granted, waiting):
        assert as_it_is(run).exit_code == -1002
        assert as_it_is(run).failure == reason
    assert not run_leases.renew_lease(running.pk, taken.lease, now=NOW)
    assert not run_leases.end_run(running.pk, taken.lease, exit_code=0, now=NOW)
    assert not InboxEntry.objects.exists()


def test_chosen_runs_are_cancelled_and_the_engine_is_told_if_wanted(ask):
    chosen, other = ask(), ask()

    run_leases.cancel_runs(run_ids=[chosen.pk], reason="enough", now=NOW, is_announced=True)

    assert as_it_is(other).state == "granted"
    assert InboxEntry.objects.get().subject_id == chosen.pk


def blob(text: str) -> str:
    return store_bytes(text.encode()).pk


def test_additions_of_two_scripts_to_one_file_are_both_kept(dag):
    base = blob("a\n")
    put(dag, "log", "a\n")
    changes = [Changes(files={"log": Change(blob(f"a\n{each}\n"), base)}) for each in "bc"]

    for each in changes:
        publishing.publish(dag.workspace_id, each, now=NOW)

    assert files_of(dag) == {"log": "a\nb\nc\n"}


@pytest.mark.parametrize("mine", ["other", "", "a"])
def test_else_the_later_change_wins(dag, mine):
    base = blob("a\n")
    put(dag, "file", "a\nmore\n")

    publishing.publish(dag.workspace_id, Changes(files={"file": Change(blob(mine), base)}), now=NOW)

    assert files_of(dag) == {"file": mine}


def test_a_file_that_somebody_else_changed_meanwhile_is_not_removed(dag):
    put(dag, "same", "a")
    put(dag, "changed", "b")
    removed = {"same": blob("a"), "changed": blob("a"), "gone": blob("a")}

    publishing.publish(dag.workspace_id, Changes(removed=removed), now=NOW)

    assert files_of(dag) == {"changed": "b"}


def test_what_is_appended_to_is_bounded_and_loses_its_beginning(dag, monkeypatch):
    monkeypatch.setattr(publishing, "APPENDED_BYTES", 100)

    for number in range(20):
        addition = Changes(appended={"log": b"line %d\n" % number * 2})
        publishing.publish(dag.workspace_id, addition, now=NOW)

    lines = files_of(dag)["log"].splitlines()
    assert lines[0].startswith("[")
    assert lines[-2:] == ["line 19", "line 19"]
    assert set(lines[1:]) <= {f"line {number}" for number in range(20)}
    assert len(files_of(dag)["log"]) <= 100


def test_it_is_appended_to_what_the_script_itself_wrote(dag):
    changes = Changes(files={"log": Change(blob("own\n"))}, appended={"log": b"banner\n"})

    publishing.publish(dag.workspace_id, changes, now=NOW)

    assert files_of(dag) == {"log": "own\nbanner\n"}


def test_an_end_whose_files_cannot_be_stored_is_written_without_them(ask, dag):
    run = ask()
    taken = started(run)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE jobs_workspacefile ADD CHECK (path <> 'never')")
    changes = Changes(files={"never": Change(store_bytes(b"x").pk)})

    script_service._record(
        taken, script_service.Outcome(ProcessResult(0, output=b"words"), changes)
    )

    ended = as_it_is(run)
    assert (ended.state, ended.exit_code) == ("ended", 1)
    assert "IntegrityError" in ended.failure
    assert ended.output is not None
