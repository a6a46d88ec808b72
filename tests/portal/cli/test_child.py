"""A portal as a child process tells its own web server from that of another portal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.conf import settings
from pytest_django.live_server_helper import LiveServer

from portal.cli.child import ChildPortal, answering
from portal.cli.state_directory import StateDirectory
from portal.config.instance import instance_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def place(tmp_path: Path, live_server: LiveServer) -> StateDirectory:
    """A folder whose portal was given the port on which the test's server listens."""
    place = StateDirectory(tmp_path)
    place.run.mkdir()
    port = int(live_server.url.rsplit(":", 1)[1])
    (place.run / "ports.json").write_text(json.dumps({"web": port}))
    return place


def test_a_portal_knows_its_own_web_server(
    place: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PILOTAGE_SECRET_KEY", settings.SECRET_KEY)

    assert ChildPortal(place)._answers()


def test_the_web_server_of_another_portal_is_not_taken_for_its_own(
    place: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PILOTAGE_SECRET_KEY", raising=False)
    (place.run / "secret_key").write_text("of this portal only")

    assert answering(f"{ChildPortal(place).local_url}/health/live") == instance_of(
        settings.SECRET_KEY
    )
    assert not ChildPortal(place)._answers()


def test_a_portal_that_is_called_by_another_name_knows_itself(
    place: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "ALLOWED_HOSTS", ["portal.example"])
    monkeypatch.setenv("PILOTAGE_ALLOWED_HOSTS", "portal.example,other.example")
    monkeypatch.setenv("PILOTAGE_SECRET_KEY", settings.SECRET_KEY)

    assert ChildPortal(place)._answers()


def test_what_is_no_portal_has_no_name(live_server: LiveServer) -> None:
    assert answering(f"{live_server.url}/static/nothing") is None
    assert answering("http://127.0.0.1:1/health/live") is None
