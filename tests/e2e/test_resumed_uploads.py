"""A large file of a form goes on where it stopped: after a lost connection, and a new page."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from django.urls import reverse
from playwright.sync_api import Page, Route, expect
from pytest_django.live_server_helper import LiveServer

from tests import factories
from tests.e2e.conftest import Complaints
from wms.core.models import User
from wms.jobs.models import WorkspaceFile

_PIECE_BYTES = 8 * 1024 * 1024
#: Sizes around those at which a block more is needed.
_HASHED = (0, 1, 55, 56, 63, 64, 65, 119, 120, 4 * 1024 * 1024 + 3)
_HASHES = """([at, sizes]) => Promise.all(sizes.map((size) => new Promise((resolve) => {
  const worker = new Worker(at);
  worker.onmessage = ({ data }) => data.digest && resolve(data.digest);
  worker.postMessage(new Blob([Uint8Array.from({ length: size }, (_, i) => i % 251)]));
})))"""


def test_a_cut_upload_goes_on_where_it_stopped_and_what_is_there_is_not_sent_again(
    page: Page, live_server: LiveServer, login: Callable[[User], None], complaints: Complaints,
    tmp_path: Path,
) -> None:  # fmt: skip
    login(factories.people().alice)
    dag, job, big = tmp_path / "one.dag", tmp_path / "job.sub", tmp_path / "big.bin"
    dag.write_text("JOB A job.sub\n")
    job.write_text("executable = /bin/true\ntransfer_input_files = big.bin\nqueue\n")
    big.write_bytes(os.urandom(_PIECE_BYTES + 100_000))
    offsets: list[int] = []
    cut = {"is_on": True}

    def pass_or_cut(route: Route) -> None:
        if route.request.method == "PATCH":
            offsets.append(int(route.request.headers["upload-offset"]))
            if cut["is_on"] and offsets[-1]:
                return route.abort("connectionreset")
        return route.continue_()

    def choose() -> None:
        page.goto(live_server.url + reverse("web:submit"))
        page.get_by_label("DAG file").set_input_files(dag)
        page.get_by_label("Files that it names").set_input_files([job, big])

    page.route("**/api/v1/uploads/*/", pass_or_cut)
    line = page.locator("#uploads li")
    choose()
    page.get_by_role("button", name="Check and submit").click()
    expect(line).to_contain_text("No connection")
    assert offsets[:2] == [0, _PIECE_BYTES]
    offsets.clear()

    # The page is loaded anew, and the connection fails once more.
    choose()
    page.get_by_role("button", name="Only check").click()
    expect(line).to_contain_text("No connection")
    cut["is_on"] = False
    expect(line).to_contain_text("is there")
    expect(page.get_by_role("heading", name="No fault was found")).to_be_visible()
    assert set(offsets) == {_PIECE_BYTES}
    offsets.clear()
    complaints.found.clear()

    page.get_by_role("button", name="Check and submit").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("one")
    assert offsets == []
    file = WorkspaceFile.objects.get(path="big.bin")
    assert file.blob_id == hashlib.sha256(big.read_bytes()).hexdigest()

    page.goto(live_server.url + reverse("web:submit-jobs"))
    hasher = page.locator("#uploads").get_attribute("data-hasher")
    found = page.evaluate(_HASHES, [hasher, list(_HASHED)])
    contents = (bytes(i % 251 for i in range(size)) for size in _HASHED)
    assert found == [hashlib.sha256(content).hexdigest() for content in contents]
