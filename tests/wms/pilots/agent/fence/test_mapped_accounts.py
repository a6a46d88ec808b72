"""Accounts for the jobs of certain users and groups, with a real sudo."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.wms.pilots.agent.conftest import World, wait_until
from tests.wms.pilots.agent.fence import fencing
from tests.wms.pilots.agent.fence.fencing import SYSTEM_PYTHON, USER
from wms.core.models import User
from wms.pilots.agent.fence.base import FenceUnusable, NoFreeAccount
from wms.pilots.agent.fence.mapped_accounts import AccountMap, Unaccounted, reserve_for_all
from wms.pilots.agent.fence.sudo import SudoFence
from wms.pilots.agent.fence.unix_accounts import AccountPool, PayloadAccount
from wms.pilots.agent.files.job_directories import JobDirectories
from wms.pilots.models import Pilot
from wms.sites.models import Queue

payload_accounts = fencing.payload_accounts
pilot_code = fencing.pilot_code

_MAP = AccountMap(users={"alice": ("a1", "a2"), "bob": ("b1",)}, groups={"cms": ("c1",)})
_ACCOUNT = "pltalice"
_OF_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes accounts")
_TELL_FAULTS = """
import json, sys
from wms.pilots.agent.fence.mapped_accounts import AccountMap
from wms.pilots.agent.fence.network import Network
from wms.pilots.agent.fence.sudo import SudoFence
fence = SudoFence(Network("open"), AccountMap.from_json(json.loads(sys.argv[1])))
choice = fence.reserve()
print(json.dumps([list(fence.account_faults), choice.refused()]))
"""


def name_of(account: object) -> str:
    assert isinstance(account, PayloadAccount)
    return account.name


def test_before_a_claim_each_user_and_group_has_an_account_locked_and_then_one_alone(
    tmp_path: Path,
) -> None:
    pool = AccountPool(["one", "two", "three"], tmp_path)
    first = reserve_for_all(_MAP, pool)
    assert first.refused() == {"refused_owners": [], "refused_groups": []}
    assert name_of(first.choose("alice", "cms")) == "a1"

    second = reserve_for_all(_MAP, pool)
    assert second.refused() == {"refused_owners": [], "refused_groups": []}
    assert name_of(second.choose("alice", "")) == "a2"
    third = reserve_for_all(_MAP, pool)
    assert third.refused() == {"refused_owners": ["alice"], "refused_groups": []}
    # A server that gives such a job all the same cannot have it run under another account.
    unaccounted = third.choose("alice", "cms")
    assert isinstance(unaccounted, Unaccounted)
    assert name_of(reserve_for_all(_MAP, pool).choose("carol", "cms")) == "c1"
    fourth = reserve_for_all(_MAP, pool)
    assert fourth.refused() == {"refused_owners": ["alice"], "refused_groups": ["cms"]}
    assert name_of(fourth.choose("carol", "")) == "one"
    held = [pool.acquire(), pool.acquire()]
    with pytest.raises(NoFreeAccount):
        reserve_for_all(_MAP, pool)
    for each in (first, second, *held):
        each.close()
    assert reserve_for_all(_MAP, pool).refused()["refused_owners"] == []


@pytest.fixture
def alices_account(payload_accounts: None) -> Iterator[str]:
    """An account that nobody but root may have programs run under."""
    subprocess.run(["useradd", "--no-create-home", "-s", "/usr/sbin/nologin", _ACCOUNT], check=True)
    yield _ACCOUNT
    subprocess.run(["userdel", _ACCOUNT], check=True)


@pytest.mark.process
@_OF_ROOT
def test_accounts_that_are_missing_refused_or_never_for_payloads_are_told_with_reasons(
    alices_account: str, pilot_code: Path
) -> None:
    number = pwd.getpwnam(USER)
    given = {
        "users": {"alice": [alices_account], "bob": ["no-such-account"], "carol": [USER]},
        "groups": {"cms": ["daemon", "root"]},
    }
    done = subprocess.run(
        [SYSTEM_PYTHON, "-c", _TELL_FAULTS, json.dumps(given)],
        cwd=pilot_code,
        capture_output=True,
        user=number.pw_uid,
        group=number.pw_gid,
        extra_groups=[],
        env={"PATH": os.environ["PATH"]},
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    faults, refused = json.loads(done.stdout)

    # sudo refuses two, one is missing, one is the pilot's, one root's.
    assert len(faults) == 5
    for account in (alices_account, "no-such-account", USER, "daemon", "root"):
        assert any(account in fault for fault in faults)
    assert refused == {"refused_owners": ["alice", "bob", "carol"], "refused_groups": ["cms"]}


@pytest.mark.process
@_OF_ROOT
def test_a_job_runs_under_the_account_of_its_user_and_others_under_the_pools(
    world: World, alices_account: str
) -> None:
    bob, carol = User.objects.create_user("bob"), User.objects.create_user("carol")
    accounts = {"users": {"alice": [alices_account], "bob": ["no-such-account"]}, "groups": {}}
    Queue.objects.update(fence="sudo", network="auto", payload_accounts=accounts)
    script = "#!/bin/sh\nid -un >out\n"
    alices = world.submit(script, outputs=("out",))
    bobs = world.submit(script, owner=bob)
    carols = world.submit(script, owner=carol, outputs=("out",))

    agent = world.start()
    for job in (alices, carols):
        world.wait_for_state(job, "done")
    wait_until(lambda: Pilot.objects.filter(state="done").exists(), agent.log)

    assert world.output(alices, "out").decode().strip() == alices_account
    assert world.output(carols, "out").decode().strip().startswith("pilotage")
    bobs.refresh_from_db()
    assert bobs.state == "waiting"
    [told] = Pilot.objects.get().checks.filter(name="accounts")
    assert not told.is_ok
    assert "no-such-account" in told.reason


@pytest.mark.process
@_OF_ROOT
def test_no_enclosure_is_made_for_a_user_whose_account_is_not_free(
    payload_accounts: None, tmp_path: Path
) -> None:
    with pytest.raises(FenceUnusable, match="alice"):
        SudoFence().enclose(JobDirectories(tmp_path), Unaccounted("no account of alice"))
