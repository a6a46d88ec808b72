"""Program of the feeder: real ones behind the fence, with token, numbers, limits and kills."""

from __future__ import annotations

import multiprocessing
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from tests.batch_systems.services import wait_until
from tests.wms.placement.feeding.conftest import LEVEL, PAUSE_S
from tests.wms.placement.programs.conftest import is_running
from wms.core.actors import Actor
from wms.core.tokens import issue_token
from wms.placement import tasks
from wms.placement.feeding.models import Feeder
from wms.placement.feeding.operations import begin_run, look
from wms.placement.feeding.running import HeldLease, run_feeder
from wms.placement.models import PlacementRequest
from wms.placement.operations import LEASE, LOST_CODE

pytestmark = pytest.mark.process

SUBMIT = r"""
ads() {
    n=$PILOTAGE_PLACEMENTS_ACTIVE
    while [ "$n" -lt "$PILOTAGE_PLACEMENTS_LEVEL" ]; do
        echo "[dap_type = \"remove\"; src_url = \"http://127.0.0.1/$n\"]"
        n=$((n + 1))
    done
}
printf 'Authorization: Token %s\n' "$(cat "$PILOTAGE_TOKEN_FILE")" >header
cat "$PILOTAGE_TOKEN_FILE"
ads | curl -fsS -H @header -H "Content-Type: text/plain" -H "Idempotency-Key: feed-1" \
    --data-binary @- "$PILOTAGE_URL/api/v1/placement-requests/"
"""


@pytest.mark.django_db(transaction=True)
def test_a_program_fills_the_queue_by_the_api_with_the_token_of_a_file(
    feeder_program, fill, alice, tmp_path, settings, live_server
):
    token = issue_token(alice, name="feeder", actor=Actor.person(alice)).text
    (tmp_path / "token").write_text(f"{token}\n")
    (tmp_path / "token").chmod(0o600)
    settings.PILOTAGE = settings.PILOTAGE | {"PUBLIC_URL": live_server.url}
    feeder_program(SUBMIT, FEED_TOKEN_FILE=str(tmp_path / "token"))
    fill(1)

    assert run_feeder()

    done = Feeder.objects.get()
    assert (done.exit_code, done.failure, done.is_armed) == (0, "", True), done.output
    assert done.output.startswith("(secret)")
    assert token not in done.output
    assert PlacementRequest.objects.filter(owner=alice).count() == LEVEL
    assert not run_feeder()


@pytest.mark.django_db
def test_exit_code_and_last_lines_of_a_program_that_fails_are_kept(feeder_program):
    feeder_program("seq 1 100000; printf 'no \\033[31mcatalogue\\n' >&2; exit 9")

    assert run_feeder()

    done = Feeder.objects.get()
    assert (done.exit_code, done.failures, done.is_armed, done.lease) == (9, 1, False, "")
    assert done.output.splitlines()[-2:] == ["100000", "no  [31mcatalogue"]
    assert len(done.output.splitlines()) == 20
    assert done.not_before - done.ended_at == timedelta(seconds=PAUSE_S)


@pytest.mark.django_db
def test_a_program_that_takes_too_long_is_stopped(feeder_program):
    feeder_program("echo begun; sleep 600", FEED_LIMIT_S=0.5)

    assert run_feeder()

    done = Feeder.objects.get()
    assert done.exit_code != 0
    assert (bool(done.failure), done.output) == (True, "begun")


@pytest.mark.django_db
@pytest.mark.parametrize("lacking", ["FEED_TOKEN_FILE", "FEED_PROGRAM"])
def test_a_file_that_is_gone_by_then_fails_the_run_and_nothing_is_started(
    feeder_program, configure, lacking, tmp_path
):
    feeder_program("echo begun")
    configure(**{lacking: str(tmp_path / "none")})

    assert run_feeder()

    done = Feeder.objects.get()
    assert (done.exit_code, done.failures, done.output) == (1, 1, "")
    assert f"PILOTAGE_PLACEMENT_{lacking}" in done.failure


@pytest.mark.django_db(transaction=True)
def test_a_run_ends_before_its_lease_does_when_the_database_is_away(set_feeder, monkeypatch):
    conf = set_feeder("/bin/true")
    held = HeldLease(begin_run(conf, timezone.now()).lease)
    assert held()

    connection.close()
    with monkeypatch.context() as away:
        away.setitem(connection.settings_dict, "PORT", "1")
        assert held()
        held.renewed_s -= LEASE.total_seconds()
        assert not held()
    assert held()


@pytest.mark.django_db
def test_the_program_sees_nothing_of_the_portal(feeder_program, monkeypatch):
    monkeypatch.setenv("PILOTAGE_SECRET_KEY", "of the portal")
    feeder_program("env")

    run_feeder()

    names = {line.partition("=")[0] for line in Feeder.objects.get().output.splitlines()}
    assert {each for each in names if each.startswith("PILOTAGE")} == {
        "PILOTAGE_URL", "PILOTAGE_PLACEMENTS_LEVEL", "PILOTAGE_PLACEMENTS_ACTIVE",
    }  # fmt: skip


@pytest.mark.django_db
def test_a_worker_that_has_emptied_the_queue_asks_for_the_feeder_at_once(
    feeder_program, fill, pool, monkeypatch
):
    feeder_program("true")
    (pool / "x").write_text("x")
    fill(1)
    asked = []
    monkeypatch.setattr("wms.placement.feeding.running.wake", asked.append)

    tasks.run_placements()

    assert asked == [tasks.FEED_TASK]
    tasks.feed()
    assert Feeder.objects.get().runs == 1


@pytest.mark.django_db(transaction=True)
def test_a_worker_that_is_killed_takes_the_program_with_it_and_another_one_follows(
    feeder_program,
):
    conf = feeder_program("exec sleep 27182")
    # Parent and child would speak on one connection.
    connection.close()
    worker = multiprocessing.get_context("fork").Process(target=run_feeder)

    worker.start()
    assert wait_until(lambda: is_running("27182"), 30)
    worker.kill()
    worker.join()

    assert wait_until(lambda: not is_running("27182"), 30)
    assert not run_feeder()
    late = timezone.now() + LEASE
    assert not look(conf, late)
    assert Feeder.objects.get().exit_code == LOST_CODE
    assert look(conf, late + conf.pause)
