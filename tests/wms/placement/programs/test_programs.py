"""Programs named as Stork has them: found at run time, run behind the fence of scripts."""

from __future__ import annotations

import hashlib
import random

import pytest

from tests.wms.placement.conftest import last_attempt, placed
from tests.wms.placement.servers.http import http_server
from wms.core.actors import Actor
from wms.core.errors import InvalidInput
from wms.pilots.credentials.sealing import new_key
from wms.placement import services as by_people
from wms.placement.credentials import NewCredential, set_credential

pytestmark = [pytest.mark.django_db, pytest.mark.process]

X = random.Random(5).randbytes(100_000)
SHA = hashlib.sha256(X).hexdigest()
#: They speak HTTP under another scheme.
FETCH = 'exec curl -fsS -o "${2#file://}" "http${1#web}"'
SEND = 'exec curl -fsS -T "${1#file://}" "http${2#web}"'
PASS = 'curl -fsS "http${1#web}" | exec curl -fsS -T - "http${2#net}"'


@pytest.fixture
def site():
    with http_server() as running:
        yield running


def test_a_file_goes_out_and_comes_back_by_programs_for_one_scheme(transfer, program, site):
    program("stork.transfer.file-web", SEND)
    program("stork.transfer.web-file", FETCH)
    at = f"web://127.0.0.1:{site.port}"

    went = transfer("file:x", f"{at}/d/", f'checksum = "{SHA}"', x=X)
    came = transfer(f"{at}/d/x", "file:in/", f'checksum = "{SHA}"')

    assert (went.state, came.state) == ("completed", "completed"), went.state_reason
    assert site.files == {"/d/x": X}
    assert placed(came, "in/x") == X
    assert last_attempt(went).note == "sent by stork.transfer.file-web"
    assert last_attempt(came).note == "fetched by stork.transfer.web-file"


def test_a_program_for_one_end_serves_transfers_to_other_hosts_too(transfer, program, site):
    program("stork.transfer.web-file", FETCH)
    site.files["/x"] = X

    done = transfer(f"web://127.0.0.1:{site.port}/x", f"http://127.0.0.1:{site.port}/y")

    assert (done.state, site.files["/y"]) == ("completed", X), done.state_reason


def test_a_program_between_two_hosts_moves_the_file_and_it_is_read_where_it_has_to_be(
    transfer, program, site
):
    program("stork.transfer.web-net", PASS)
    ends = (f"web://127.0.0.1:{site.port}/x", f"net://127.0.0.1:{site.port}/y")
    site.files["/x"] = X
    plain = transfer(*ends)
    blind = transfer(*ends, f'checksum = "{SHA}"')
    program("stork.transfer.net-file", FETCH.replace("web", "net"))
    program("stork.remove.net", 'exec curl -fsS -X DELETE "http${1#net}"')
    good = transfer(*ends, f'checksum = "{SHA}"')
    site.files["/x"] = X[:-1]
    bad = transfer(*ends, f'checksum = "{SHA}"')

    attempts = [last_attempt(each) for each in (plain, blind, good, bad)]
    assert [each.exit_code for each in attempts] == [0, 1, 0, 1], attempts[0].message
    assert (attempts[0].size_bytes, attempts[2].size_bytes) == (None, len(X))
    assert "/y" not in site.files


def test_a_program_for_exactly_this_pair_goes_before_the_own_module(transfer, program, site):
    program("stork.transfer.http-file", 'echo "by a program" >"${2#file://}"')
    site.files["/x"] = X

    done = transfer(site.url("/x"), "file:x")
    other = transfer(site.url("/x"), site.url("/y"))

    assert (placed(done, "x"), other.state) == (b"by a program\n", "completed")
    assert site.files["/y"] == X


def test_a_corrupted_byte_is_found_by_the_checksum(transfer, program, site):
    program("stork.transfer.web-file", FETCH)
    site.files["/x"], site.corrupts = X, True

    done = transfer(f"web://127.0.0.1:{site.port}/x", "file:x", f'checksum = "{SHA}"')

    assert last_attempt(done).exit_code == 1
    assert SHA in last_attempt(done).message


