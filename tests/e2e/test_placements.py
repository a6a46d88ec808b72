"""The page on which placement requests are submitted, in the browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from django.urls import reverse
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from tests import factories
from tests.e2e.conftest import Complaints
from tests.e2e.page_checks import look, look_narrow
from wms.core.models import User
from wms.placement.models import PlacementRequest

GOOD = '[ dap_type = "stage"; src_url = "http://storage.example.org/x" ]'


def test_faults_are_told_with_their_lines_and_what_was_typed_stays(
    page: Page,
    live_server: LiveServer,
    login: Callable[[User], None],
    complaints: Complaints,
    pictures: Path | None,
) -> None:
    complaints.expected = {400}
    login(factories.people().alice)
    page.goto(live_server.url + reverse("web:placements"))
    page.get_by_role("link", name="Place data").click()
    typed = page.get_by_label("Requests", exact=True)

    typed.fill(f'{GOOD}\n[ dap_type = "fly";\n  src_url = "http://10.0.0.1/x" ]')
    page.get_by_role("button", name="Check and submit").click()
    expect(page.locator("#findings")).to_contain_text("no kind of request")
    assert "fly" in typed.input_value()
    faults = look(page, "submit-placements-faults", pictures=pictures)
    assert faults + look_narrow(page, "submit-placements-faults", pictures=pictures) == []

    typed.fill(GOOD)
    page.get_by_role("button", name="Check and submit").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Placement request")
    assert PlacementRequest.objects.get().kind == "stage"
