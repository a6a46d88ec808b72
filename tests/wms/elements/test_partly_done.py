"""Submissions of which a part was done: none of it may run unknown, or under another's id."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from wms.elements.arc import ArcElement, ArcSettings
from wms.elements.host import HostElement
from wms.elements.protocol import Element, Refused, Unreachable, by_index
from wms.elements.rest_helper import _headers
from wms.elements.runner import Completed, LocalRunner
from wms.elements.slurm import SlurmElement, SlurmSettings

SLOT = {"cores": 1, "memory_mb": 100, "gpus": 0, "minutes": 5}


class Scripted:
    """A host whose commands are answered by a function; keeps what was run."""

    def __init__(self, answer: Callable[[str, str], Completed]) -> None:
        self._answer = answer
        self.ran: list[str] = []

    def run(self, argv: Sequence[str], *, stdin: str = "", timeout_s: float = 1.0) -> Completed:
        self.ran.append(" ".join(argv))
        return self._answer(self.ran[-1], stdin)


def said(text: str) -> Completed:
    return Completed(0, text, "")


class SmallSlurm:
    """The second of some pilots is refused, and `scancel` ends as it is told."""

    def __init__(self, cancelled: Completed) -> None:
        self._cancelled = cancelled

    def __call__(self, command: str, _: str) -> Completed:
        if "scontrol" in command:
            return said("MaxArraySize = 2\n")
        if "scancel" in command:
            return self._cancelled
        return Completed(1, "7\n", "sbatch: error: QOSMaxSubmitJobPerUserLimit")


def slurm(answer: Callable[[str, str], Completed], folder: Path) -> tuple[Element, Scripted]:
    runner = Scripted(answer)
    return SlurmElement(SlurmSettings(log_directory=folder), runner), runner


def test_the_first_pilots_of_a_refused_batch_are_cancelled(tmp_path: Path) -> None:
    element, runner = slurm(SmallSlurm(said("")), tmp_path)

    with pytest.raises(Refused, match="QOSMaxSubmitJobPerUserLimit"):
        element.submit(3, "true", name="batch", **SLOT)

    assert runner.ran[-1].endswith("scancel --quiet 7_[0]")


@pytest.mark.parametrize("error", ["Access/permission denied", "Unable to contact controller"])
def test_pilots_that_could_not_be_cancelled_are_looked_for_later(
    tmp_path: Path, error: str
) -> None:
    element, _ = slurm(SmallSlurm(Completed(1, "", f"scancel: error: {error}")), tmp_path)

    with pytest.raises(Unreachable, match=error):
        element.submit(3, "true", name="batch", **SLOT)


@pytest.mark.parametrize(
    ("rows", "ids"),
    [
        ("7_1\n7_2\nEND\n", ["", "7_1", "7_2"]),
        ("9_0\n7_0\n8_1\nEND\n", ["7_0", "8_1", "9_0"]),
        ("9_1\n7_0\n8_0\nEND\n", ["7_0", "", "8_0", "9_1"]),
        ("END\n", []),
    ],
)
def test_tasks_that_slurm_has_forgotten_leave_their_places_empty(
    tmp_path: Path, rows: str, ids: list[str]
) -> None:
    def answer(command: str, _: str) -> Completed:
        return said("MaxArraySize = 2\n" if "scontrol" in command else rows)

    element, _ = slurm(answer, tmp_path)

    assert element.adopt("batch") == ids


def test_an_index_beyond_all_batches_is_no_answer() -> None:
    with pytest.raises(Unreachable, match="1000000"):
        by_index({0: "7_0", 1_000_000: "7_1000000"})


@pytest.mark.process
def test_pilots_of_a_host_that_were_started_before_a_fault_are_no_refusal(tmp_path: Path) -> None:
    element = HostElement(tmp_path, slots=5)
    (tmp_path / "batch.2").write_text("in the way")

    with pytest.raises(Unreachable, match="not whole"):
        element.submit(4, "true", name="batch", **SLOT)

    assert element.adopt("batch") == ["batch.0", "batch.1"]
    # It holds the secrets of the whole batch.
    assert not (tmp_path / ".batch.run").exists()


@pytest.mark.process
def test_a_fault_before_the_first_pilot_of_a_host_is_a_refusal(tmp_path: Path) -> None:
    element = HostElement(tmp_path, slots=5)
    (tmp_path / "batch.0").write_text("in the way")

    with pytest.raises(Refused, match=r"batch\.0"):
        element.submit(4, "true", name="batch", **SLOT)

    assert element.adopt("batch") == []


class RefusesScripts:
    """A CE that takes jobs, and answers their scripts with 403; it ends jobs if `can_kill`."""

    def __init__(self, *, can_kill: bool) -> None:
        self._can_kill = can_kill
        self.killed: list[str] = []

    def __call__(self, _: str, stdin: str) -> Completed:
        answers = []
        for request in json.loads(stdin)["requests"]:
            for path in request["paths"]:
                answers.append(self._one(path, request))
        return said(json.dumps({"answer": answers}))

    def _one(self, path: str, request: dict[str, str]) -> dict[str, object]:
        if path.endswith("action=new"):
            jobs = [{"id": f"abcdef{n}", "status-code": "201"} for n in range(2)]
            return {"status": 201, "body": json.dumps({"job": jobs})}
        if path.endswith("action=kill") and self._can_kill:
            self.killed = [each["id"] for each in json.loads(request["body"])["job"]]
            jobs = [{"id": each, "status-code": "202"} for each in self.killed]
            return {"status": 201, "body": json.dumps({"job": jobs})}
        return {"status": 403, "body": "no"}


def arc(ce: RefusesScripts) -> Element:
    return ArcElement(ArcSettings("https://ce.example.org/arex"), Scripted(ce))


def test_jobs_of_a_ce_whose_scripts_are_refused_are_ended() -> None:
    ce = RefusesScripts(can_kill=True)

    with pytest.raises(Refused, match="status 403"):
        arc(ce).submit(2, "true", name="batch", **SLOT)

    assert ce.killed == ["abcdef0", "abcdef1"]


def test_jobs_of_a_ce_that_could_not_be_ended_are_looked_for_later() -> None:
    with pytest.raises(Unreachable, match="ended"):
        arc(RefusesScripts(can_kill=False)).submit(2, "true", name="batch", **SLOT)


@pytest.mark.process
@pytest.mark.parametrize("command", ["kill -9 $$", "sh -c 'kill -9 $$'; exit $?"])
def test_a_command_that_a_signal_has_ended_tells_nothing(command: str) -> None:
    with pytest.raises(Unreachable, match="signal 9"):
        LocalRunner().run(["sh", "-c", command])


@pytest.mark.process
def test_a_code_of_its_own_is_an_answer() -> None:
    assert LocalRunner().run(["sh", "-c", "exit 255"]).returncode == 255


def test_a_file_that_holds_more_than_a_token_is_told_to_nobody(tmp_path: Path) -> None:
    token_file = tmp_path / "token"
    token_file.write_text("# of the robot\nsecret-part\n")
    question = {"token": "", "token_file": str(token_file)}

    with pytest.raises(ValueError, match="one token") as told:
        _headers(question, {})

    assert "secret" not in str(told.value)


def test_a_token_goes_with_each_request(tmp_path: Path) -> None:
    token_file = tmp_path / "token"
    token_file.write_text("a.b-c_d~/+=\n")

    assert (
        _headers({"token": "", "token_file": str(token_file)}, {})["Authorization"]
        == "Bearer a.b-c_d~/+="
    )
