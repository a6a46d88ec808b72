"""One call of a webhook: signed, bounded, and not led astray."""

from __future__ import annotations

import hashlib
import hmac
import socket

import pytest

from tests.wms.notices import receivers
from tests.wms.notices.receivers import Hook
from wms.notices import webhooks
from wms.notices.webhook_addresses import parsed
from wms.notices.webhooks import TIMED_OUT, WebhookCall, post

ALLOWED = ("127.0.0.1",)


def call(url: str) -> WebhookCall:
    return WebhookCall(parsed(url, allows_http=True), "plw_secret", "id-1", "notice", b'{"a": 1}')


def test_a_call_is_signed_over_time_and_body(hook: Hook) -> None:
    before = receivers.now_s()

    outcome = post(call(hook.url), allowed=ALLOWED)

    assert outcome.is_accepted
    [request] = hook.received
    stamp = request.headers["Pilotage-Timestamp"]
    expected = hmac.new(b"plw_secret", stamp.encode() + b"." + request.body, hashlib.sha256)
    assert request.headers["Pilotage-Signature"] == f"v1={expected.hexdigest()}"
    assert before <= int(stamp) <= receivers.now_s()
    assert request.body == b'{"a": 1}'
    assert request.headers["Content-Type"] == "application/json"


def test_redirects_are_not_followed(hook: Hook) -> None:
    with receivers.hook() as inside:
        hook.status, hook.headers = 307, {"Location": inside.url}

        outcome = post(call(hook.url), allowed=ALLOWED)

        assert "307" in outcome.error
        assert inside.received == []


@pytest.mark.parametrize("status", [400, 404, 410, 429, 500, 503])
def test_any_other_answer_is_a_failure(hook: Hook, status: int) -> None:
    hook.status = status

    assert post(call(hook.url), allowed=ALLOWED).error == f"answered {status}"


def test_addresses_inside_are_not_called(hook: Hook) -> None:
    outcome = post(call(hook.url))

    assert "127.0.0.1" in outcome.error
    assert hook.received == []


def test_the_address_that_was_checked_is_called_whatever_the_name_says_later(
    hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name server that answers otherwise the second time leads nowhere."""
    port = parsed(hook.url, allows_http=True).port
    asked = []
    real = socket.getaddrinfo

    def resolve(host: str, *rest: object, **options: object) -> object:
        if host != "hooks.example.org":
            return real(host, *rest, **options)  # type: ignore[arg-type]
        asked.append(host)
        address = "127.0.0.1" if len(asked) == 1 else "127.0.0.66"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    outcome = post(call(f"http://hooks.example.org:{port}/"), allowed=ALLOWED)

    assert outcome.is_accepted
    assert asked == ["hooks.example.org"]
    assert hook.received[0].headers["Host"] == f"hooks.example.org:{port}"


def test_an_answer_without_end_is_not_read(hook: Hook) -> None:
    hook.status, hook.answer_bytes = 200, 1024**3

    assert post(call(hook.url), allowed=ALLOWED).is_accepted


def test_an_answer_that_trickles_is_cut_off(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "CALL_S", 0.5)
    hook.trickles = True

    assert post(call(hook.url), allowed=ALLOWED).error == TIMED_OUT


def test_who_does_not_answer_is_given_little_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "STEP_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]

        outcome = post(call(f"http://127.0.0.1:{port}/"), allowed=ALLOWED)

    assert outcome.error == TIMED_OUT


def test_a_closed_port_and_an_unknown_name_are_told() -> None:
    closed = f"http://127.0.0.1:{receivers.unused_port()}/"

    assert post(call(closed), allowed=ALLOWED).error.endswith("ConnectionRefusedError")
    unknown = post(call("http://nowhere.invalid/")).error

    assert unknown.startswith("nowhere.invalid ")


def test_a_certificate_that_nobody_vouches_for_is_refused(hook: Hook) -> None:
    outcome = post(call(hook.url.replace("http:", "https:")), allowed=ALLOWED)

    assert "SSL" in outcome.error
    assert hook.received == []
