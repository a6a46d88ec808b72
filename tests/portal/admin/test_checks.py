"""Checks of nodes, in the administration."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django.asserts import assertContains

from tests import factories
from wms.core.models import AuditEntry
from wms.pilots.models import NodeCheck
from wms.pilots.program.checks import CheckResult, record_checks
from wms.pilots.program.published import Said

SCRIPT = "#!/bin/sh\r\necho '{\"is_ok\": true}'\r\n"


@pytest.fixture
def admin(db: None) -> Client:
    client = Client()
    client.force_login(factories.person("anna", role="admin"))
    return client


def _send(client: Client, address: str, **values: str):
    data = {
        "name": "gcc", "site": "", "group": "", "position": "10", "script": SCRIPT,
        "settings": "{}", "time_limit_s": "30", "period_s": "", "is_enabled": "on", **values,
    }  # fmt: skip
    return client.post(address, data)


def _add(client: Client, **values: str):
    return _send(client, reverse("admin:pilots_nodecheck_add"), **values)


def test_an_administrator_adds_a_check_and_what_it_was_stays_in_the_audit(admin: Client) -> None:
    assert _add(admin).status_code == 302
    check = NodeCheck.objects.get()
    before = check.script
    assert before == SCRIPT.replace("\r\n", "\n")

    change = reverse("admin:pilots_nodecheck_change", args=[check.pk])
    assert _send(admin, change, script="#!/bin/sh\nexit 1\n").status_code == 302

    created, changed = AuditEntry.objects.filter(target="node check gcc").order_by("pk")
    assert created.action == "create node check"
    assert changed.facts == {"script": [before, "#!/bin/sh\nexit 1\n"]}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"script": "echo no interpreter"}, "the first line must name an interpreter"),
        ({"script": "#!/bin/sh\n" + "x" * 70_000}, "has more than 65536 bytes"),
        ({"name": "disk"}, "disk is the name of a built-in check"),
        ({"settings": "[]"}, "must be a JSON object"),
        ({"attributes": '{"Free": "float"}'}, "the type must be one of boolean"),
        ({"variables": '["LD_PRELOAD"]'}, "LD_PRELOAD is a reserved variable"),
        ({"time_limit_s": "0"}, "greater than or equal to 1"),
    ],
)
def test_a_faulty_check_is_refused_at_its_field(
    admin: Client, values: dict[str, str], message: str
) -> None:
    answer = _add(admin, **values)

    assert answer.status_code == 200
    assert message in answer.content.decode()
    assert not NodeCheck.objects.exists()


def test_an_operator_cannot_add_what_runs_in_every_pilot(db: None) -> None:
    people: SimpleNamespace = factories.people()
    client = Client()
    client.force_login(people.olga)

    assert _add(client).status_code == 403
    assert not NodeCheck.objects.exists()


def test_what_a_check_may_publish_is_declared_with_it(admin: Client) -> None:
    assert (
        _add(admin, attributes='{"Version": "string"}', variables='["GCC_DIR"]').status_code == 302
    )

    check = NodeCheck.objects.get()
    assert (check.attributes, check.variables) == ({"Version": "string"}, ["GCC_DIR"])


def test_the_page_of_a_check_tells_what_was_not_published_and_by_which_pilot(admin: Client) -> None:
    _add(admin, attributes='{"Version": "string"}')
    pilot = factories.pilot()
    said = Said({"Version": 13, "Other": "<b>"})
    result = CheckResult("0", "gcc", True, "", "", {}, 0.1, said)
    record_checks(pilot, [result], now=timezone.now())

    page = admin.get(reverse("admin:pilots_nodecheck_change", args=[NodeCheck.objects.get().pk]))

    assertContains(page, "Other is not an attribute that the check declares")
    assertContains(page, "Version must be a text")
    assertContains(page, reverse("web:pilot", args=[pilot.pk]))
