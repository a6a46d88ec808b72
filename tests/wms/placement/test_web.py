"""Transfers by HTTP and WebDAV, with real servers."""

from __future__ import annotations

import fcntl
import hashlib
import random
import socket
import zlib

import pytest

from tests.wms.placement.conftest import last_attempt, placed
from tests.wms.placement.servers.http import http_server
from wms.core.errors import InvalidInput
from wms.placement.modules import abilities
from wms.placement.modules.connections import PulsedAnswer
from wms.placement.request_ad import parse_requests
from wms.placement.submission import check_requests

pytestmark = pytest.mark.django_db

X = random.Random(7).randbytes(300_000)


@pytest.fixture
def site():
    with http_server() as running:
        yield running


def test_a_file_comes_by_http_into_the_workspace_and_goes_out_again(transfer, pool, site):
    site.files["/d/x"] = X
    sums = f'"{hashlib.sha256(X).hexdigest()}, adler32:{zlib.adler32(X):08x}"'

    came = transfer(site.url("/d/x"), "file:in/", f"checksum = {sums}\nsize = {len(X)}")
    went = transfer("file:x", site.url("/out/"), x=X)

    assert placed(came, "in/x") == site.files["/out/x"] == X
    assert last_attempt(went).size_bytes == len(X)


def test_a_copy_that_was_cut_goes_on_where_it_was(transfer, again, pool, site):
    site.files["/x"], site.cuts = X, 1

    broken = transfer(site.url("/x"), f"file://{pool}/x")
    assert broken.state == "rescheduled"
    assert "of 300000 bytes" in broken.state_reason
    [part] = pool.iterdir()
    had = part.stat().st_size

    assert again(broken).state == "completed"
    assert (pool / "x").read_bytes() == X
    assert [each.name for each in pool.iterdir()] == ["x"]
    assert ("GET", "/x", f"bytes={had}-") in site.requests


def test_a_file_that_changed_meanwhile_comes_anew(transfer, again, pool, site):
    site.files["/x"], site.cuts = X, 1
    request = transfer(site.url("/x"), f"file://{pool}/x")
    site.files["/x"] = X[::-1]
    again(request)

    assert (pool / "x").read_bytes() == X[::-1]


def test_one_wrong_byte_is_found_by_its_checksum_and_nothing_stays(transfer, pool, site):
    site.files["/x"], site.corrupts = X, True
    good = hashlib.md5(X).hexdigest()

    request = transfer(site.url("/x"), f"file://{pool}/x", f'checksum = "{good}"')

    assert last_attempt(request).exit_code == 1
    assert f"not {good}" in request.state_reason
    assert list(pool.iterdir()) == []


def test_an_empty_file_is_compared_before_a_server_has_it(transfer, pool, site):
    request = transfer("file:x", site.url("/x"), f'checksum = "{"0" * 32}"', x=b"")

    assert last_attempt(request).exit_code == 1
    assert site.files == {}


def test_a_server_that_says_nothing_is_not_waited_for(transfer, pool, site, configure):
    configure(STALL_S=0.1)
    site.files["/x"], site.stalls = X, True

    request = transfer(site.url("/x"), "file:x")

    assert "nothing came for 0.1 s, after 150000 bytes" in request.state_reason


def test_answers_that_are_no_file_are_told(transfer, pool, site):
    site.password = "u:p"
    refused = transfer(site.url("/x"), "file:x")
    site.password = ""
    missing = transfer(site.url("/x"), "file:x")

    assert "401" in refused.state_reason
    assert "404: there is no such file" in missing.state_reason


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/x",
        "http://[::1]/x",
        "ftp://10.1.2.3/x",
        "http://169.254.169.254/latest",
        "http://[::ffff:10.0.0.1]/x",
    ],
)
def test_an_address_that_is_not_public_is_refused_at_submission(url):
    text = f'[dap_type = "transfer"; src_url = "{url}"; dest_url = "file:x"]'

    [fault] = check_requests(parse_requests(text), abilities()).faults

    assert fault.field == "src_url"
    assert "no public address" in fault.message


def test_a_redirect_is_followed_and_its_target_checked_as_well(transfer, configure, pool, site):
    site.files["/x"] = X
    site.redirects = {"/near": site.url("/x"), "/far": "http://127.0.0.2:9/x", "/loop": "/loop"}
    configure(ALLOWED=["127.0.0.1"])

    near = transfer(site.url("/near"), "file:x")
    far = transfer(site.url("/far"), "file:x")
    loop = transfer(site.url("/loop"), "file:x")

    assert placed(near, "x") == X
    assert "127.0.0.2 is not known, or is not at a public address" in far.state_reason
    assert "redirects" in loop.state_reason


@pytest.mark.parametrize("rest", ["//h/a b", "//h/ä", "//h/%0d%0aHost: x"])
def test_an_address_that_could_be_two_lines_is_refused(rest):
    with pytest.raises(InvalidInput):
        parse_requests(f'[dap_type = "stage"; src_url = "http:{rest}"]')


def test_files_are_staged_and_removed_by_http(submitted, site, pool):
    site.files["/x"] = X

    done = submitted(f'[dap_type = "stage"; src_url = "{site.url("/x")}"; size = {len(X)}]')
    gone = submitted(f'[dap_type = "remove"; src_url = "{site.url("/x")}"]')
    again = submitted(f'[dap_type = "remove"; src_url = "{site.url("/x")}"]')

    assert {each.state for each in (done, gone, again)} == {"completed"}
    assert site.files == {}


@pytest.mark.slow
def test_64_mib_come_in_pieces_although_every_connection_is_cut(transfer, pool, site):
    content = random.Random(8).randbytes(64 * 2**20)
    site.files["/x"], site.cuts = content, 3

    request = transfer(site.url("/x"), "file:x", attempts=4)

    assert request.state == "completed", request.state_reason
    assert placed(request, "x") == content
    assert [bool(ranges) for _, _, ranges in site.requests].count(True) == 3


def test_an_attempt_goes_on_with_no_file_that_an_earlier_one_may_still_write_to(
    transfer, again, pool, site
):
    site.files["/x"], site.cuts = X * 10, 1
    broken = transfer(site.url("/x"), f"file://{pool}/x")
    [part] = pool.iterdir()

    with part.open("r+b") as earlier:
        fcntl.flock(earlier, fcntl.LOCK_EX)
        done = again(broken)
        earlier.truncate(0)

    assert done.state == "completed", done.state_reason
    assert (pool / "x").read_bytes() == X * 10


def test_an_answer_that_comes_byte_by_byte_has_a_pulse_for_each():
    ours, theirs = socket.socketpair()
    pulses = []

    def pulse() -> None:
        # The next byte alone, or more than two of them would come at once.
        pulses.append(None)
        theirs.sendall(b"HTTP/1.1 204 No\r\n\r\n"[len(pulses) - 1 :][:1])

    with ours, theirs, PulsedAnswer(pulse, ours, "GET") as answer:
        answer.begin()

    assert (answer.status, len(pulses)) == (204, 19)
