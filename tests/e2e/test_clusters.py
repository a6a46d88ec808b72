"""Page on which jobs are submitted, in the browser: refused submissions."""

from __future__ import annotations

from collections.abc import Callable

from django.urls import reverse
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from tests import factories
from wms.accounting.models import Quota
from wms.core.models import Role, User

Login = Callable[[User], None]


def test_whatever_refuses_jobs_is_told_beside_the_form(
    page: Page, live_server: LiveServer, login: Login
) -> None:
    alice = factories.people().alice
    Quota.objects.create(user=alice, max_waiting_jobs=5)
    login(alice)
    page.goto(live_server.url + reverse("web:submit-jobs"))
    told = page.locator("#findings")

    page.get_by_label("Command").fill("/bin/true")
    page.get_by_label("Number of jobs").fill("6")
    page.get_by_role("button", name="Check and submit").click()
    expect(told).to_contain_text("quota")

    # A refusal that is a page of its own.
    User.objects.filter(pk=alice.pk).update(role=Role.VIEWER)
    page.get_by_role("button", name="Check and submit").click()
    expect(told.get_by_role("alert")).to_contain_text("role")
    assert page.get_by_label("Number of jobs").input_value() == "6"
