"""File-transfer plugins of HTCondor: one of Debian's package, and others made here."""

from __future__ import annotations

import hashlib
import os
import random
from pathlib import Path

import pytest

from tests.batch_systems import condor
from tests.batch_systems.services import Unavailable
from tests.wms.placement.conftest import last_attempt, placed
from tests.wms.placement.servers.http import http_server
from wms.core.actors import Actor
from wms.pilots.credentials.sealing import new_key
from wms.placement.credentials import NewCredential, set_credential
from wms.placement.modules.found import found_modules

pytestmark = [pytest.mark.django_db, pytest.mark.process]

X = random.Random(6).randbytes(100_000)
SHA = hashlib.sha256(X).hexdigest()

MANY = """
if [ "$1" = -classad ]; then
    printf 'MultipleFileSupport = true\\nSupportedMethods = "keep,file"\\n'
    exit
fi
file=$(sed -n 's/.*LocalFileName = "\\([^"]*\\)".*/\\1/p' "$2")
url=$(sed -n 's/.*Url = "\\([^"]*\\)".*/\\1/p' "$2")
%s
"""
WELL = """printf '%s' "$url $5" >"$file"
echo "[ TransferSuccess = true; TransferFileBytes = $(stat -c %s "$file") ]" >"$4"
"""


@pytest.fixture
def plugin(fenced: Path, pool: Path, configure):
    """Put a plugin there and have it used; its path."""
    folder = fenced / "plugins"
    folder.mkdir()
    folder.chmod(0o755)

    def make(text: str, scheme: str = "") -> Path:
        path = folder / "plugin"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        configure(PLUGINS=[f"{scheme}={path}" if scheme else str(path)])
        return path

    return make


@pytest.mark.batch
def test_htcondors_own_plugin_moves_files_and_tells_what_fails(
    transfer, fenced, pool, configure, settings, alice
):
    try:
        path, root = condor.plugin("curl_plugin", fenced)
    except Unavailable as error:
        pytest.skip(str(error))
    scripts = settings.PILOTAGE["SCRIPTS"] | {"READABLE": [str(root)], "FENCES": ["bwrap", "none"]}
    settings.PILOTAGE = settings.PILOTAGE | {"SCRIPTS": scripts, "CREDENTIAL_KEYS": new_key()}
    configure(PLUGINS=[f"http={path}"])
    good = f'checksum = "{SHA}"'

    with http_server() as site:
        went = transfer("file:x", site.url("/y"), good, x=X)
        came = transfer(site.url("/y"), "file:in/", good)
        missing = last_attempt(transfer(site.url("/z"), "file:z"))
        site.corrupts = True
        spoilt = last_attempt(transfer(site.url("/y"), "file:y", good))
        site.corrupts, site.cuts = False, 1
        cut = transfer(site.url("/y"), "file:y")
        site.tokens = {"sesame"}
        closed = last_attempt(transfer(site.url("/y"), "file:y"))
        new = NewCredential(site.url(""), token="sesame")
        set_credential(new, owner=alice, actor=Actor.person(alice), reason="new")
        opened = last_attempt(transfer(site.url("/y"), "file:y", good))

    assert (went.state, came.state) == ("completed", "completed"), went.state_reason
    assert placed(came, "in/y") == X
    assert last_attempt(came).note == "fetched by curl_plugin"
    assert [each.exit_code for each in (spoilt, opened)] == [1, 0], opened.message
    # It goes on by itself where it was cut.
    assert placed(cut, "y") == X
    assert 0 not in (missing.exit_code, closed.exit_code)
    assert ("404" in missing.message, "401" in closed.message) == (True, True)
    assert SHA in spoilt.message


def test_a_plugin_is_asked_once_and_serves_what_it_tells(transfer, plugin):
    path = plugin(MANY % WELL)

    pairs, status = found_modules().pairs, path.stat()
    path.write_text(path.read_text().replace('"keep,', '"kept,'))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    came = transfer("keep://127.0.0.1/a/b", "file:in/")
    went = last_attempt(transfer("file:x", "keep://127.0.0.1/a/", x=X))

    assert {("keep", "file"), ("file", "keep"), ("keep", "davs")} <= pairs
    assert placed(came, "in/b") == b"keep://127.0.0.1/a/b ", came.state_reason
    assert went.exit_code == 1
    assert "bytes of a file that has 100000" in went.message
    os.utime(path)
    assert {"kept", "keep"} & found_modules().readers.keys() == {"kept"}
