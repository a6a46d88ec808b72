"""Transfers by SFTP, with OpenSSH's server and client."""

from __future__ import annotations

import random
import socket
from pathlib import Path

import pytest

from tests.batch_systems.sshd import Sshd
from tests.wms.placement.conftest import last_attempt, placed
from wms.core.actors import Actor
from wms.core.errors import InvalidInput
from wms.pilots.credentials.sealing import new_key
from wms.placement.credentials import NewCredential, set_credential

pytestmark = [pytest.mark.django_db, pytest.mark.process]

X = random.Random(9).randbytes(300_000)


@pytest.fixture
def let_in(sshd: Sshd, alice, pool: Path, configure, settings, tmp_path: Path):
    """Have a port of this host known as the server's, and a key stored for it; its address."""
    settings.PILOTAGE = settings.PILOTAGE | {"CREDENTIAL_KEYS": new_key()}
    known_hosts = tmp_path / "known hosts"
    known_hosts.write_text("")
    configure(KNOWN_HOSTS=str(known_hosts), ROOTS=[str(pool)], ALLOWED=["127.0.0.0/8"])

    def make(
        port: int = 0, *, key: Path | None = None, is_known: bool = True, scheme: str = "sftp"
    ) -> str:
        port = port or sshd.port
        if is_known:
            host_key = " ".join((sshd.folder / "host.pub").read_text().split()[:2])
            with known_hosts.open("a") as file:
                file.write(f"[127.0.0.1]:{port} {host_key}\n")
        secret = (key or sshd.folder / "client").read_text()
        url = f"{scheme}://127.0.0.1:{port}"
        new = NewCredential(url, user=sshd.user, key=secret)
        set_credential(new, owner=alice, actor=Actor.person(alice), reason="new disk")
        return f"{url}{tmp_path}"

    return make


# OpenSSH's scp speaks SFTP itself since its version 9.0.
@pytest.mark.parametrize("scheme", ["sftp", "scp"])
def test_a_file_goes_out_by_ssh_comes_back_and_is_removed(
    transfer, submitted, let_in, tmp_path: Path, scheme: str
) -> None:
    at = let_in(scheme=scheme)
    went = transfer("file:x", f"{at}/a/b/y", x=X)
    again = transfer("file:x", f"{at}/a/b/y", x=X[::-1])
    came = transfer(f"{at}/a/b/y", "file:in/", f"size = {len(X)}")
    there = [each.name for each in (tmp_path / "a" / "b").iterdir()]
    gone = [submitted(f'[dap_type = "remove"; src_url = "{at}/a/b/y"]').state for _ in range(2)]

    assert [each.state for each in (went, again, came)] == ["completed"] * 3, went.state_reason
    assert placed(came, "in/y") == X[::-1]
    assert there == ["y"]
    assert gone == ["completed", "completed"]
    assert list((tmp_path / "a" / "b").iterdir()) == []


def test_what_is_not_there_is_told(transfer, let_in) -> None:
    attempt = last_attempt(transfer(f"{let_in()}/nothing", "file:x"))

    assert attempt.exit_code == 1
    assert "No such file" in attempt.message


def test_a_host_whose_key_is_not_known_gets_no_login(transfer, let_in, sshd: Sshd) -> None:
    attempt = last_attempt(transfer(f"{let_in(is_known=False)}/x", "file:x"))

    assert attempt.exit_code == 1
    assert "PILOTAGE_PLACEMENT_KNOWN_HOSTS" in attempt.message


def test_a_server_that_is_away_is_told_and_one_without_a_key_is_not_asked(
    transfer, let_in, configure
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    away = last_attempt(transfer(f"{let_in(port)}/x", "file:x"))
    keyless = last_attempt(transfer("sftp://127.0.0.2/x", "file:x"))

    assert (away.exit_code, keyless.exit_code) == (1, 1)
    assert "cannot be reached" in away.message
    assert "no key is stored" in keyless.message


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"user": "alice", "password": "secret"}, "password"),
        ({"token": "secret"}, "token"),
        ({"user": "alice", "key": "no key"}, "key"),
        ({"user": "-oProxyCommand=id", "key": "no key"}, "user"),
    ],
)
def test_sftp_takes_a_user_and_a_key_alone(alice, given: dict[str, str], field: str) -> None:
    new = NewCredential("sftp://host.example", **given)
    with pytest.raises(InvalidInput) as caught:
        set_credential(new, owner=alice, actor=Actor.person(alice), reason="new disk")

    assert field in [each.field for each in caught.value.findings]
