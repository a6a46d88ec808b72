"""Ends of programs and plugins as ends of attempts; the programs are functions here."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.wms.placement.conftest import last_attempt, placed
from wms.placement.conf import placement_conf
from wms.placement.modules.fenced import Program, ProgramEnd
from wms.placement.modules.found import found_modules
from wms.placement.modules.protocol import Credential, TransferTask
from wms.placement.modules.workplaces import transfer_place
from wms.placement.request_ad import Checksums

pytestmark = pytest.mark.django_db

ABLE = b'MultipleFileSupport = true\nSupportedMethods = "keep,file"\n'


@pytest.mark.parametrize(
    ("end", "code", "told"),
    [
        (ProgramEnd(3, "", b"\n\x1bno such file\nmore"), 3, "no such file"),
        (ProgramEnd(111, "", b""), 111, "knows no module"),
        (ProgramEnd(124, "", b""), 124, "took too long"),
        (ProgramEnd(-signal.SIGKILL, "", b""), 137, "exit code 137"),
        (ProgramEnd(1, "It was stopped: nothing moved.", b"busy"), 1, "It was stopped"),
        (ProgramEnd(0, "", b""), 1, "left no file"),
    ],
)
def test_exit_code_and_first_line_of_a_program_are_those_of_the_attempt(
    transfer, scripted, end, code, told
):
    scripted(lambda *_: end)

    attempt = last_attempt(transfer("web://127.0.0.1/x", "file:x", 'arguments = "-p  2"'))

    assert attempt.exit_code == code
    assert told in attempt.message
    assert "more" not in attempt.message


def test_a_program_is_given_both_addresses_and_the_words_of_the_request(transfer, scripted):
    given = []

    def run(program: Program, folder: Path) -> ProgramEnd:
        given.append((Path(program.executable).name, program.arguments, str(folder)))
        (folder / "x").write_bytes(b"content")
        return ProgramEnd(0, "", b"")

    scripted(run)
    done = transfer("web://127.0.0.1/a/x", "file:in/", 'arguments = "-p  2"')

    [(arguments, folder)] = [each[1:] for each in given if each[0] == "stork.transfer.web-file"]
    assert arguments == ["web://127.0.0.1/a/x", f"file://{folder}/x", "-p", "2"]
    assert placed(done, "in/x") == b"content"


def _plugin(answer: str, exit_code: int, output: bytes = b""):
    def run(program: Program, folder: Path) -> ProgramEnd:
        if program.arguments == ["-classad"]:
            return ProgramEnd(0, "", ABLE)
        (folder / "x").write_bytes(b"content")
        Path(program.arguments[3]).write_text(answer)
        return ProgramEnd(exit_code, "", output)

    return run


@pytest.mark.parametrize(
    ("answer", "exit_code", "told"),
    [
        ('[ TransferSuccess = false; TransferError = "no disk" ]', 0, "no disk"),
        ('[ TransferError = "no disk" ]', 1, "no disk"),
        ("[ TransferSuccess = true; TransferFileBytes = 8 ]", 0, "8 bytes of a file that has 7"),
        ("[ TransferSuccess = true ]", 7, "exit code 7"),
        ("nonsense", 0, "did not tell"),
        ("", 0, "did not tell"),
    ],
)
def test_a_plugin_that_does_not_tell_of_a_success_fails(
    transfer, scripted, answer, exit_code, told
):
    scripted(_plugin(answer, exit_code))

    attempt = last_attempt(transfer("keep://127.0.0.1/x", "file:x"))

    assert attempt.exit_code == max(exit_code, 1)
    assert told in attempt.message


@pytest.mark.parametrize(
    "end",
    [
        ProgramEnd(3, "", b""),
        ProgramEnd(0, "", b"[ nonsense"),
        ProgramEnd(0, "", b'SupportedMethods = ""'),
        ProgramEnd(0, "", b'SupportedMethods = "file, lfn, no-scheme"'),
    ],
)
def test_a_plugin_that_tells_nothing_of_use_is_told_where_its_scheme_is_missed(scripted, end):
    scripted(lambda *_: end)

    modules = found_modules()

    assert "keep" not in modules.readers
    assert [Path(each).name for each in modules.unusable] == ["plugin"]


def test_a_token_that_is_not_of_every_end_is_not_named_as_that_of_all(scripted, configure):
    configure(ALLOWED=["127.0.0.1", "127.0.0.2"])
    seen = []

    def run(program: Program, folder: Path) -> ProgramEnd:
        seen.append((program.environment, sorted(each.name for each in folder.rglob("*.token"))))
        return ProgramEnd(0, "", b"")

    def stored(scheme: str, host: str, port: int) -> Credential | None:
        return Credential(token="sesame") if host == "127.0.0.2" else None

    scripted(run)
    task = TransferTask(
        1, "web://127.0.0.1/x", "web://127.0.0.2/x", "", 1, "", Checksums(), None,
        placement_conf(), lambda: None, credential=stored,
    )  # fmt: skip
    both = {"source": task.source_url, "destination": task.destination_url}
    for ends in (both, {"destination": task.destination_url}):
        with transfer_place(task, [], ends) as place:
            place.run("/bin/true", [])

    [(of_both, files), (of_one, _)] = seen
    assert files == ["destination.token"]
    assert "BEARER_TOKEN_FILE" not in of_both
    assert of_one["BEARER_TOKEN_FILE"].endswith("/destination.token")
