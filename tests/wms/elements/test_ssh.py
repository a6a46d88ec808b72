"""Elements on another host, by the system's ssh to a real sshd."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.batch_systems.services import Unavailable, free_ports, is_gone, wait_until
from tests.batch_systems.sshd import Sshd, start, stop
from tests.wms.elements.contract import SLOTS, ElementContract
from wms.elements.host import HostElement
from wms.elements.host_cleanup import end_host_pilots
from wms.elements.protocol import Element, Unreachable
from wms.elements.runner import CommandRunner
from wms.elements.settings import SettingsReader
from wms.elements.ssh import runner_from


class TestHostOverSsh(ElementContract):
    @pytest.fixture
    def make_element(self, sshd: Sshd, tmp_path: Path) -> Iterator[Callable[[], Element]]:
        base = tmp_path / "pilots"
        runner = make_runner(sshd.settings())
        yield lambda: HostElement(base, slots=SLOTS, runner=runner, cancel_grace_s=1)
        end_host_pilots(base, grace_s=0.2)


class TestSlurmOverSsh(ElementContract):
    unknown_ids = ("99999999_0", "nobody.0", "../../etc")

    @pytest.fixture
    def make_element(self, make_slurm: Callable[..., Element], sshd: Sshd) -> Callable[[], Element]:
        return lambda: make_slurm(ssh=sshd.settings())


def make_runner(settings: dict[str, object]) -> CommandRunner:
    return runner_from(SettingsReader({"ssh": settings}, {"ssh"}))


@pytest.fixture
def runner(sshd: Sshd) -> CommandRunner:
    return make_runner(sshd.settings())


def test_a_command_gets_its_input_and_gives_its_output_and_code(runner: CommandRunner) -> None:
    done = runner.run(["sh", "-c", "cat; echo bad >&2; exit 4"], stdin="in")

    assert (done.returncode, done.stdout) == (4, "in")
    assert done.stderr == "bad\n"


def test_arguments_arrive_as_they_are(runner: CommandRunner) -> None:
    awkward = ["a b", "", "$HOME", "`id`", "'\"\\", "*", "-n", "\n"]

    done = runner.run(["printf", "[%s]", *awkward])

    assert done.stdout == "".join(f"[{each}]" for each in awkward)


def test_a_code_that_ssh_itself_has_a_meaning_for_is_the_commands_own(
    runner: CommandRunner,
) -> None:
    assert runner.run(["sh", "-c", "exit 255"]).returncode == 255


def test_a_command_that_takes_too_long_is_ended_on_the_other_host(
    runner: CommandRunner, tmp_path: Path
) -> None:
    command = f"echo $$ >{tmp_path}/pid; exec sleep 60"

    with pytest.raises(Unreachable):
        runner.run(["sh", "-c", command], timeout_s=2.0)

    pid = int((tmp_path / "pid").read_text())
    assert wait_until(lambda: is_gone(pid), 20)


def test_an_answer_that_is_cut_is_no_answer(runner: CommandRunner) -> None:
    # The shell that would tell the code ends before it can.
    command = "echo half; read -r _ _ _ shell _ </proc/$PPID/stat; kill -s KILL $shell"

    with pytest.raises(Unreachable):
        runner.run(["sh", "-c", command])


def test_one_connection_serves_all_commands(runner: CommandRunner) -> None:
    ports = {runner.run(["sh", "-c", "echo $SSH_CONNECTION"]).stdout for _ in range(3)}

    assert len(ports) == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"port": free_ports(1)[0]}, "Connection refused"),
        ({"known_hosts_file": "/dev/null"}, "Host key verification failed"),
        ({"key_file": "/dev/null"}, "Permission denied"),
        ({"host": "host.invalid"}, "Could not resolve"),
    ],
)
def test_a_host_that_does_not_let_us_in_is_unreachable_and_says_why(
    sshd: Sshd, change: dict[str, object], reason: str
) -> None:
    with pytest.raises(Unreachable, match=reason):
        make_runner(sshd.settings() | change).run(["true"])


def test_a_host_on_the_way_is_logged_in_to_with_the_same_key(sshd: Sshd) -> None:
    jump = f"{sshd.user}@127.0.0.1:{sshd.port}"

    runner = make_runner(sshd.settings() | {"proxy_jump": jump})

    assert runner.run(["echo", "there"]).stdout == "there\n"


def test_a_file_of_settings_of_ssh_may_say_where_the_host_is(sshd: Sshd, tmp_path: Path) -> None:
    settings = sshd.settings()
    (tmp_path / "config").write_text(
        f"Host cluster\n  HostName 127.0.0.1\n  Port {sshd.port}\n  User {sshd.user}\n"
        f"  IdentityFile {settings['key_file']}\n"
        f"  UserKnownHostsFile {settings['known_hosts_file']}\n"
    )

    runner = make_runner({"host": "cluster", "config_file": str(tmp_path / "config")})

    assert runner.run(["echo", "there"]).stdout == "there\n"


def test_the_socket_of_the_connection_is_in_a_folder_for_this_account_alone(
    sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / f"pilotage-ssh-{os.geteuid()}").mkdir(mode=0o755)

    with pytest.raises(Unreachable, match="this account alone"):
        make_runner(sshd.settings()).run(["true"])


@pytest.mark.process
def test_a_server_that_went_away_and_came_back_is_reached_again(tmp_path: Path) -> None:
    try:
        own = start(tmp_path / "s")
    except Unavailable as error:
        pytest.skip(str(error))
    runner = make_runner(own.settings())
    try:
        assert runner.run(["echo", "before"]).stdout == "before\n"
        stop(own.folder)
        with pytest.raises(Unreachable):
            runner.run(["echo", "meanwhile"])
        start(own.folder)

        assert runner.run(["echo", "after"]).stdout == "after\n"
    finally:
        stop(own.folder)
