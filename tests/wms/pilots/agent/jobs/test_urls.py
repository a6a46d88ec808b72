"""URLs of jobs moved by a real pilot: fetched before the payload, and why jobs end by them."""

from __future__ import annotations

import threading

import pytest

from matching.task_queues.resources import Resource
from tests import factories
from tests.wms.jobs.description.test_rendering import render
from tests.wms.pilots.agent.conftest import LIMIT_S, World, wait_until
from tests.wms.placement.servers.http import http_server
from wms.core.actors import Actor
from wms.jobs import operations
from wms.jobs.content.blobs import store_bytes
from wms.jobs.models import Attempt, AttemptFile, JobEvent, WorkspaceFile
from wms.jobs.operations import create_workspace
from wms.pilots.agent.control import Control
from wms.pilots.agent.transfers import fetching
from wms.pilots.credentials.sealing import new_key
from wms.placement import runner
from wms.placement.credentials import NewCredential, set_credential
from wms.placement.storages.services import StorageSpec, create_storage
from wms.placement.submission import submit_requests
from wms.taskqueues.operations import claim

pytestmark = pytest.mark.django_db(transaction=True)

SECRET = "open-sesame"


@pytest.fixture
def site(settings):
    placement = settings.PILOTAGE["PLACEMENT"] | {"ALLOWED": ["127.0.0.0/8"]}
    settings.PILOTAGE = settings.PILOTAGE | {
        "PLACEMENT": placement,
        "CREDENTIAL_KEYS": new_key(),
    }
    with http_server() as running:
        yield running


def test_a_pilot_fetches_inputs_with_their_owners_credential_and_tells_how_much(
    world: World, site
) -> None:
    site.files["/data/a.bin"], site.password = b"z" * 3 * 2**20, f"alice:{SECRET}"
    new = NewCredential(site.url(""), "alice", SECRET)
    set_credential(new, owner=world.alice, actor=Actor.person(world.alice))
    urls = {"a.bin": site.url("/data/a.bin?v=2")}
    site.files["/data/a.bin?v=2"] = site.files["/data/a.bin"]
    job = world.submit(
        "#!/bin/sh\ncat a.bin b | wc -c > out\n",
        inputs={"b": b"12"},
        outputs=("out",),
        directives={"input_urls": urls, "stdin_name": "a.bin"},
    )

    agent = world.start()

    job = world.wait_for_state(job, "done", "failed")
    assert job.state == "done", job.state_reason
    assert int(world.output(job, "out")) == 3 * 2**20 + 2
    assert Attempt.objects.get(job=job).usage["fetched_mb"] == 3
    agent.wait()
    assert SECRET not in agent.log
    assert "v=2" not in agent.log
    told = [str(each) for each in JobEvent.objects.filter(job_id=job.pk).values()]
    assert SECRET not in "".join(told)


def test_a_url_without_a_file_fails_its_job_and_the_pilot_goes_on(world: World, site) -> None:
    lost = world.submit("#!/bin/sh\n", directives={"input_urls": {"a": site.url("/a")}})
    next_one = world.submit("#!/bin/sh\n")

    world.start()

    lost = world.wait_for_state(lost, "done", "failed")
    assert (lost.state, lost.state_cause) == ("failed", "fetch")
    assert "404" in lost.state_reason
    world.wait_for_state(next_one, "done")
    assert Attempt.objects.get(job=next_one).pilot_id == Attempt.objects.get(job=lost).pilot_id


def test_a_url_that_cannot_be_read_now_sends_the_job_elsewhere(
    world: World, site, settings, monkeypatch
) -> None:
    monkeypatch.setattr(fetching, "PAUSES_S", (0.0, 0.0, 0.0))
    settings.PILOTAGE = settings.PILOTAGE | {"RESCHEDULE_PAUSES_S": [60]}
    site.files["/a"], site.cuts = b"content", 100
    job = world.submit("#!/bin/sh\n", directives={"input_urls": {"a": site.url("/a")}})
    agent, codes = world.agent(Control()), []

    life = threading.Thread(target=lambda: codes.append(agent.run()))
    life.start()
    life.join(LIMIT_S)

    # The pilot went on, and ended because there was nothing more to do.
    assert codes == [0]
    job.refresh_from_db()
    attempt = Attempt.objects.get(job=job)
    assert (job.state, job.state_cause, attempt.outcome) == ("received", "fetch", "not_run")
    assert len(site.requests) == fetching.TRIES
    assert not WorkspaceFile.objects.filter(workspace_id=job.workspace_id, path="a").exists()


def test_a_job_tells_that_it_transfers_and_the_transfer_ends_with_it(world: World, site) -> None:
    site.files["/a"], site.stalls = b"content", True
    job = world.submit("#!/bin/sh\n", directives={"input_urls": {"a": site.url("/a")}})

    agent = world.start()
    wait_until(
        lambda: any(each.transferring == "inputs" for each in Attempt.objects.filter(job=job)),
        "a heartbeat tells of the transfer",
    )
    operations.kill_jobs([job.pk], actor=Actor.system("test"), reason="no longer wanted")

    assert agent.wait() == 0
    attempt = Attempt.objects.get(job=job)
    assert (attempt.outcome, attempt.transferring) == ("killed", "")
    assert len(site.requests) == 1


