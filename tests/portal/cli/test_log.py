"""Reading a job's output from a shell."""

from __future__ import annotations

import io

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from portal.cli.management.commands.log import followed
from portal.shared.readable_logs import attempt_of, log_of_attempt
from tests import factories
from wms.jobs.models import Stream
from wms.jobs.output.streams import append_to_stream

pytestmark = pytest.mark.django_db


@pytest.fixture
def claimed() -> factories.Claimed:
    """Alice's job, which runs in a pilot."""
    people = factories.people()
    worker = factories.pilot(factories.site().queues.get())
    factories.job(people.alice)
    made = factories.claim(worker)
    assert made is not None
    return made.start()


def _print(claimed: factories.Claimed, content: bytes) -> None:
    sent = Stream.objects.filter(attempt__job=claimed.job).first()
    append_to_stream(
        claimed.job.pk, claimed.number, pilot_id=claimed.pilot.pk, kind="stdout",
        offset=sent.size_bytes if sent else 0, content=content, now=timezone.now(),
    )  # fmt: skip


def _read(job: int, *options: str) -> str:
    out = io.StringIO()
    call_command("log", str(job), "--user", "bob", *options, stdout=out)
    return out.getvalue()


def test_the_end_or_all_of_the_output_is_printed(claimed: factories.Claimed) -> None:
    _print(claimed, b"line\n" * 20_000 + b"last\n")

    end, whole = _read(claimed.job.pk), _read(claimed.job.pk, "--all")

    assert end.startswith("line\n")
    assert end.endswith("line\nlast\n")
    assert end.count("\n") == 1500
    assert whole.count("\n") == 20_001


def test_what_is_added_is_printed_until_the_attempt_has_ended(claimed: factories.Claimed) -> None:
    waits = []

    def wait() -> None:
        waits.append(1)
        if len(waits) == 1:
            _print(claimed, b"one\n")
        else:
            claimed.send("stdout", "stdout", b"one\ntwo\n")
            claimed.end()

    def look():
        return log_of_attempt(attempt_of(claimed.job, 1), "stdout", now=timezone.now())

    assert b"".join(followed(look, is_whole=False, wait=wait)) == b"one\ntwo\n"
    assert len(waits) == 2


def test_what_was_left_out_is_told_in_its_place(claimed: factories.Claimed) -> None:
    _print(claimed, b"one\n")
    append_to_stream(
        claimed.job.pk, claimed.number, pilot_id=claimed.pilot.pk, kind="stdout",
        offset=104, after=4, content=b"nine\n", now=timezone.now(),
    )  # fmt: skip

    assert _read(claimed.job.pk, "--all").splitlines()[::3] == ["one", "nine"]
    assert _read(claimed.job.pk) == "nine\n"


def test_what_cannot_be_read_is_told(claimed: factories.Claimed) -> None:
    with pytest.raises(CommandError, match="stdout"):
        _read(claimed.job.pk)
    with pytest.raises(CommandError, match="has no attempt 7"):
        _read(claimed.job.pk, "--attempt", "7")
    with pytest.raises(CommandError, match="nobody"):
        call_command("log", str(claimed.job.pk), "--user", "nobody")
