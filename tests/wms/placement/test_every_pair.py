"""Proofs of transfers between real servers, for each protocol; `--every-pair`: for every pair.

A file moves; one that is cut goes on; one wrong byte is found; a server is away for a while;
a credential is wrong; the disk is full; the worker is killed. With `--every-pair` 64 MiB are moved,
cut and killed, and each end of a pair is cut off, away and asked with a wrong credential in turn.
"""

from __future__ import annotations

import hashlib
import itertools
import multiprocessing
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from tests.batch_systems.services import wait_until
from tests.batch_systems.sshd import make_key
from tests.wms.placement.places import PASSWORD, PLACES, Place, Servers, marks_of
from tests.wms.placement.servers.small_disk import DISK_BYTES
from tests.wms.placement.servers.tls import make_certificate
from wms.core.actors import Actor
from wms.pilots.credentials.sealing import new_key
from wms.placement import operations, runner
from wms.placement import services as by_people
from wms.placement.conf import placement_conf
from wms.placement.credentials import NewCredential, set_credential
from wms.placement.models import PlacementRequest
from wms.placement.modules import carry_out
from wms.placement.modules.found import found_modules
from wms.placement.modules.protocol import Credential, TransferTask
from wms.placement.request_ad import Checksums
from wms.placement.states import RequestKind

pytestmark = pytest.mark.django_db

#: Proofs that something goes wrong at a server: with an end that is none there is nothing to see.
AT_AN_END = ("cut", "away", "credential")
PROOFS = ("moved", "wrong_byte", "full", "killed", *AT_AN_END)
SMALL = 300_000
#: Of so much the rest is less than what may be on its way.
_TELLING = 32 * 2**20
#: Where the rest alone comes of what was begun.
_NEAR = {"cut": "file", "killed": "file"}


def chosen(proof: str, *, is_all: bool) -> Iterator[tuple[str, str, str]]:
    """Source, destination and the end in question, for all pairs or for each scheme once."""
    pairs = itertools.product(PLACES, PLACES) if is_all else zip(PLACES, PLACES, strict=True)
    for source, destination in pairs:
        if proof not in AT_AN_END:
            yield source, destination if is_all else _NEAR.get(proof, destination), ""
        elif is_all:
            ends = {"source": source, "destination": destination}
            yield from ((source, destination, end) for end in ends if ends[end] != "file")
        elif source != "file":
            yield source, _NEAR.get(proof, destination), "source"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    proof = metafunc.function.__name__.removeprefix("test_proof_").partition("__")[0]
    if "ends" not in metafunc.fixturenames:
        return
    is_all = metafunc.config.getoption("--every-pair") is not None
    metafunc.parametrize(
        "ends",
        [
            pytest.param(
                each,
                id="-".join(filter(None, each)),
                marks=[getattr(pytest.mark, name) for name in marks_of(each[:2])],
            )
            for each in chosen(proof, is_all=is_all)
        ],
    )


@pytest.fixture(scope="module")
def content() -> bytes:
    return random.Random(7).randbytes(SMALL)


@pytest.fixture(scope="module")
def large(content: bytes, pytestconfig: pytest.Config) -> bytes:
    """Content that is moved; a small one too, where it need not be large."""
    size_mib = pytestconfig.getoption("--every-pair")
    return random.Random(8).randbytes(size_mib * 2**20) if size_mib else content


@pytest.fixture(scope="module")
def servers(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Servers]:
    folder = tmp_path_factory.mktemp("places")

    def wrong_key() -> Path:
        made = folder / "wrong key"
        if not made.exists():
            make_key(made)
        return made

    with ExitStack() as stack:
        yield Servers(
            folder, make_certificate(folder), lambda: request.getfixturevalue("sshd"), wrong_key,
            lambda: request.getfixturevalue("s3"), stack,
        )  # fmt: skip


