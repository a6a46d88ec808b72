"""Copies between two WebDAV servers that do them by themselves, or else are streamed."""

from __future__ import annotations

import random
import zlib
from datetime import timedelta

import pytest

from tests.wms.placement.conftest import last_attempt
from tests.wms.placement.servers.third_party import copying_server
from tests.wms.placement.servers.tls import make_certificate, server_side
from wms.core.actors import Actor
from wms.pilots.credentials.sealing import new_key
from wms.placement.credentials import NewCredential, set_credential

pytestmark = pytest.mark.django_db

X = random.Random(21).randbytes(200_000)
GOOD = f'checksum = "adler32:{zlib.adler32(X):08x}"'


@pytest.fixture
def ends():
    """Two servers; the first one has a file."""
    with copying_server() as first, copying_server() as second:
        first.files["/x"] = X
        yield first, second


@pytest.fixture
def copy(transfer, pool, ends):
    """Transfer the file from the first server to the second one; its attempt."""

    def make(more: str = ""):
        first, second = ends
        source, target = (f"dav://127.0.0.1:{each.port}" for each in (first, second))
        return last_attempt(transfer(f"{source}/x", f"{target}/d/y", more))

    return make


def _gets(site) -> list[str]:
    return [path for method, path, _ in site.requests if method == "GET"]


def test_the_destination_fetches_the_file_and_its_checksum_is_asked_of_it(copy, ends):
    first, second = ends

    attempt = copy(GOOD)

    assert (attempt.exit_code, attempt.size_bytes) == (0, len(X)), attempt.message
    assert second.files == {"/d/y": X}
    assert "fetched by the destination" in attempt.note
    # The destination's request alone.
    assert (_gets(first), _gets(second)) == (["/x"], [])


def test_the_source_sends_it_where_the_destination_does_not_fetch(copy, ends):
    ends[1].pulls = False

    attempt = copy(GOOD)

    assert (attempt.exit_code, ends[1].files) == (0, {"/d/y": X})
    assert "sent by the source" in attempt.note


def test_a_copy_is_streamed_where_neither_does_it_and_the_attempt_tells_so(copy, ends):
    ends[0].pushes = ends[1].pulls = False

    attempt = copy(GOOD)

    assert (attempt.exit_code, ends[1].files) == (0, {"/d/y": X})
    assert attempt.note.startswith("streamed, because")
    assert "405" in attempt.note


def test_a_spoilt_copy_is_found_and_leaves_nothing(copy, ends):
    ends[1].spoils = True

    attempt = copy(GOOD)

    assert attempt.exit_code == 1
    assert ends[1].files == {}


def test_a_copy_is_read_once_where_the_server_tells_no_checksum(copy, ends):
    _, second = ends
    second.tells_digests = False
    good = copy(GOOD)
    second.spoils = True
    bad = copy(GOOD)

    assert (good.exit_code, bad.exit_code) == (0, 1)
    assert len(_gets(second)) == 2


def test_a_copy_that_broke_off_fails_and_one_that_never_began_is_streamed(copy, ends):
    ends[1].fails_after = 1000
    begun = copy()
    ends[1].fails_after = 0
    ends[0].pushes = False
    never = copy()

    assert (begun.exit_code, never.exit_code) == (1, 0)
    assert "the disk is full" in begun.message
    assert "the disk is full" in never.note


@pytest.mark.parametrize("tells", [True, False])
def test_the_size_of_a_copy_is_known_where_its_source_tells_none(copy, ends, tells):
    ends[0].tells_sizes, ends[1].tells_sizes = False, tells
    good, wrong = copy(f"{GOOD}\nsize = {len(X)}"), copy("size = 5")

    assert (good.exit_code, good.size_bytes) == (0, len(X)), good.message
    assert wrong.exit_code == 1
    assert len(_gets(ends[1])) == (0 if tells else 2)


@pytest.mark.parametrize("silence", ["waits", "breaks off", "begins"])
def test_a_copy_of_which_a_server_does_not_tell_is_streamed(copy, ends, configure, pool, silence):
    if silence == "waits":
        configure(ROOTS=[str(pool)], ALLOWED=["127.0.0.0/8"], STALL_S=0.5)
    ends[1].silence = silence

    attempt = copy(GOOD)

    assert (attempt.exit_code, ends[1].files) == (0, {"/d/y": X}), attempt.message
    assert attempt.note.startswith("streamed, because")
    # The source was not asked as well: both would write under one name.
    assert "COPY" not in [method for method, _, _ in ends[0].requests]


