"""Two frontends at one site by ssh: each logs in as an account of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from django.utils import timezone

from tests.batch_systems.services import Unavailable
from tests.batch_systems.two_accounts import ACCOUNTS, TwoAccounts, two_accounts
from tests.wms.pilots.claiming import submit
from tests.wms.pilots.directing import direct, poll
from wms.accounting.models import AccountingGroup, Frontend
from wms.core.actors import Actor
from wms.core.models import User
from wms.elements.protocol import BatchState
from wms.pilots.credential_models import Credential
from wms.pilots.credentials.choice import element_with
from wms.pilots.credentials.services import save_credential
from wms.pilots.models import Pilot
from wms.pilots.pressure.remover import cancel_pending
from wms.sites.frontends.models import FrontendEntry
from wms.sites.models import Queue
from wms.sites.services import QueueSpec, SiteSpec, configure_site

pytestmark = [pytest.mark.django_db, pytest.mark.batch]


@pytest.fixture
def accounts() -> Iterator[TwoAccounts]:
    try:
        with two_accounts() as found:
            yield found
    except Unavailable as error:
        pytest.skip(str(error))


@pytest.fixture
def queue(accounts: TwoAccounts, alice: User, olga: User) -> Queue:
    """A queue at which two frontends have pilots, each with a credential; alice is in both."""
    settings = {"ssh": accounts.settings(), "directory": "/nowhere/pilots", "slots": 4}
    spec = QueueSpec(name="main", element="host", settings=settings, attenuation=1.0)
    actor = Actor.person(olga)
    site = configure_site(SiteSpec(name="cluster"), [spec], actor=actor)
    queue = Queue.objects.select_related("site").get(site=site)
    for account in ACCOUNTS:
        frontend = Frontend.objects.create(name=account)
        AccountingGroup.objects.create(name=account, frontend=frontend).members.add(alice)
        FrontendEntry.objects.create(frontend=frontend, queue=queue)
        credential = Credential(
            name=account,
            frontend=frontend,
            queue=queue,
            kind="ssh-key",
            account=account,
            directory=str(accounts.directory(account) / "pilots"),
        )
        credential.new_secret = accounts.key(account)
        save_credential(credential, actor=actor)
    return queue


def test_pilots_of_two_frontends_are_of_two_accounts_from_submission_to_removal(
    accounts: TwoAccounts, queue: Queue, alice: User
) -> None:
    for account in ACCOUNTS:
        submit(alice, account)
    now = timezone.now()

    turn = direct(now)["cluster/main"]

    assert turn.submitted == 2, turn.reasons
    pilots = {pilot.frontend.name: pilot for pilot in Pilot.objects.select_related("frontend")}
    for account, uid in ACCOUNTS.items():
        [made] = (accounts.directory(account) / "pilots").iterdir()
        assert made.name == pilots[account].native_id
        assert made.stat().st_uid == uid
        assert made.stat().st_mode & 0o077 == 0

    found = poll(now)["cluster/main"]
    assert (found.polled, found.fault) == (2, "")
    states = set(Pilot.objects.values_list("batch_state", flat=True))
    assert BatchState.MISSING not in states
    assert "" not in states

    ids = [pilot.pk for pilot in pilots.values()]
    assert cancel_pending(queue, ids, reason="test", now=now) == 2
    for account in ACCOUNTS:
        [made] = (accounts.directory(account) / "pilots").iterdir()
        assert (made / "cancel").exists()


def test_no_key_is_on_a_disk_or_a_command_line_while_a_command_runs(
    accounts: TwoAccounts, queue: Queue, alice: User
) -> None:
    account = next(iter(ACCOUNTS))
    credential = Credential.objects.get(name=account)
    element: Any = element_with(queue, credential.pk)

    done = element._runner.run(["id", "-un"])

    assert done.stdout.strip() == account
    words = accounts.key(account).splitlines()[1]
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, check=True, timeout=30)
    assert words.encode() not in listed.stdout
    assert words not in repr(vars(element))
