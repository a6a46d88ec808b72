"""The self-test as a whole: on this host, by command and by page."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from portal.selftest import facts, registry
from portal.selftest.findings import Code, Finding, Level, ok
from tests import factories
from tests.portal.pilot_api.pilot_client import NODE
from wms.pilots.models import Pilot
from wms.sites.models import Queue

pytestmark = pytest.mark.django_db
DOCUMENT = Path(__file__).parents[3] / "docs" / "reference" / "self-test.md"
BAD = Finding(Code.DISK_FULL, Level.ERROR, "It is full.", "Nothing is stored.", "Make room.")
WELL = ok(Code.CLOCK, "It is right.")


@pytest.fixture(autouse=True)
def _folder(settings: Any, tmp_path: Path) -> None:
    scripts = {**settings.PILOTAGE["SCRIPTS"], "DIR": str(tmp_path)}
    settings.PILOTAGE = {**settings.PILOTAGE, "SCRIPTS": scripts}
    settings.VAR_DIR = tmp_path


@pytest.fixture
def people(db: None) -> SimpleNamespace:
    return factories.people()


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let the registry have no other checks than one that finds this."""

    def make(*findings: Finding) -> None:
        monkeypatch.setattr(registry, "CHECKS", (lambda: findings,))

    return make


def command(*words: str) -> tuple[str, int]:
    out = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("check_installation", *words, stdout=out)
    return out.getvalue(), int(ended.value.code or 0)


@pytest.mark.process
def test_every_check_can_be_made_on_a_real_host(people: SimpleNamespace) -> None:
    told = {each.code for each in registry.run_all()}

    assert Code.CHECK_FAILED not in told
    assert {Code.ADMINISTRATOR, Code.CLOCK, Code.BROKER, Code.ADDRESS, Code.DISK} <= told
    # The tests' own server is told not to wait for its disk; one that was given may wait.
    assert told & {Code.DATABASE, Code.DATABASE_MAY_LOSE}


def test_a_check_that_cannot_be_made_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> list[Finding]:
        raise OSError("no such place")

    monkeypatch.setattr(registry, "CHECKS", (broken, lambda: [WELL]))

    assert [each.code for each in registry.run_all()] == [Code.CHECK_FAILED, Code.CLOCK]


def test_the_command_ends_with_1_where_something_cannot_work(only: Any) -> None:
    only(WELL, BAD)

    text, code = command()

    assert code == 1
    *lines, counts = text.splitlines()
    assert lines == [f"error: {BAD.what} [disk-full]", f"    {BAD.why}", f"    {BAD.todo}"]
    assert re.findall(r"\d+", counts) == ["1", "0", "1"]


def test_the_command_ends_with_0_where_all_is_well(only: Any) -> None:
    only(WELL)

    text, code = command()

    assert (re.findall(r"\d+", text), code) == (["0", "0", "1"], 0)
    assert command("--all")[0].startswith(f"ok: {WELL.what} [clock]\n")


def test_the_command_answers_in_json(only: Any) -> None:
    only(BAD)

    text, code = command("--json")

    assert json.loads(text) == {
        "findings": [
            {
                "code": "disk-full", "level": "error", "what": "It is full.",
                "why": "Nothing is stored.", "todo": "Make room.",
            }
        ]
    }  # fmt: skip
    assert code == 1


def test_administrators_read_it_on_a_page(people: SimpleNamespace, only: Any) -> None:
    only(WELL, BAD)
    client = Client()
    client.force_login(people.ada)

    page = client.get(reverse("admin:self_test")).content.decode()

    assert page.index("disk-full") < page.index("clock")
    assert "Make room." in page
    assert reverse("admin:self_test") in client.get(reverse("admin:index")).content.decode()


def test_operators_are_refused_and_are_not_led_there(people: SimpleNamespace) -> None:
    client = Client()
    client.force_login(people.olga)

    assert client.get(reverse("admin:self_test")).status_code == 403
    assert reverse("admin:self_test") not in client.get(reverse("admin:index")).content.decode()


def test_queues_whose_nodes_are_elsewhere_are_known(db: None) -> None:
    near = factories.site("Near").queues.get()
    Queue.objects.create(site=near.site, name="ssh", element="host", settings={"ssh": {}})
    Queue.objects.create(site=near.site, name="batch", element="slurm")
    Queue.objects.create(site=near.site, name="off", element="slurm", is_enabled=False)
    Queue.objects.filter(pk=near.pk).update(element="host", settings={})

    assert sorted(facts.far_queues()) == ["Near/batch", "Near/ssh"]


def test_a_queue_that_was_settled_before_bubblewrap_came_is_known(db: None) -> None:
    pilot = factories.pilot()
    Queue.objects.update(settled_fence="none", element="slurm")
    Pilot.objects.update(node=NODE | {"fence": "none", "fence_found": "bwrap"})

    [queue] = facts.fenced_queues()

    assert (queue.name, queue.fence, queue.works_there) == (str(pilot.queue), "none", True)


def test_every_code_is_in_the_reference() -> None:
    text = DOCUMENT.read_text()

    assert [code.value for code in Code if f"| `{code.value}` |" not in text] == []