def test_words_of_a_server_that_no_text_can_have_spoil_no_attempt(copy, ends):
    ends[1].fails_after, ends[1].why = 0, "the \0 disk"
    ends[0].pushes = False

    attempt = copy()

    assert (attempt.exit_code, ends[1].files) == (0, {"/d/y": X}), attempt.message
    assert "the ? disk" in attempt.note


def test_a_file_is_copied_within_one_server(transfer, pool, ends):
    first, _ = ends
    at = f"dav://127.0.0.1:{first.port}"

    attempt = last_attempt(transfer(f"{at}/x", f"{at}/y"))

    assert attempt.exit_code == 0, attempt.message
    assert "within the server" in attempt.note
    assert first.files == {"/x": X, "/y": X}


@pytest.fixture
def shown(alice, transfer, pool, tmp_path, monkeypatch, settings):
    """Copy with credentials over TLS; the two servers and the attempt."""
    settings.PILOTAGE = settings.PILOTAGE | {"CREDENTIAL_KEYS": new_key()}
    certificate = make_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))

    def make(*, makes_macaroons: bool, is_sent: bool = False, **given: str):
        tls = server_side(certificate)
        with copying_server(tls) as first, copying_server(tls) as second:
            first.makes_macaroons = makes_macaroons
            first.tokens.add("mine")
            first.password = "alice:secret"
            second.pushes, first.pushes, first.pulls = is_sent, False, False
            at, other = (f"davs://127.0.0.1:{each.port}" for each in (first, second))
            new = NewCredential(at, **given)
            set_credential(new, owner=alice, actor=Actor.person(alice), reason="new")
            source, target = (other, at) if is_sent else (at, other)
            (second if is_sent else first).files["/x"] = X
            done = transfer(f"{source}/x", f"{target}/y")
        return first, second, last_attempt(done)

    return make


@pytest.mark.parametrize(
    "given", [{"token": "mine"}, {"user": "alice", "password": "secret"}], ids=["token", "password"]
)
@pytest.mark.parametrize("is_sent", [False, True], ids=["fetched", "sent"])
def test_the_other_end_is_shown_a_macaroon_for_this_file_and_nothing_else(shown, given, is_sent):
    first, second, attempt = shown(makes_macaroons=True, is_sent=is_sent, **given)

    [(path, activity, ends_at)] = first.macaroons.values()
    assert (attempt.exit_code, attempt.size_bytes) == (0, len(X)), attempt.message
    assert attempt.note.endswith("sent by the source" if is_sent else "fetched by the destination")
    assert (first if is_sent else second).files["/y"] == X
    # What did the copy has seen neither password nor token.
    assert second.shown == ["Bearer macaroon-0"]
    assert activity == ("UPLOAD" if is_sent else "DOWNLOAD")
    assert (path == "/x") is not is_sent
    assert path.endswith(".part") is is_sent
    assert ends_at - attempt.started_at < timedelta(minutes=12)


def test_without_macaroons_the_other_end_is_shown_the_token(shown):
    _, second, attempt = shown(makes_macaroons=False, token="mine")

    assert (attempt.exit_code, second.shown) == (0, ["Bearer mine"])


def test_a_password_is_never_handed_on(shown):
    _, second, attempt = shown(makes_macaroons=False, user="alice", password="secret")

    assert (attempt.exit_code, second.files) == (0, {"/y": X})
    assert second.shown == []
    assert "a password is not handed on" in attempt.note


@pytest.mark.parametrize("is_source", [True, False])
def test_a_token_is_not_handed_to_an_end_that_is_reached_without_tls(
    alice, transfer, pool, tmp_path, monkeypatch, settings, is_source
):
    settings.PILOTAGE = settings.PILOTAGE | {"CREDENTIAL_KEYS": new_key()}
    certificate = make_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with copying_server() as plain, copying_server(server_side(certificate)) as secure:
        plain.tokens.add("mine")
        plain.pulls = False
        at, other = f"dav://127.0.0.1:{plain.port}", f"davs://127.0.0.1:{secure.port}"
        set_credential(
            NewCredential(at, token="mine"), owner=alice, actor=Actor.person(alice), reason="new"
        )
        ends = (at, other) if is_source else (other, at)
        plain.files["/x"] = secure.files["/x"] = X
        attempt = last_attempt(transfer(f"{ends[0]}/x", f"{ends[1]}/y"))

    assert attempt.exit_code == 0, attempt.message
    assert "Bearer mine" not in secure.shown
