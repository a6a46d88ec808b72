"""Two web servers without a shared disk: an upload, a submission, a job and downloads by both."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from django.conf import settings as django_settings
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests import factories
from tests.s3.server import S3Server
from tests.scenarios.web_hosts import web_hosts
from tests.wms.pilots.agent.conftest import World
from tests.wms.pilots.agent.faulty_proxy import FaultyProxy
from wms.core.storage.current import close_stores
from wms.jobs.clusters.materialiser import run_cycle
from wms.jobs.models import Job
from wms.sites.models import Queue, Site

pytestmark = [pytest.mark.scenario, pytest.mark.django_db(transaction=True)]

BIG = random.Random(20).randbytes(700_000)
CUT = 400_000
SHA256 = hashlib.sha256(BIG).hexdigest()
JOB = """executable = run.sh
transfer_input_files = data/big
transfer_output_files = twice
output = out.txt
queue
"""
RUN = "#!/bin/sh\nsha256sum data/big | cut -d' ' -f1\ncat data/big data/big > twice\n"
QUICK = {
    "PILOTAGE_AGENT_HEARTBEAT_S": "0.3",
    "PILOTAGE_AGENT_POLL_S": "0.1",
    "PILOTAGE_AGENT_IDLE_LIMIT_S": "0.3",
}


@pytest.fixture
def hosts(s3: S3Server, settings: Any, tmp_path: Path, processes: None) -> Any:
    """Addresses of both; this process is a third host, with a folder of its own."""
    prefix = "two-hosts"
    changed = {"BLOBS_S3": s3.settings(prefix), "BLOBS_DIR": str(tmp_path / "c" / "blobs")}
    settings.PILOTAGE = settings.PILOTAGE | changed
    folders = [tmp_path / name for name in "ab"]
    with web_hosts(folders, s3, PILOTAGE_BLOBS_S3_PREFIX=prefix, **QUICK) as urls:
        yield urls
    close_stores()
    local = [each for name in "abc" for each in (tmp_path / name).glob("blobs/**/*")]
    assert [each for each in local if each.is_file() and "lines" not in each.parts] == []


def _upload(a: httpx.Client, b: httpx.Client) -> int:
    """Number of an upload whose pieces went to both."""
    begun = a.post("uploads/", json={"sha256": SHA256, "size_bytes": len(BIG)}).json()
    for by, start, end in ((a, 0, CUT), (b, CUT, len(BIG))):
        headers = {"Upload-Offset": str(start), "Content-Type": "application/partial-upload"}
        done = by.patch(f"uploads/{begun['id']}/", content=BIG[start:end], headers=headers)
        assert done.status_code == 200, done.text
    assert done.json()["is_complete"]
    return int(begun["id"])


def _submit(by: httpx.Client, upload: int) -> int:
    files = {"description": ("job.sub", JOB), "file": ("run.sh", RUN)}
    answer = by.post("jobs/", files=files, data={"uploads": json.dumps({"data/big": upload})})
    assert answer.status_code == 201, answer.text
    return int(answer.json()["id"])


def _run(a: str, b: str, folder: Path, owner: Any) -> list[tuple[str, str, str]]:
    """Have a pilot run the job: it claims and fetches at B, all else it does at A."""
    queue = Queue.objects.create(
        site=Site.objects.create(name="UW"), name="short", element="host", fence="none"
    )
    proxy, went = FaultyProxy(a), []

    def target(method: str, path: str) -> str:
        at = b if method == "GET" or path.endswith("/claim") else a
        went.append((at, method, path))
        return urlsplit(at).netloc

    proxy.target_of = target
    folder.mkdir()
    world = World(proxy, folder, queue, owner)
    try:
        assert world.start().wait() == 0, world.agents[0].log
    finally:
        proxy.stop()
        world.agents[0].process.kill()
    return went


def test_a_job_and_its_files_go_by_two_hosts_that_share_no_disk(
    hosts: list[str], tmp_path: Path
) -> None:
    people: SimpleNamespace = factories.people()
    a_url, b_url = hosts
    token = {"Authorization": f"Token {factories.token_for(people.alice)}"}

    def api(url: str) -> httpx.Client:
        return httpx.Client(base_url=f"{url}/api/v1/", headers=token, trust_env=False, timeout=60)

    with api(a_url) as a, api(b_url) as b:
        cluster = _submit(a, _upload(a, b))
        run_cycle(timezone.now())
        went = _run(a_url, b_url, tmp_path / "node", people.alice)
        job = Job.objects.get(cluster_id=cluster)
        assert job.state == "done", b.get(f"jobs/{job.pk}/stderr").text
        assert {at for at, method, path in went if path.endswith("/claim")} == {b_url}

        assert a.get(f"jobs/{job.pk}/stdout").text == f"{SHA256}\n"
        led = b.get(f"jobs/{job.pk}/outputs/twice")
        archive = a.get(f"clusters/{cluster}/outputs.tar")
    assert led.status_code == 302
    assert httpx.get(led.headers["Location"], trust_env=False, timeout=60).content == 2 * BIG
    assert 2 * BIG in archive.content

    browser = Client()
    browser.force_login(people.alice)
    cookies = {
        django_settings.SESSION_COOKIE_NAME: browser.cookies[
            django_settings.SESSION_COOKIE_NAME
        ].value
    }
    page = reverse("web:attempt-file", args=[job.pk, 1, "output", "twice"])
    with httpx.Client(
        cookies=cookies, follow_redirects=True, trust_env=False, timeout=60
    ) as person:
        answer = person.get(f"{b_url}{page}")
    assert answer.content == 2 * BIG
    assert "twice" in answer.headers["Content-Disposition"]
