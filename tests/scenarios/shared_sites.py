"""Three entries that two collaborations share: one in Slurm, one in HTCondor, one reached by ssh.

Each collaboration logs in at each with a credential of its own, and has another share and other
start expressions there. All batch systems are real.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from portal.cli.state_directory import BASE
from tests.batch_systems.condor import SCHEDD, Condor
from tests.batch_systems.services import shared
from tests.batch_systems.slurm import Slurm
from tests.batch_systems.sshd import Sshd, make_key
from tests.batch_systems.two_accounts import ACCOUNTS, TwoAccounts, two_accounts
from wms.elements.host_cleanup import end_host_pilots

#: Places at each entry.
PLACES = 4
#: Shares of each entry, by frontend: those of one are the other way round elsewhere.
SHARES = {
    "slurm": {"aquila": 3.0, "borealis": 1.0},
    "htcondor": {"aquila": 1.0, "borealis": 3.0},
    "ssh": {"aquila": 1.0, "borealis": 1.0},
}
#: People of the collaborations: every name of one has the collaboration's in it.
PEOPLE = {"aquila": "ada.aquila", "borealis": "ben.borealis"}
#: Accounts of HTCondor's pool, for which each has a token.
_OWNERS = {"aquila": "pilot", "borealis": "nobody"}
#: A policy that keeps some jobs of one collaboration from one entry, and none of the other.
START = {"aquila": 'MY.Site != "ssh" || TARGET.RequestMemory <= 100', "borealis": ""}

_SET_UP = """
import json, sys
import django
django.setup()
from wms.accounting.frontends import save_frontend
from wms.accounting.models import AccountingGroup, Frontend
from wms.core.accounts import ensure_account
from wms.core.actors import Actor
from wms.core.models import Role
from wms.core.tokens import create_token
from wms.pilots.credential_models import Credential
from wms.pilots.credentials.services import save_credential
from wms.sites.frontends.entries import save_entry
from wms.sites.frontends.models import FrontendEntry
from wms.sites.models import Queue
from wms.sites.services import QueueSpec, SiteSpec, configure_site
actor = Actor.system("test")
given, told = json.load(sys.stdin), {}
for site, queue in given["queues"].items():
    configure_site(SiteSpec(name=site, max_matches=1000), [QueueSpec(**queue)], actor=actor)
for name, user in given["people"].items():
    frontend = Frontend(name=name, start_expression=given["start"][name], is_enabled=False)
    save_frontend(frontend, actor=actor)
    group = AccountingGroup.objects.create(name=name, frontend=frontend)
    person = ensure_account(user, password=given["password"], role=Role.USER, actor=actor)
    group.members.add(person)
    told[name] = create_token(person, name="test", actor=actor)
    for site, shares in given["shares"].items():
        queue = Queue.objects.get(site__name=site)
        entry = FrontendEntry(frontend=frontend, queue=queue, share=shares[name])
        save_entry(entry, actor=actor)
        credential = Credential(
            name=f"{name}-{site}", frontend=frontend, queue=queue, **given["logins"][site][name]
        )
        credential.new_secret = given["secrets"][site][name]
        save_credential(credential, actor=actor)
for site in given["shares"]:
    # The default frontend has no jobs here, and no part either.
    save_entry(FrontendEntry(queue=Queue.objects.get(site__name=site), share=0.0), actor=actor)
print(json.dumps(told))
"""
_BEGIN = """
import django
django.setup()
from wms.accounting.models import Frontend
print(Frontend.objects.update(is_enabled=True))
"""
_MEASURE = """
import json, sys
import django
django.setup()
from datetime import datetime
from wms.jobs.models import Attempt
since, until = (datetime.fromisoformat(each) for each in json.load(sys.stdin))
told = {}
rows = Attempt.objects.filter(started_at__lt=until)
for site, group, began, ended in rows.values_list(
    "site_name", "owner_group", "started_at", "ended_at"
):
    seconds = (min(ended or until, until) - max(began, since)).total_seconds()
    by_group = told.setdefault(site, {})
    by_group[group] = by_group.get(group, 0.0) + max(0.0, seconds)