def test_a_link_that_a_program_leaves_is_not_followed(transfer, program):
    program("stork.transfer.web-file", 'ln -s /etc/passwd "${2#file://}"')

    attempt = last_attempt(transfer("web://127.0.0.1/x", "file:x"))

    assert attempt.exit_code == 1
    assert "left no file" in attempt.message


def test_a_program_that_does_nothing_and_one_that_takes_too_long_are_stopped(
    transfer, program, configure
):
    program("stork.transfer.web-file", "exec sleep 60")
    program("stork.transfer.net-file", 'while :; do echo x >>"${2#file://}"; done')
    configure(STALL_S=1, LIMIT_S=30)
    stalled = last_attempt(transfer("web://127.0.0.1/x", "file:x"))
    configure(STALL_S=30, LIMIT_S=1)
    slow = last_attempt(transfer("net://127.0.0.1/x", "file:x"))

    assert (stalled.exit_code, slow.exit_code) == (1, 124)
    assert "nothing moved" in stalled.message


def test_a_credential_is_in_a_file_while_the_program_runs_and_in_nothing_else(
    alice, transfer, program, fenced, settings
):
    settings.PILOTAGE = settings.PILOTAGE | {"CREDENTIAL_KEYS": new_key()}
    program("stork.transfer.web-file", "exit 0")
    new = NewCredential("web://127.0.0.1", token="sesame")
    set_credential(new, owner=alice, actor=Actor.person(alice), reason="new")
    program(
        "stork.transfer.web-file",
        'cd "$PILOTAGE_CREDENTIALS" && { cat source.token; '
        "cat /proc/$$/cmdline /proc/$$/environ; echo; stat -c %a source.token; "
        'id -u; } >"${2#file://}"',
    )
    done = transfer("web://127.0.0.1/x", "file:x")
    program("stork.transfer.web-file", 'cat "$PILOTAGE_CREDENTIALS"/source.token; exit 9')
    failed = last_attempt(transfer("web://127.0.0.1/x", "file:x"))

    said = placed(done, "x").decode()
    assert said.startswith("sesame")
    assert said.count("sesame") == 1
    assert "\n600\n" in said
    assert "PILOTAGE_SECRET_KEY" not in said
    assert failed.exit_code == 9
    assert "sesame" not in failed.message
    assert not [each for each in fenced.rglob("*") if each.name == "credentials"]


def test_programs_stage_and_remove(submitted, program, site):
    program("stork.stage.web", "exit 0")
    program("stork.remove.web", 'exec curl -fsS -X DELETE "http${1#web}"')
    site.files["/x"] = X
    at = f"web://127.0.0.1:{site.port}/x"

    staged = submitted(f'[dap_type = "stage"; src_url = "{at}"]')
    gone = submitted(f'[dap_type = "remove"; src_url = "{at}"]')

    assert (staged.state, gone.state, site.files) == ("completed", "completed", {})


def test_an_address_that_is_not_public_is_not_given_to_a_program(transfer, program, configure):
    program("stork.transfer.web-file", 'echo x >"${2#file://}"')
    configure(ALLOWED=[])

    attempt = last_attempt(transfer("web://localhost/x", "file:x"))

    assert attempt.exit_code == 1
    assert "public address" in attempt.message


def test_a_program_that_is_not_executable_is_told_with_the_attribute(alice, program):
    text = (
        '[dap_type = "transfer"; src_url = "web://host.example/x"; dest_url = "http://h.example/"]'
    )
    with pytest.raises(InvalidInput) as unknown:
        by_people.submit_requests(text, actor=Actor.person(alice), owner=alice)
    program("stork.transfer.web-file", FETCH, mode=0o644)
    with pytest.raises(InvalidInput) as closed:
        by_people.submit_requests(text, actor=Actor.person(alice), owner=alice)
    program("stork.transfer.web-file", FETCH)
    by_people.submit_requests(text, actor=Actor.person(alice), owner=alice)

    assert [each.field for each in unknown.value.findings] == ["src_url"]
    assert "stork.transfer.web-file is not executable" in closed.value.findings[0].message
