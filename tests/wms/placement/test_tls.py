"""Transfers by HTTPS, WebDAV over TLS and FTPS, with real servers whose names are proved."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.wms.placement.conftest import last_attempt
from tests.wms.placement.servers.ftp import ftp_server
from tests.wms.placement.servers.http import http_server
from tests.wms.placement.servers.tls import make_certificate, server_side

pytestmark = pytest.mark.django_db

X = random.Random(5).randbytes(200_000)


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The certificate of this host's address, which is trusted."""
    made = make_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(made))
    return made


def test_a_server_that_nobody_vouches_for_is_refused(transfer, pool, tmp_path) -> None:
    with http_server(tls=server_side(make_certificate(tmp_path))) as site:
        site.files["/x"] = X
        refused = transfer(f"https://127.0.0.1:{site.port}/x", "file:y")

    assert last_attempt(refused).exit_code == 1
    assert "certificate" in refused.state_reason
    assert site.requests == []


def test_a_server_with_the_certificate_of_another_address_is_refused(
    transfer, pool, tmp_path, monkeypatch
) -> None:
    other = make_certificate(tmp_path, "127.0.0.2")
    monkeypatch.setenv("SSL_CERT_FILE", str(other))
    with http_server(tls=server_side(other)) as site:
        site.files["/x"] = X
        refused = transfer(f"https://127.0.0.1:{site.port}/x", "file:y")

    assert last_attempt(refused).exit_code == 1
    assert site.requests == []


def test_a_file_is_there_although_the_server_just_closes_the_connection_it_came_by(
    transfer, pool, tmp_path, certificate
) -> None:
    folder = tmp_path / "ftp"
    folder.mkdir()
    with ftp_server(folder, certificate=certificate) as site:
        site.is_curt = True
        went = transfer("file:x", site.url("/y"), x=X)

    assert went.state == "completed", went.state_reason
    assert (folder / "y").read_bytes() == X


def test_an_ftp_server_that_nobody_vouches_for_gets_no_password(transfer, pool, tmp_path) -> None:
    with ftp_server(tmp_path, certificate=make_certificate(tmp_path)) as site:
        refused = transfer(site.url("/x"), "file:y")

    assert last_attempt(refused).exit_code == 1
    assert "certificate" in refused.state_reason