print(json.dumps(told))
"""


@dataclass(frozen=True, slots=True)
class Sites:
    """The batch systems, and what the portal is told to make use of them."""

    slurm: Slurm
    condor: Condor
    login: Sshd
    accounts: TwoAccounts
    var: Path
    secrets: Mapping[str, Mapping[str, str]] = field(repr=False)

    def key_prints(self) -> dict[str, str]:
        """Fingerprints of the keys for Slurm's login node, by frontend."""
        return {name: _fingerprint(self.var / f"{name}.key") for name in PEOPLE}

    def set_up(self, password: str, wall_time_s: int) -> dict[str, str]:
        """Make sites, queues, collaborations and credentials; return tokens by frontend.

        No pilot is sent before `begin`.
        """
        told = {
            "queues": self._queues(wall_time_s),
            "people": PEOPLE,
            "start": START,
            "shares": SHARES,
            "logins": self._logins(),
            "secrets": self.secrets,
            "password": password,
        }
        return dict(ask_inside(_SET_UP, told))

    def begin(self) -> None:
        """Let pilots be sent for both at one time, from when on each has its share."""
        ask_inside(_BEGIN, None)

    def _queues(self, wall_time_s: int) -> dict[str, Any]:
        common = {
            "name": "main", "cores": 1, "memory_mb": 200, "max_pilots": PLACES,
            "max_queued_pilots": PLACES, "hold_after_failure_s": 0, "attenuation": 1.0,
            "fence": "none", "wall_time_s": wall_time_s,
        }  # fmt: skip
        on_slurm = {
            "log_directory": str(self.var / "logs"),
            "slurm_conf": str(self.slurm.configuration),
            "ssh": self.login.settings(),
        }
        in_condor = {
            "collector": self.condor.collector,
            "schedd": SCHEDD,
            "token_directory": str(self.var / "no-tokens"),
        }
        over_ssh = {"ssh": self.accounts.settings(), "directory": "/nowhere", "slots": PLACES}
        return {
            "slurm": {"element": "slurm", "settings": on_slurm, **common},
            "htcondor": {"element": "htcondor", "settings": in_condor, **common},
            "ssh": {"element": "host", "settings": over_ssh, **common},
        }

    def _logins(self) -> dict[str, dict[str, dict[str, str]]]:
        return {
            "slurm": {
                name: {"kind": "ssh-key", "directory": str(self.var / f"logs-{name}")}
                for name in PEOPLE
            },
            "htcondor": {name: {"kind": "htcondor-token"} for name in PEOPLE},
            "ssh": {
                name: {
                    "kind": "ssh-key",
                    "account": account,
                    "directory": str(self.accounts.directory(account) / "pilots"),
                }
                for name, account in account_of().items()
            },
        }


def account_of() -> dict[str, str]:
    """Account of the host behind ssh, by frontend."""
    return dict(zip(PEOPLE, ACCOUNTS, strict=True))


@contextmanager
def shared_sites(var: Path) -> Iterator[Sites]:
    """Start what is not up; raise `Unavailable`."""
    with ExitStack() as stack:
        slurm, condor, login = (shared(name) for name in ("slurm", "condor", "sshd-shares"))
        accounts = stack.enter_context(two_accounts())
        keys = {}
        with (login.folder / "client.pub").open("a") as known:
            for name in PEOPLE:
                make_key(var / f"{name}.key")
                known.write((var / f"{name}.key.pub").read_text())
                keys[name] = (var / f"{name}.key").read_text()
        tokens = {
            name: condor.run("condor_token_create", "-identity", f"{owner}@example.org").strip()
            for name, owner in _OWNERS.items()
        }
        by_ssh = {name: accounts.key(account) for name, account in account_of().items()}
        secrets = {"slurm": keys, "htcondor": tokens, "ssh": by_ssh}
        for account in ACCOUNTS:
            # They outlive the portal, and the sshd.
            stack.callback(end_host_pilots, accounts.directory(account), grace_s=2.0)
        yield Sites(slurm, condor, login, accounts, var, secrets)


def measured(since: str, until: str) -> dict[str, dict[str, float]]:
    """Seconds for which jobs ran between two times (ISO 8601), by site and group."""
    return dict(ask_inside(_MEASURE, [since, until]))


def ask_inside(program: str, given: object) -> Any:
    """What a program prints as JSON that runs with the portal's own settings."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(given), capture_output=True, text=True, check=False, timeout=120, cwd=BASE,
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "portal.settings"},
    )  # fmt: skip
    if done.returncode:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def _fingerprint(key: Path) -> str:
    argv = ["ssh-keygen", "-l", "-f", str(key)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=30)
    return done.stdout.split()[1]