@dataclass
class Pair:
    """A transfer between two places: what it is made of, and how it goes."""

    source: Place
    destination: Place
    end: Place
    alice: Any
    configure: Callable[..., None]

    def prepare(self, *, wrong: Place | None = None) -> None:
        """Store the credentials, that for one place a wrong one, and set what the places need."""
        for place in (self.source, self.destination):
            self.configure(**place.settings())
        for place in (self.source, self.destination):
            same = wrong is not None and place.credential() == wrong.credential()
            self.keep(place.credential(is_wrong=place is wrong or same))

    def keep(self, new: NewCredential | None) -> None:
        if new is not None:
            set_credential(new, owner=self.alice, actor=Actor.person(self.alice))

    def submit(self, more: str = "", name: str = "x") -> int:
        text = (
            f'[dap_type = "transfer"; src_url = "{self.source.at(name)}"; '
            f'dest_url = "{self.destination.at(name)}"; {more}]'
        )
        actor = Actor.person(self.alice)
        return by_people.submit_requests(text, actor=actor, owner=self.alice).ids[0]

    def attempt(self, pk: int) -> PlacementRequest:
        """Carry out the next attempt now."""
        PlacementRequest.objects.filter(pk=pk).update(due_at=None)
        runner.run_due()
        return PlacementRequest.objects.get(pk=pk)


@pytest.fixture
def pair(
    ends: tuple[str, str, str], servers: Servers, alice, configure, settings, monkeypatch
) -> Pair:
    settings.PILOTAGE = settings.PILOTAGE | {"CREDENTIAL_KEYS": new_key()}
    monkeypatch.setenv("SSL_CERT_FILE", str(servers.folder / "127.0.0.1.pem"))
    configure(ROOTS=[str(servers.folder)], ALLOWED=["127.0.0.0/8"], STALL_S=10)
    source = servers.place(ends[0], "source")
    destination = servers.place(ends[1], "destination")
    end = source if ends[2] == "source" else destination
    return Pair(source, destination, end, alice, configure)


def assert_placed(pair: Pair, request: PlacementRequest, content: bytes) -> None:
    assert request.state == "completed", request.state_reason
    assert pair.destination.content("x") == content
    assert pair.destination.names() == ["x"]


def test_proof_moved__a_file_is_moved_whole(pair: Pair, large: bytes) -> None:
    pair.prepare()
    pair.source.put("x", large)

    request = pair.attempt(pair.submit(f"size = {len(large)}"))

    assert_placed(pair, request, large)


def test_proof_wrong_byte__one_wrong_byte_is_found_and_nothing_stays(
    pair: Pair, content: bytes
) -> None:
    pair.prepare()
    pair.source.put("x", content[:-1] + bytes([content[-1] ^ 1]))

    request = pair.attempt(pair.submit(f'checksum = "{hashlib.sha256(content).hexdigest()}"'))

    assert request.state == "rescheduled"
    assert "SHA-256" in request.state_reason
    assert pair.destination.names() == []


def test_proof_full__a_full_disk_is_told_leaves_nothing_and_a_smaller_file_is_placed(
    pair: Pair, content: bytes
) -> None:
    large = (content * 7)[: 2 * DISK_BYTES]
    pair.source.put("x", large)
    pair.prepare()
    pk = pair.submit()

    with pair.destination.full():
        pair.configure(**pair.destination.settings())
        request = pair.attempt(pk)
        there = pair.destination.names()
    pair.configure(**pair.destination.settings())
    after = pair.attempt(pk)

    assert (request.state, request.attempts.get(number=1).exit_code) == ("rescheduled", 1)
    assert there == []
    assert_placed(pair, after, large)


def test_proof_cut__a_file_that_was_cut_in_the_middle_goes_on(pair: Pair, large: bytes) -> None:
    relay = pair.end.relay
    assert relay is not None
    pair.prepare()
    pair.source.put("x", large)
    is_source = pair.end is pair.source
    relay.of = "answers" if is_source else "requests"
    relay.cuts, relay.cut_after = 1, len(large) // 2

    broken = pair.attempt(pair.submit())
    assert (broken.state, relay.cuts) == ("rescheduled", 0)
    if is_source:
        assert_begun(pair, large)
    relay.passed = 0
    request = pair.attempt(broken.pk)

    assert_placed(pair, request, large)
    if is_source and pair.destination.scheme == "file" and len(large) >= _TELLING:
        # The rest alone came, and what was on its way of an answer that nobody read.
        assert relay.passed < len(large) * 0.8


def assert_begun(pair: Pair, content: bytes) -> None:
    """Bytes that have come stay in a folder of this host, and none elsewhere."""
    names = pair.destination.names()
    if pair.destination.scheme != "file":
        assert names == []
        return
    [part] = names
    begun = len(pair.destination.content(part) or b"")
    # Of a small file all may have been on its way.
    assert begun < len(content)
    assert begun or len(content) == SMALL


