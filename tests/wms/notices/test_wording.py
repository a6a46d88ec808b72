"""Sentences of notices and of failed deliveries that users read: the only place that pins them."""

from __future__ import annotations

import pytest

from tests.wms.notices import receivers
from wms.notices.webhook_addresses import HostRefused, parsed
from wms.notices.webhooks import SendResult, WebhookCall, post


def _post(url: str) -> SendResult:
    call = WebhookCall(parsed(url, allows_http=True), "secret", "1", "notice", b"{}")
    return post(call, allowed=("127.0.0.1",))


@pytest.mark.parametrize(
    ("status", "error"),
    [(200, ""), (307, "answered 307: redirects are not followed"), (500, "answered 500")],
)
def test_what_the_log_says_of_an_answer(status: int, error: str) -> None:
    with receivers.hook() as hook:
        hook.status = status

        assert _post(hook.url).error == error


def test_what_the_log_says_of_a_closed_port() -> None:
    url = f"http://127.0.0.1:{receivers.unused_port()}/"

    assert _post(url).error == "the connection failed: ConnectionRefusedError"


def test_a_refused_host_tells_what_an_administrator_can_do() -> None:
    assert str(HostRefused("x.example")) == (
        "x.example is not known, or is not at a public address; an administrator may allow it "
        "(PILOTAGE_WEBHOOKS_ALLOWED)"
    )
