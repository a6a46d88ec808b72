"""Pilots in a real HTCondor pool: the contract, and what is particular to HTCondor."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from tests.batch_systems.condor import TOO_MANY_CORES, Condor
from tests.batch_systems.services import Unavailable, shared, wait_until
from tests.wms.elements.contract import FOREVER, ElementContract, submit, unique_name, wait_for
from wms.elements import htcondor_helper
from wms.elements.htcondor import HTCondorElement, htcondor_element
from wms.elements.htcondor_login import environment
from wms.elements.logins import Login, LoginKind
from wms.elements.protocol import BatchState, Element, Refused, Unreachable
from wms.elements.runner import CommandRunner, Completed, LocalRunner

pytestmark = [pytest.mark.slow, pytest.mark.apart]

Make = Callable[..., HTCondorElement]


def pool_or_skip() -> Condor:
    """A pool of this test process alone: a test may stop it, or empty its queue."""
    try:
        found = shared(f"condor-{os.environ.get('PYTEST_XDIST_WORKER', 'own')}")
    except Unavailable as error:
        pytest.skip(str(error))
    assert isinstance(found, Condor)
    return found


@pytest.fixture(scope="module")
def pool() -> Condor:
    return pool_or_skip()


def maker(pool: Condor) -> Make:
    def make(runner: CommandRunner | None = None, **settings: object) -> HTCondorElement:
        place = {"collector": pool.collector, "token_directory": str(pool.token_directory)}
        element = htcondor_element({**place, "timeout_s": 30, **settings})
        return HTCondorElement(element.settings, runner) if runner else element

    return make


@pytest.fixture
def make(pool: Condor) -> Iterator[Make]:
    """Makes adapters to the pool; what a test leaves there is gone before the next."""
    yield maker(pool)
    # It is an error that there is nothing to remove.
    with suppress(subprocess.CalledProcessError):
        pool.run("condor_rm", "-constraint", "JobStatus < 3 || JobStatus == 5")


class TestHTCondor(ElementContract):
    has_live_log = False
    unknown_ids = ("999999.0", "01.0", "nobody.0", "../../etc", "1.0) || true || (1")

    @pytest.fixture
    def make_element(self, make: Make) -> Callable[[], Element]:
        return make


def test_the_reason_why_a_pilot_is_held_is_told_and_a_held_pilot_can_be_cancelled(
    make: Make, pool: Condor
) -> None:
    element = make(commands={"requirements": "false"})
    [pilot] = submit(element, "true")
    assert wait_until(lambda: element.status([pilot])[pilot].native == "idle", 30.0)

    pool.run("condor_hold", "-reason", "no credits left", pilot)
    held = wait_for(element, pilot, BatchState.HELD)
    element.cancel([pilot])

    assert "no credits left" in held.reason
    wait_for(element, pilot, BatchState.CANCELLED)


def test_a_pilot_over_its_wall_time_has_failed_with_this_reason(make: Make) -> None:
    element = make()
    [pilot] = element.submit(
        1, FOREVER, name=unique_name(), cores=1, memory_mb=10, gpus=0, minutes=0
    )

    ended = wait_for(element, pilot, BatchState.FAILED)

    assert "wall time" in ended.reason


def test_a_pilot_that_lost_its_node_is_not_started_again(make: Make, pool: Condor) -> None:
    element = make()
    [pilot] = submit(element, FOREVER)
    wait_for(element, pilot, BatchState.RUNNING)

    pool.run("condor_vacate_job", "-fast", pilot)

    assert "node" in wait_for(element, pilot, BatchState.FAILED).reason


def test_a_refusal_of_the_pool_is_told_in_its_own_words_and_leaves_nothing_behind(
    make: Make,
) -> None:
    element, name = make(), unique_name()

    with pytest.raises(Refused, match=TOO_MANY_CORES):
        element.submit(2, "true", name=name, cores=65, memory_mb=10, gpus=0, minutes=5)

    assert element.adopt(name) == []


def test_commands_of_the_queue_reach_the_schedd(make: Make, pool: Condor) -> None:
    element = make(commands={"+ProjectName": '"cms"', "requirements": "false"})

    [pilot] = submit(element, "true")

    assert pool.run("condor_q", "-allusers", pilot, "-af", "ProjectName").strip() == "cms"


def test_a_wrong_token_is_told_and_not_shown(make: Make, tmp_path: Path, pool: Condor) -> None:
    token = (pool.token_directory / "pool").read_text().strip()
    wrong = tmp_path / "wrong"
    wrong.touch(mode=0o600)
    wrong.write_text(token[:-12] + "A" * 12)

    with pytest.raises(Refused, match="authenticate") as caught:
        make(token_directory=str(tmp_path)).capacity()

    assert token[:40] not in str(caught.value)


def test_a_login_stands_in_place_of_the_folder_of_tokens(pool: Condor, tmp_path: Path) -> None:
    secret = (pool.token_directory / "pool").read_text().strip()
    place = {"collector": pool.collector, "token_directory": str(tmp_path), "timeout_s": 30}
    element = htcondor_element(place, Login(LoginKind.HTCONDOR_TOKEN, secret, "mark"))

    [pilot] = submit(element, "true")

    assert element.status([pilot])[pilot].state != BatchState.MISSING
    element.cancel([pilot])
    with pytest.raises(Refused, match="authenticate"):
        htcondor_element(place).capacity()


def test_an_unknown_schedd_and_a_dead_collector_tell_nothing_of_the_pilots(make: Make) -> None:
    with pytest.raises(Unreachable, match="nowhere"):
        make(schedd="nowhere").status(["1.0"])
    with pytest.raises(Unreachable, match="failed"):
        make(collector="127.0.0.1:1").status(["1.0"])


class WatchedRunner:
    """Notes which commands it runs, and which files lie in its temporary folder meanwhile."""

    def __init__(self, inner: CommandRunner) -> None:
        self._inner = inner
        self.commands: list[Sequence[str]] = []
        self.scripts: list[Path] = []

    def run(self, argv: Sequence[str], *, stdin: str = "", timeout_s: float = 10.0) -> Completed:
        self.commands.append(argv)
        self.scripts += Path(tempfile.gettempdir()).glob("pilotage-condor-*/*")
        modes = {path.parent.stat().st_mode & 0o777 for path in self.scripts if path.exists()}
        assert modes <= {0o700}
        return self._inner.run(argv, stdin=stdin, timeout_s=timeout_s)


def test_the_secrets_of_a_script_are_in_no_command_and_in_no_file_that_stays(
    make: Make, pool: Condor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    runner = WatchedRunner(LocalRunner(environment(pool.token_directory)))
    secret = secrets.token_hex(16)

    submit(make(runner), f"true {secret}")

    assert runner.scripts
    assert secret not in str(runner.commands)
    assert list(tmp_path.iterdir()) == []


def test_a_log_is_written_nowhere_but_where_it_was_asked_for(
    make: Make, pool: Condor, tmp_path: Path
) -> None:
    element = make()
    [pilot] = submit(element, "echo hello")
    wait_for(element, pilot, BatchState.DONE)
    folder, elsewhere = tmp_path / "folder", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    # What a schedd could say whose word is not to be trusted: another folder than ours.
    program = (
        f"import sys; sys.path.insert(0, {str(Path(htcondor_helper.__file__).parent)!r})\n"
        "import htcondor_helper as call, json\n"
        f"place = {{'collector': {pool.collector!r}, 'schedd': ''}}\n"
        "schedd = call._schedd(place)\n"
        f"schedd.edit({pilot!r}, 'SUBMIT_Iwd', json.dumps({str(elsewhere)!r}))\n"
        f"call._write_only_into({str(folder)!r})\n"
        f"schedd.retrieve({pilot!r})\n"
    )

    done = LocalRunner(environment(pool.token_directory)).run(
        [sys.executable, "-I", "-c", program], timeout_s=30
    )

    assert "Permission denied" in done.stderr
    assert list(elsewhere.iterdir()) == []