def test_proof_away__a_server_that_is_away_for_a_while_is_tried_again(
    pair: Pair, content: bytes
) -> None:
    pair.prepare()
    pair.source.put("x", content)
    assert pair.end.relay is not None

    with pair.end.relay.away():
        missed = pair.attempt(pair.submit())
    request = pair.attempt(missed.pk)

    assert missed.state == "rescheduled"
    assert "cannot be reached" in missed.state_reason
    assert_placed(pair, request, content)


def test_proof_credential__a_wrong_credential_is_refused_and_not_told(
    pair: Pair, content: bytes
) -> None:
    pair.prepare(wrong=pair.end)
    pair.source.put("x", content)

    refused = pair.attempt(pair.submit())
    there = pair.destination.names()
    pair.prepare()
    request = pair.attempt(refused.pk)

    assert (refused.state, refused.attempts.get(number=1).exit_code) == ("rescheduled", 1)
    told = refused.state_reason
    assert not any(word in told for word in ("another-word", PASSWORD, "PRIVATE KEY"))
    assert there == []
    assert_placed(pair, request, content)


@pytest.mark.process
def test_proof_killed__what_a_killed_worker_has_begun_another_one_finishes(
    pair: Pair, large: bytes
) -> None:
    # More than three pieces.
    large = large if len(large) > SMALL else large * 12
    pair.prepare()
    pair.source.put("x", large)
    pk = pair.submit()
    now = timezone.now()
    assert operations.take_request(now) is not None

    killed_in_the_middle(pair, pk, len(large))
    if pair.destination.scheme == "file":
        assert_begun(pair, large)
    lost = operations.end_lost_attempts(now + operations.LEASE + timedelta(seconds=1))
    request = pair.attempt(pk)

    assert (lost, request.attempt_number) == ([pk], 2)
    assert request.state == "completed", request.state_reason
    assert pair.destination.content("x") == large


def killed_in_the_middle(pair: Pair, pk: int, size: int) -> None:
    """Begin the transfer in a process of its own, and kill that when half has gone."""
    relay = pair.source.relay or pair.destination.relay
    context = multiprocessing.get_context("fork")
    half = context.Event()
    if relay is not None:
        relay.of = "answers" if pair.source.relay is not None else "requests"
        relay.stall_after = size // 2
    task = TransferTask(
        request_id=pk, source_url=pair.source.at("x"), destination_url=pair.destination.at("x"),
        arguments="", workspace_id=0, directory="", checksums=Checksums(), expected_bytes=None,
        conf=placement_conf(), pulse=_pulse(half, 0 if relay is not None else 3),
        credential=_credentials(pair),
    )  # fmt: skip
    schemes = (pair.source.scheme, pair.destination.scheme)
    # Forked: it needs no database.
    worker = context.Process(target=carry_out, args=(RequestKind.TRANSFER, schemes, task))
    worker.start()
    stalled = half if relay is None else relay.stalled
    assert wait_until(stalled.is_set, 30)
    if pair.destination.scheme == "file":
        assert wait_until(lambda: any(map(pair.destination.content, pair.destination.names())), 30)
    worker.kill()
    worker.join()
    if relay is not None:
        relay.forget()


def _pulse(half: Any, stops_at: int) -> Callable[[], None]:
    """Pulse that tells when it came so often, and then does not return."""
    count = itertools.count(1)

    def pulse() -> None:
        if stops_at and next(count) == stops_at:
            half.set()
            threading.Event().wait()

    return pulse


def _credentials(pair: Pair) -> Callable[[str, str, int], Credential | None]:
    stored = {}
    for place in (pair.source, pair.destination):
        new = place.credential()
        if new is not None:
            key = "s3" if place.scheme == "s3" else place.endpoint.rpartition(":")[2]
            stored[key] = Credential(new.user, new.password, new.token, new.key)
    return lambda scheme, host, port: stored.get("s3" if scheme == "s3" else str(port))


def test_every_scheme_of_the_modules_has_its_proofs() -> None:
    assert {(source, target) for source in PLACES for target in PLACES} == found_modules().pairs
    for proof in PROOFS:
        of_each = {scheme for ends in chosen(proof, is_all=False) for scheme in ends[:2]}
        assert of_each | {"file"} == set(PLACES)
