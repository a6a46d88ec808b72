"""Modules of packages that are installed beside the portal."""

from __future__ import annotations

import hashlib
import random
import re
import socket
import sys
import threading
from pathlib import Path

import pytest
from django.conf import settings as django_settings

from tests.wms.placement.conftest import last_attempt, placed
from tests.wms.placement.servers.http import http_server
from wms.core.actors import Actor
from wms.core.errors import InvalidInput
from wms.pilots.credentials.sealing import new_key
from wms.placement import services as by_people
from wms.placement.credentials import NewCredential, set_credential
from wms.placement.modules.installed import installed_modules

pytestmark = pytest.mark.django_db

_DOCUMENTS = Path(__file__).parents[3] / "docs"
X = random.Random(4).randbytes(3_000_000)
SHA = hashlib.sha256(X).hexdigest()
#: HTTP under another name.
NEST = """
from dataclasses import replace
from wms.placement.modules import web

PORT = 4040

def _task(task):
    def credential(scheme, host, port):
        return task.credential("nest", host, port)
    return replace(
        task, credential=credential,
        source_url=task.source_url.replace("nest:", "http:"),
        destination_url=task.destination_url.replace("nest:", "http:"),
    )

def opened(task):
    return web.opened(_task(task))

def write(reading):
    reading.task = _task(reading.task)
    return web.write(reading)

def remove(task):
    return web.remove(_task(task))
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch):
    """Install a distribution with a module for each scheme; as `pip` leaves it."""
    folder = tmp_path / "site-packages"
    (folder / "nest-1.0.dist-info").mkdir(parents=True)
    monkeypatch.syspath_prepend(str(folder))

    def make(**modules: str) -> None:
        lines = [f"{scheme} = placement_of_{scheme}" for scheme in modules]
        info = folder / "nest-1.0.dist-info"
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: nest\nVersion: 1.0\n")
        text = "\n".join(["[pilotage.placement_modules]", *lines, ""])
        (info / "entry_points.txt").write_text(text)
        for scheme, source in modules.items():
            (folder / f"placement_of_{scheme}.py").write_text(source)
        installed_modules.cache_clear()

    yield make
    monkeypatch.undo()
    installed_modules.cache_clear()
    for name in [each for each in sys.modules if each.startswith("placement_of_")]:
        del sys.modules[name]


def test_a_package_brings_a_scheme_with_all_that_the_own_modules_do(
    transfer, again, submitted, pool, install
):
    install(nest=NEST)
    good = f'checksum = "{SHA}"'
    with http_server() as site:
        at = f"nest://127.0.0.1:{site.port}"
        went = transfer("file:x", f"{at}/a/", good, x=X)
        site.cuts = 1
        broken = transfer(f"{at}/a/x", f"file://{pool}/y", good)
        [part] = pool.iterdir()
        came = part.stat().st_size
        whole = again(broken)
        site.corrupts = True
        spoilt = last_attempt(transfer(f"{at}/a/x", "file:x", good))
        gone = submitted(f'[dap_type = "remove"; src_url = "{at}/a/x"]')

    assert (went.state, broken.state, whole.state) == ("completed", "rescheduled", "completed")
    assert (pool / "y").read_bytes() == X
    assert f"bytes={came}-" in [each[2] for each in site.requests]
    assert spoilt.exit_code == 1
    assert (gone.state, site.files) == ("completed", {})


def test_its_endpoints_have_credentials_under_its_port(alice, transfer, pool, install, settings):
    settings.PILOTAGE = django_settings.PILOTAGE | {"CREDENTIAL_KEYS": new_key()}
    install(nest=NEST)

    def keep(endpoint: str, token: str):
        new = NewCredential(endpoint, token=token)
        return set_credential(new, owner=alice, actor=Actor.person(alice), reason="new")[0]

    with http_server() as site:
        site.files["/x"], site.tokens = X, {"right"}
        at = f"nest://127.0.0.1:{site.port}"
        keep(at, "wrong")
        refused = last_attempt(transfer(f"{at}/x", "file:x"))
        keep(at, "right")
        taken = last_attempt(transfer(f"{at}/x", "file:x"))

    assert (refused.exit_code, taken.exit_code) == (1, 0)
    assert "401" in refused.message
    assert keep("nest://host.example", "other").port == 4040


def test_the_example_of_the_documents_reads_from_a_server(transfer, pool, install):
    page = (_DOCUMENTS / "how-to" / "add-a-placement-module.md").read_text()
    [example] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    install(gopher=example)
    asked = []

    def serve(listener: socket.socket) -> None:
        client, _ = listener.accept()
        with client:
            asked.append(client.makefile("rb").readline())
            client.sendall(X)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        url = f"gopher://127.0.0.1:{listener.getsockname()[1]}/a/x"
        done = transfer(url, "file:in/", f'checksum = "{SHA}"')
        thread.join()

    assert (done.state, asked) == ("completed", [b"/a/x\r\n"]), done.state_reason
    assert placed(done, "in/x") == X


@pytest.mark.parametrize(
    "source", ["import nothing_of_this_name", "PORT = 1", NEST.replace("4040", "'4040'")]
)
def test_a_module_that_is_of_no_use_is_told_where_it_is_missed(alice, install, source):
    install(nest=source)
    text = (
        '[dap_type = "transfer"; src_url = "nest://host.example/x"; dest_url = "http://h.example/"]'
    )

    with pytest.raises(InvalidInput) as refused:
        by_people.submit_requests(text, actor=Actor.person(alice), owner=alice)

    [finding] = refused.value.findings
    assert finding.field == "src_url"
    assert "placement_of_nest" in finding.message


def test_the_portals_own_schemes_stay_its_own(install):
    install(file=NEST, http=NEST)

    found = installed_modules()

    assert "file" in found.unusable
    assert "file" not in found.readers
