"""Pages of clusters in the browser: refused submissions, and what is typed during a refresh."""

from __future__ import annotations

from collections.abc import Callable

from django.urls import reverse
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from tests import factories
from tests.e2e.conftest import Complaints
from tests.wms.jobs.clusters.samples import PLAIN, submit
from wms.accounting.models import Quota
from wms.core.models import Role, User
from wms.jobs.models import Cluster

Login = Callable[[User], None]

_REFRESH = """() => new Promise((resolve) => {
  const live = document.querySelector("#live");
  live.addEventListener("htmx:afterRequest", () => setTimeout(resolve, 50), {once: true});
  htmx.trigger(live, "pilotage:refresh");
})"""


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


def test_a_number_that_is_typed_outlives_a_refresh(
    page: Page, live_server: LiveServer, login: Login, complaints: Complaints
) -> None:
    alice = factories.people().alice
    cluster = submit(alice, f"{PLAIN}queue 60\n").cluster
    login(alice)
    page.goto(live_server.url + reverse("web:cluster", args=[cluster.pk]))

    page.locator("#process").fill("57")
    Cluster.objects.filter(pk=cluster.pk).update(done_count=11)
    page.evaluate(_REFRESH)

    expect(page.locator("#live")).to_contain_text("11 of 60 done")
    assert page.locator("#process").input_value() == "57"
