"""Element of a real Slurm: particulars of its pilots."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from tests.batch_systems import slurm as batch_system
from tests.batch_systems.slurm import MAX_ARRAY_SIZE, Slurm
from tests.wms.elements.conftest import slurm_elements
from tests.wms.elements.contract import (
    FOREVER,
    ElementContract,
    submit,
    unique_name,
    wait_for,
    wait_for_log,
)
from wms.elements.protocol import BatchState, Capacity, PilotState, Refused, Unreachable
from wms.elements.runner import TIMEOUT_S, Completed, LocalRunner
from wms.elements.slurm import SlurmElement

Maker = Callable[..., SlurmElement]
HOLD = ["--hold"]


class TestSlurm(ElementContract):
    unknown_ids = ("99999999_0", "nobody.0", "../../etc")

    @pytest.fixture
    def make_element(self, make_slurm: Maker) -> Maker:
        return make_slurm


def test_more_pilots_than_an_array_may_have_begin_anew_with_its_numbers(make_slurm: Maker) -> None:
    element, name = make_slurm(), unique_name()
    count = MAX_ARRAY_SIZE + 1

    pilots = submit(element, 'echo "index $PILOTAGE_INDEX"', count=count, name=name)

    assert [pilots[0][-2:], pilots[-1][-2:]] == ["_0", "_0"]
    assert element.adopt(name) == pilots
    assert wait_for_log(element, pilots[-1], "\n") == f"index {count - 1}\n"


def test_nothing_that_slurm_tells_the_owner_of_a_pilot_has_a_secret(
    make_slurm: Maker, slurm: Slurm, tmp_path: Path
) -> None:
    secrets = ["id-0:secret-of-one", "id-1:secret-of-two"]
    name = unique_name()
    [running, _] = submit(make_slurm(), FOREVER, count=2, name=name, secrets=secrets)
    waiting = submit(make_slurm(arguments=HOLD), FOREVER, count=2, name=name, secrets=secrets)
    wait_for_log(make_slurm(), running, "begun")

    told = [slurm.run("squeue", "-r", "-O", "ALL", f"--name={name}")]
    for number, pilot in enumerate([running, *waiting]):
        script = tmp_path / f"script-{number}"
        told.append(slurm.run("scontrol", "show", "job", "-d", pilot))
        slurm.run("scontrol", "write", "batch_script", pilot, str(script))
        told.append(script.read_text())
    # What lies on the node, and what its processes were called with.
    told += [path.read_text() for path in (slurm.folder / "spool").rglob("slurm_script")]
    told += _command_lines()

    assert FOREVER.strip() in told[2]
    assert not [text for text in told if "secret-of" in text]


def _command_lines() -> Iterator[str]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        # Others may end meanwhile.
        with suppress(OSError):
            yield path.read_text(errors="replace")


def test_what_slurm_refuses_is_told_in_its_words(make_slurm: Maker) -> None:
    with pytest.raises(Refused, match="nowhere"):
        submit(make_slurm(partition="nowhere"), "true")


@pytest.mark.parametrize(
    ("values", "minutes", "reason"),
    [({"partition": "short"}, 10, "PartitionTimeLimit"), ({"arguments": HOLD}, 1, "JobHeldUser")],
)
def test_a_pilot_that_would_wait_for_ever_is_held_with_slurms_reason(
    make_slurm: Maker, values: dict[str, object], minutes: int, reason: str
) -> None:
    element = make_slurm(**values)
    resources = {"cores": 1, "memory_mb": 100, "gpus": 0, "minutes": minutes}

    [pilot] = element.submit(1, "true", name=unique_name(), **resources)

    assert wait_for(element, pilot, BatchState.HELD).reason == reason


def test_pilots_cancelled_before_they_began_are_cancelled_or_unknown_and_never_done(
    make_slurm: Maker,
) -> None:
    element = make_slurm(arguments=HOLD)
    some = submit(element, "true", count=3)
    whole = submit(element, "true", count=2)

    element.cancel([some[1], *whole])

    states = {each: found.state for each, found in element.status([*some, *whole]).items()}
    assert [states[each] for each in whole] == [BatchState.CANCELLED] * 2
    assert states[some[1]] in {BatchState.MISSING, BatchState.CANCELLED}
    assert [states[some[0]], states[some[2]]] == [BatchState.HELD] * 2


def test_pilots_of_many_arrays_are_cancelled_by_few_commands(make_slurm: Maker) -> None:
    watched = Watched()
    element = make_slurm(watched, arguments=HOLD)
    pilots = submit(element, "true", count=3 * MAX_ARRAY_SIZE)
    watched.commands.clear()

    element.cancel(pilots)

    assert len(watched.commands) == 1
    states = element.status(pilots)
    assert {found.state for found in states.values()} == {BatchState.CANCELLED}


def test_logs_of_many_pilots_are_removed_by_one_command(make_slurm: Maker, tmp_path: Path) -> None:
    element, logs = make_slurm(), tmp_path / "logs"
    logs.mkdir()
    gone = [f"99999999_{number}" for number in range(3000)]
    for each in gone:
        (logs / f"{each}.log").touch()
    (logs / "keep").touch()

    element.forget(gone)

    assert [path.name for path in logs.iterdir()] == ["keep"]


def test_pilots_with_gpus_get_them(make_slurm: Maker) -> None:
    script = 'echo "$PILOTAGE_GPUS $SLURM_JOB_GPUS over"'
    resources = {"cores": 1, "memory_mb": 100, "minutes": 1}

    [pilot] = make_slurm().submit(1, script, name=unique_name(), gpus=2, **resources)

    assert wait_for_log(make_slurm(), pilot, "over") == "2 0,1 over\n"
    with pytest.raises(Refused, match="not available"):
        make_slurm().submit(1, script, name=unique_name(), gpus=999, **resources)


def test_slurms_home_of_a_pilot_is_nobody_elses_folder(make_slurm: Maker) -> None:
    [pilot] = submit(make_slurm(), 'echo "$HOME over"')

    assert wait_for_log(make_slurm(), pilot, "over") == "/ over\n"


class Watched:
    """Runs commands and remembers them."""

    def __init__(self) -> None:
        self.commands: list[str] = []

    def run(
        self, argv: Sequence[str], *, stdin: str = "", timeout_s: float = TIMEOUT_S
    ) -> Completed:
        self.commands.append(" ".join(argv))
        return LocalRunner().run(argv, stdin=stdin, timeout_s=timeout_s)


def test_one_question_serves_all_pilots(make_slurm: Maker) -> None:
    watched = Watched()
    element = make_slurm(watched, arguments=HOLD)
    pilots = submit(element, "true", count=20) + submit(element, "true", count=20)
    watched.commands.clear()

    states = element.status(pilots)

    assert {state.state for state in states.values()} == {BatchState.HELD}
    assert len(watched.commands) == 1


def test_what_the_script_holds_is_in_no_command_line(make_slurm: Maker) -> None:
    watched = Watched()

    submit(make_slurm(watched), "true hush")

    assert not any("hush" in command for command in watched.commands)


def test_logs_are_for_this_account_only(make_slurm: Maker, tmp_path: Path) -> None:
    element = make_slurm()

    [pilot] = submit(element, "echo over")
    wait_for_log(element, pilot, "over")

    assert (tmp_path / "logs").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "logs" / f"{pilot}.log").stat().st_mode & 0o077 == 0


def answering(tools: Path, program: str, answer: str) -> str:
    """Return a PATH on which a program of Slurm gives this answer."""
    tools.mkdir(exist_ok=True)
    (tools / f"{program}.txt").write_text(answer)
    (tools / program).write_text(f"#!/bin/sh\ncat {tools}/{program}.txt\n")
    (tools / program).chmod(0o700)
    return f"{tools}:/usr/bin:/bin"


@pytest.mark.parametrize(
    ("row", "state", "reason"),
    [
        ("7_0|TIMEOUT|node1|0|TimeLimit|", BatchState.FAILED, "TIMEOUT, TimeLimit"),
        ("7_0|NODE_FAIL|node1|0|None|", BatchState.FAILED, "NODE_FAIL"),
        ("7_0|FAILED|node1|9|None|", BatchState.FAILED, "FAILED, exit code 137"),
        ("7_0|PENDING||0|launch failed requeued held|", BatchState.HELD, "launch failed requeued"),
        ("7_0|PENDING||0|Priority|", BatchState.QUEUED, "Priority"),
        ("7_0|PENDING||0|odd | reason|", BatchState.QUEUED, "odd | reason"),
        ("7_0|SUSPENDED|node1|0|None|", BatchState.RUNNING, ""),
        ("7_0|INVENTED|node1|0|None|", BatchState.MISSING, "unknown state INVENTED"),
        ("7_0|RUNNING", BatchState.MISSING, "cannot be read"),
        ("7_0|RUNNING|node1|?|None|", BatchState.MISSING, "cannot be read"),
        ("8_0|RUNNING|node1|0|None|", BatchState.MISSING, ""),
        ("", BatchState.MISSING, ""),
    ],
)
def test_each_row_is_understood_and_an_odd_one_hides_no_other(
    make_slurm: Maker, tmp_path: Path, row: str, state: BatchState, reason: str
) -> None:
    other = "9_1|RUNNING|node1|0|None|\n"
    path = answering(tmp_path / "tools", "squeue", f"{row}\n{other}" if row else other)

    found = make_slurm(path=path).status(["7_0", "9_1"])

    assert found["9_1"] == PilotState(BatchState.RUNNING, node="node1", native="RUNNING")
    assert found["7_0"].state == state
    assert reason in found["7_0"].reason


def test_an_answer_of_sbatch_that_is_no_number_is_no_answer(
    make_slurm: Maker, tmp_path: Path
) -> None:
    path = answering(tmp_path / "tools", "sbatch", "Thank you!\n")

    with pytest.raises(Unreachable, match="Thank you"):
        submit(make_slurm(path=path), "true")


@pytest.fixture
def own(own_slurm: Slurm, tmp_path: Path) -> Iterator[Maker]:
    with slurm_elements(own_slurm, tmp_path / "logs") as make:
        yield make
        batch_system.start(own_slurm.folder)


def test_the_capacity_is_counted_in_pilots_of_so_many_cores(own: Maker, own_slurm: Slurm) -> None:
    element = own(cores=2)
    [pilot] = element.submit(
        1, FOREVER, name=unique_name(), cores=2, memory_mb=100, gpus=0, minutes=5
    )
    submit(own(arguments=HOLD), "true")
    wait_for(element, pilot, BatchState.RUNNING)

    places = own_slurm.cpus // 2
    assert element.capacity() == Capacity(
        is_up=True, total=places, free=places - 1, queued=1, running=1
    )
    assert not own(partition="nowhere").capacity().is_up


def test_a_controller_that_is_down_is_no_answer_and_its_pilots_go_on(
    own: Maker, own_slurm: Slurm
) -> None:
    pilots = submit(own(), FOREVER, count=2)
    for pilot in pilots:
        wait_for(own(), pilot, BatchState.RUNNING)
    own_slurm.stop_controller()
    element = own(timeout_s=1)

    for question in (element.capacity, lambda: element.status(pilots), lambda: element.adopt("x")):
        with pytest.raises(Unreachable):
            question()
    with pytest.raises(Unreachable):
        submit(element, "true")
    with pytest.raises(Unreachable):
        element.cancel(pilots)

    batch_system.start(own_slurm.folder)
    assert {found.state for found in own().status(pilots).values()} == {BatchState.RUNNING}


def test_a_controller_that_hangs_is_no_answer_within_the_time(own: Maker, own_slurm: Slurm) -> None:
    [pilot] = submit(own(), FOREVER)
    wait_for(own(), pilot, BatchState.RUNNING)

    own_slurm.signal_controller(signal.SIGSTOP)
    try:
        with pytest.raises(Unreachable, match="within"):
            own(timeout_s=1).status([pilot])
    finally:
        own_slurm.signal_controller(signal.SIGCONT)

    assert own().status([pilot])[pilot].state == BatchState.RUNNING