PRINTS = "#!/bin/sh\nmkdir d; echo 1 > a; echo 2 > d/b; echo 3 > c\n"


def test_outputs_go_to_urls_with_their_owners_credential_and_not_to_the_portal(
    world: World, site
) -> None:
    site.password = f"alice:{SECRET}"
    new = NewCredential(site.url(""), "alice", SECRET)
    set_credential(new, owner=world.alice, actor=Actor.person(world.alice))
    urls = {"a": site.url("/out/a"), "d/b": site.url("/b?signed=2")}
    job = world.submit(PRINTS, outputs=("a", "d/b", "c"), directives={"output_urls": urls})

    agent = world.start()

    job = world.wait_for_state(job, "done", "failed")
    assert job.state == "done", job.state_reason
    assert site.files == {"/out/a": b"1\n", "/b?signed=2": b"2\n"}
    sent = AttemptFile.objects.filter(attempt__job=job, kind="output")
    assert [each.path for each in sent] == ["c"]
    assert "sent_mb" in Attempt.objects.get(job=job).usage
    agent.wait()
    assert SECRET not in agent.log
    assert "signed" not in agent.log


def test_all_outputs_of_a_description_go_below_its_destination_at_a_webdav_server(
    world: World, site, tmp_path
) -> None:
    dav = pytest.importorskip("tests.wms.placement.servers.dav")
    folder = tmp_path / "dav"
    (folder / "0").mkdir(parents=True)
    with dav.dav_server(folder, password=SECRET) as port:
        url = f"http://127.0.0.1:{port}/"
        set_credential(
            NewCredential(url, "alice", SECRET),
            owner=world.alice,
            actor=Actor.person(world.alice),
        )
        (spec,) = render(
            "transfer_output_files = a, d/b, c\n"
            'transfer_output_remaps = "c = kept"\n'
            f"output_destination = {url}$(Process)\nqueue"
        )
        job = world.submit(PRINTS, outputs=spec.output_files, directives=spec.directives)

        world.start()

        job = world.wait_for_state(job, "done", "failed")
    assert job.state == "done", job.state_reason
    sent = {each.name: each.read_bytes() for each in (folder / "0").iterdir()}
    assert sent == {"a": b"1\n", "b": b"2\n"}
    assert world.output(job, "kept") == b"3\n"


def test_an_output_that_cannot_be_sent_fails_the_job_and_no_failure_sends_any(
    world: World, site
) -> None:
    site.password = "alice:other"
    urls = {"output_urls": {"a": site.url("/a")}}
    refused = world.submit(PRINTS, outputs=("a", "c"), directives=urls)
    missing = world.submit("#!/bin/sh\n", outputs=("a",), directives=urls)
    failing = world.submit(f"{PRINTS}exit 3\n", outputs=("a",), directives=urls)

    world.start()

    told = {}
    for name, job in (("refused", refused), ("missing", missing), ("failing", failing)):
        ended = world.wait_for_state(job, "done", "failed")
        told[name] = (ended.state, ended.state_cause, Attempt.objects.get(job=ended).exit_code)
    assert told == {
        "refused": ("failed", "send", 0),
        "missing": ("failed", "send", 0),
        "failing": ("failed", "payload", 3),
    }
    assert not site.files
    assert len(site.requests) == 1


def test_a_pilot_near_a_replica_reads_what_a_placement_has_put_there(world: World, site) -> None:
    # Given: a storage near the pilot's site, and a file that a placement has put there.
    factories.site("elsewhere")
    storage = StorageSpec("se", [site.url("/d/")], [world.queue.site.name])
    create_storage(storage, actor=Actor.system("test"))
    workspace = create_workspace(world.alice, {"x": store_bytes(b"data")})
    submit_requests(
        '[dap_type = "transfer"; src_url = "file:x"; dest_url = "lfn:/run/7"; dest_storage = "se"]',
        workspace=workspace, directory="", owner=world.alice, topic="", topic_key=0,
        actor=Actor.system("test"),
    )  # fmt: skip
    runner.run_due()
    assert site.files == {"/d/run/7": b"data"}

    # When: a job wants it.
    urls = {"input_urls": {"7": "lfn:/run/7"}}
    job = world.submit("#!/bin/sh\ncat 7 > out\n", outputs=("out",), directives=urls)
    assert claim(Resource(site="elsewhere", cpu_time_s=10**6, memory_mb=10**6)) is None
    world.start()

    # Then: the pilot near the file gets the job, and the payload reads it.
    job = world.wait_for_state(job, "done", "failed")
    assert job.state == "done", job.state_reason
    assert world.output(job, "out") == b"data"
