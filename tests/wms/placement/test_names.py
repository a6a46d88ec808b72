"""Names that lead to addresses that only the portal can reach: not called, by any protocol."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.batch_systems.sshd import make_key
from tests.wms.placement.conftest import last_attempt
from tests.wms.placement.servers.http import http_server
from wms.core.actors import Actor
from wms.pilots.credentials.sealing import new_key
from wms.placement.credentials import NewCredential, set_credential
from wms.placement.modules.built_in import READERS, WRITERS

pytestmark = pytest.mark.django_db

#: S3 leads to the store of the settings, whatever a request names.
SCHEMES = sorted({*READERS, *WRITERS} - {"file", "s3"})


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A server of this host that nobody may call."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        yield server


def keep_key(alice, url: str, key: Path) -> None:
    """An SSH key of Alice's: without one nobody would be asked."""
    make_key(key)
    new = NewCredential(url, user="alice", key=key.read_text())
    set_credential(new, owner=alice, actor=Actor.person(alice))


@pytest.mark.process
@pytest.mark.parametrize("end", ["source", "destination"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_a_name_leads_to_is_looked_at_before_it_is_called(
    transfer, alice, pool, configure, settings, listener, tmp_path, scheme: str, end: str
) -> None:
    settings.PILOTAGE = settings.PILOTAGE | {"CREDENTIAL_KEYS": new_key()}
    (tmp_path / "known hosts").write_text("")
    configure(ALLOWED=[], KNOWN_HOSTS=str(tmp_path / "known hosts"))
    url = f"{scheme}://localhost:{listener.getsockname()[1]}"
    if scheme in ("sftp", "scp"):
        keep_key(alice, url, tmp_path / "key")
    ends = (f"{url}/x", "file:y") if end == "source" else ("file:x", f"{url}/y")

    request = transfer(*ends, x=b"content")

    assert last_attempt(request).exit_code == 1
    assert "is not at a public address" in request.state_reason
    with pytest.raises(BlockingIOError):
        listener.accept()


@pytest.mark.parametrize(
    "target", ["http://10.0.0.1/x", "http://127.0.0.2:9/x", "http://2130706433/x"]
)
def test_a_redirect_leads_nowhere_that_a_request_may_not_name(
    transfer, pool, configure, target: str
) -> None:
    configure(ALLOWED=["localhost"])
    with http_server() as site:
        site.redirects = {"/x": target}
        request = transfer(f"http://localhost:{site.port}/x", "file:x")

    assert last_attempt(request).exit_code == 1
    assert "is not at a public address" in request.state_reason
