"""Locks of accounts for payloads."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from wms.pilots.agent.fence.base import FenceUnusable, NoFreeAccount
from wms.pilots.agent.fence.unix_accounts import AccountPool, PayloadAccount, folder_of_locks

_HOLD = """
import sys, time
from pathlib import Path
from wms.pilots.agent.fence.unix_accounts import AccountPool
held = AccountPool(["one"], Path(sys.argv[1])).acquire()
print("held", flush=True)
time.sleep(600)
"""
_ROOT = Path(__file__).parents[5]


def test_an_account_is_one_jobs_at_a_time(tmp_path: Path) -> None:
    accounts = AccountPool(["one", "two"], tmp_path)
    first, second = accounts.acquire(), accounts.acquire()
    with pytest.raises(NoFreeAccount, match="all 2"):
        accounts.acquire()

    second.close()

    assert (first.name, accounts.acquire().name) == ("one", "two")


def test_of_many_that_ask_at_once_each_gets_another_account(tmp_path: Path) -> None:
    names = [f"account{number}" for number in range(20)]

    def hold(_: int) -> PayloadAccount:
        return AccountPool(names, tmp_path).acquire()

    with ThreadPoolExecutor(20) as pool:
        held = list(pool.map(hold, range(20)))

    assert sorted(each.name for each in held) == sorted(names)


def test_who_sits_on_names_of_sockets_blocks_no_account(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as squatter:
        squatter.bind("\0pilotage-account-one")

        held = AccountPool(["one"], tmp_path).acquire()

    assert held.name == "one"


@pytest.mark.process
def test_an_account_is_free_when_its_pilot_was_killed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(tmp_path)], cwd=_ROOT, stdout=subprocess.PIPE
    ) as pilot:
        assert pilot.stdout is not None
        assert pilot.stdout.readline() == b"held\n"
        with pytest.raises(NoFreeAccount):
            AccountPool(["one"], tmp_path).acquire()
        pilot.kill()

    assert AccountPool(["one"], tmp_path).acquire().name == "one"


def test_a_link_in_the_place_of_a_lock_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").touch()
    (tmp_path / "one").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(OSError, match="one"):
        AccountPool(["one"], tmp_path).acquire()


def test_a_shared_folder_of_locks_that_others_may_enter_is_refused(tmp_path: Path) -> None:
    shared = tmp_path / "pilotage"
    shared.mkdir()
    shared.chmod(0o777)

    with pytest.raises(FenceUnusable, match="root"):
        folder_of_locks(shared)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes such a folder")
def test_a_shared_folder_of_root_is_taken(tmp_path: Path) -> None:
    shared = tmp_path / "pilotage"
    shared.mkdir(mode=0o770)

    assert folder_of_locks(shared) == shared


@pytest.mark.process
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two accounts")
def test_pilots_of_two_accounts_hold_each_others_locks_in_turn(tmp_path: Path) -> None:
    folder = Path(tempfile.mkdtemp(prefix="pilotage-locks-", dir="/var/tmp"))
    folder.chmod(0o770)
    os.chown(folder, 0, 65_534)
    before = os.umask(0o077)
    try:
        first = AccountPool(["one"], folder).acquire()
        as_other = {"user": 65_534, "group": 65_534, "extra_groups": []}
        other = f"import fcntl; fcntl.flock(open('{folder}/one'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
        command = ["/usr/bin/python3", "-c", other]
        while_held = subprocess.run(command, **as_other, capture_output=True, check=False)
        first.close()
        afterwards = subprocess.run(command, **as_other, capture_output=True, check=False)
    finally:
        os.umask(before)
        shutil.rmtree(folder)

    assert b"BlockingIOError" in while_held.stderr
    assert afterwards.returncode == 0, afterwards.stderr


def test_without_a_shared_folder_the_pilots_account_has_one_of_its_own(tmp_path: Path) -> None:
    folder = folder_of_locks(tmp_path / "none")

    status = folder.stat()
    assert (status.st_uid, status.st_mode & 0o777) == (os.geteuid(), 0o700)


def test_a_folder_that_somebody_else_put_there_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "own"
    place.symlink_to(tmp_path)
    monkeypatch.setattr("wms.pilots.agent.fence.unix_accounts._OWN", str(place))

    with pytest.raises(FenceUnusable, match=str(place)):
        folder_of_locks(tmp_path / "none")
