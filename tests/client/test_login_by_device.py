"""`pilotage login --device`: a real provider, a person's browser, and tokens that are renewed."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from pilotage_client import AsyncClient, Client
from pilotage_client.errors import Busy, LoginEnded, NotAuthenticated, ServerFault
from pilotage_client.profiles import find_profile, renew_profile

from tests.client.conftest import URL, Portal, Ran, run_in_loop
from tests.identity_provider.server import Person, Provider
from wms.core.actors import Actor
from wms.core.identities import unlink_identities
from wms.core.identity_models import Identity
from wms.core.models import ApiToken, User
from wms.core.tokens import revoke_tokens

pytestmark = pytest.mark.django_db
Bare = Callable[..., Ran]


@pytest.fixture
def logged_in(provider: Provider, bare_pilotage: Bare, monkeypatch: Any, capsys: Any) -> Ran:
    """Nora agreed in her browser, while the command waited."""
    provider.person("nora", groups=["/atlas/shift"])
    monkeypatch.setattr("pilotage_client.cli.account.sleep", agreeing("nora", capsys))
    return bare_pilotage("login", URL, "--device")


def agreeing(username: str, capsys: Any, **choice: str) -> Callable[[float], None]:
    """A pause in which the person does in a browser what the command asks for, the second time."""
    pauses: list[float] = []
    told: list[str] = []

    def pause(seconds: float) -> None:
        told.append(capsys.readouterr().err)
        pauses.append(seconds)
        if len(pauses) == 2:
            found = re.search(r"Open (\S+) and enter (\S+)", "".join(told))
            assert found is not None
            agree(username, found[1], found[2], **(choice or {"action": "accept"}))

    return pause


def agree(username: str, address: str, code: str, **choice: str) -> None:
    Person(username).confirm(f"{address}?user_code={code}", user_code=code, **choice)


def test_a_login_makes_a_token_for_an_hour_in_a_file_of_ones_own(
    logged_in: Ran, bare_pilotage: Bare
) -> None:
    assert logged_in.code == 0, logged_in.err
    assert logged_in.out.startswith("nora at ")

    file = Path(os.environ["PILOTAGE_CLIENT_CONFIG"])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    nora = User.objects.get(username="nora")
    row = ApiToken.objects.get(user=nora)
    assert row.expires_at is not None
    assert (row.expires_at - row.created_at).total_seconds() == pytest.approx(3600, abs=5)
    assert row.login is not None
    assert nora.role == "shifter"
    assert bare_pilotage("token", "--json").code == 0
    assert bare_pilotage("logout").code == 0
    assert "refresh" not in file.read_text()


def test_a_token_that_ends_soon_is_renewed_before_it_is_used(
    logged_in: Ran, provider: Provider, portal: Portal
) -> None:
    before = soon()
    provider.person("nora", groups=["/atlas/production"])

    with Client(transport=portal) as client:
        assert client.username() == "nora"
        first = client.profile

    after = find_profile()
    assert after == first
    assert after.login is not None
    assert before.login is not None
    assert after.token != before.token
    assert after.login.refresh_token != before.login.refresh_token
    assert ApiToken.objects.filter(user__username="nora").count() == 1
    assert User.objects.get(username="nora").role == "operator"


def test_a_lost_answer_to_a_renewal_logs_nobody_out(logged_in: Ran, portal: Portal) -> None:
    before = soon()

    def lose(request: httpx.Request) -> None:
        if request.url.path.endswith("/login/"):
            raise httpx.ReadError("cut")

    portal.after = lose
    with Client(transport=portal) as client:
        assert client.username() == "nora"
    assert find_profile().token == before.token

    portal.after = lambda request: None
    with Client(transport=portal) as client:
        assert client.username() == "nora"
    assert find_profile().token != before.token
    assert ApiToken.objects.filter(user__username="nora").count() == 1


def test_who_has_agreed_need_not_agree_again_where_the_portal_and_the_provider_put_off(
    provider: Provider,
    portal: Portal,
    bare_pilotage: Bare,
    monkeypatch: Any,
    capsys: Any,
) -> None:
    provider.person("nora")
    monkeypatch.setattr("pilotage_client.cli.account.sleep", agreeing("nora", capsys))
    real, faults = httpx.Client.post, [httpx.ReadTimeout("cut"), 503]

    def unsteady(self: Any, url: Any, **named: Any) -> httpx.Response:
        if not (str(url).endswith("/token/") and faults):
            return real(self, url, **named)
        fault = faults.pop()
        if isinstance(fault, Exception):
            raise fault
        return httpx.Response(fault, text="no time", request=httpx.Request("POST", url))

    monkeypatch.setattr(httpx.Client, "post", unsteady)
    refusals, cuts = [503, 502], [httpx.ReadError("cut")]

    def put_off(request: httpx.Request) -> httpx.Response | None:
        page = {"Content-Type": "text/html"}
        is_login = request.method == "POST"
        return httpx.Response(refusals.pop(), headers=page) if is_login and refusals else None

    def cut(request: httpx.Request) -> None:
        if request.method == "POST" and cuts:
            raise cuts.pop()

    portal.before, portal.after = put_off, cut

    ran = bare_pilotage("login", URL, "--device")

    assert (ran.code, faults, refusals, cuts) == (0, [], [], [])
    assert portal.sent().count("POST /api/v1/login/") == 4
    assert ApiToken.objects.filter(user__username="nora").count() == 1
    with Client(transport=portal) as client:
        assert client.username() == "nora"


@pytest.mark.parametrize("status", [429, 503])
def test_a_token_that_is_still_good_is_used_while_the_portal_renews_none(
    logged_in: Ran, portal: Portal, status: int
) -> None:
    before = soon()
    kind = {"Content-Type": "application/problem+json"}
    refusal = httpx.Response(status, content=b'{"detail": "later"}', headers=kind)
    portal.before = lambda request: refusal if request.method == "POST" else None

    with Client(transport=portal) as client:
        assert client.username() == "nora"

    assert find_profile().token == before.token
    renew_profile(_with(find_profile(), expires_at=time.time() - 1))
    with pytest.raises((Busy, ServerFault)), Client(transport=portal) as client:
        client.username()


@pytest.mark.django_db(transaction=True)
def test_the_asynchronous_client_renews_as_well(
    provider: Provider, bare_pilotage: Bare, live_server: Any, monkeypatch: Any, capsys: Any
) -> None:
    provider.person("nora")
    monkeypatch.setattr("pilotage_client.cli.account.sleep", agreeing("nora", capsys))
    assert bare_pilotage("login", live_server.url, "--device").code == 0
    before = soon()

    async def ask() -> str:
        async with AsyncClient() as client:
            return await client.username()

    assert run_in_loop(ask()) == "nora"
    assert find_profile().token != before.token


def test_who_was_revoked_or_taken_out_is_not_renewed(
    logged_in: Ran, provider: Provider, portal: Portal, settings: Any
) -> None:
    soon()
    User.objects.filter(username="nora").update(is_active=False)
    with pytest.raises(NotAuthenticated), Client(transport=portal) as client:
        client.username()
    User.objects.filter(username="nora").update(is_active=True)

    rows = ApiToken.objects.filter(user__username="nora").values_list("pk", flat=True)
    revoke_tokens(list(rows), actor=Actor.system("tests"), reason="left")
    soon()
    with pytest.raises(NotAuthenticated) as error, Client(transport=portal) as client:
        client.username()
    assert error.value.code == "token-revoked"

    kept = find_profile()
    assert kept.login is not None
    spoilt = {"refresh_token": "of nobody", "expires_at": 0.0}
    renew_profile(_with(kept, **spoilt))
    with pytest.raises(LoginEnded), Client(transport=portal) as client:
        client.username()


def test_who_says_no_or_waits_too_long_gets_no_token(
    provider: Provider, bare_pilotage: Bare, monkeypatch: Any, capsys: Any
) -> None:
    provider.person("otto")
    pause = agreeing("otto", capsys, action="deny")
    monkeypatch.setattr("pilotage_client.cli.account.sleep", pause)
    assert bare_pilotage("login", URL, "--device").code == 3

    monkeypatch.setattr("pilotage_client.openid._LONGEST_S", 2.0)
    monkeypatch.setattr("pilotage_client.cli.account.sleep", lambda seconds: None)
    assert bare_pilotage("login", URL, "--device").code == 3
    assert bare_pilotage("login", URL, "--provider", "other").code == 2
    assert not ApiToken.objects.filter(user__username="otto").exists()


def test_the_portal_takes_fresh_id_tokens_of_its_own_client_only(
    people: SimpleNamespace, provider: Provider, portal: Portal
) -> None:
    provider.person("nora")

    def told(audience: str, **claims: Any) -> str:
        text = provider.token("nora", audience=audience, changed={"scope": None, **claims})
        answer = portal.ask("POST", "login/", json={"provider": "iam", "id_token": text})
        return str(answer.json().get("type", "")).removeprefix("/problems/").rstrip("/")

    assert portal.ask("GET", "login/").json()["providers"][0]["client_id"] == "client"
    assert told("client") == ""
    assert told("portal") == "token-audience"
    assert told("client", iat=int(time.time()) - 900) == "token-expired"
    assert told("client", azp="portal") == "token-unreadable"
    assert told("client", scope="openid") == "token-unreadable"
    assert told("client", typ="Bearer") == "token-unreadable"
    other = {"provider": "other", "id_token": "x"}
    assert portal.ask("POST", "login/", json=other).status_code == 400


def test_an_id_token_that_is_copied_opens_no_second_login_and_no_account(
    people: SimpleNamespace, provider: Provider, portal: Portal
) -> None:
    provider.person("nora")

    def id_token(number: int) -> str:
        return provider.token("nora", audience="client", changed={"scope": None, "n": number})

    def told(text: str, renews: str = "") -> str:
        body = {"provider": "iam", "id_token": text, "renews": renews}
        answer = portal.ask("POST", "login/", json=body).json()
        return str(answer.get("prefix") or answer["type"])

    first, second = id_token(1), id_token(2)
    prefix = told(first)

    assert [told(second, prefix), told(second, prefix), told(second)] == [prefix] * 3
    # What fills up a signature is of no account to who decodes it.
    assert told(f"{second}==") == prefix
    unlink_identities([Identity.objects.get().pk], actor=Actor.system("tests"), reason="left")
    accounts = User.objects.count()
    assert told(second) == "/problems/token-revoked/"
    assert (User.objects.count(), Identity.objects.count()) == (accounts, 0)


def soon() -> Any:
    """The kept profile, whose token ends in a minute from now on."""
    kept = find_profile()
    found = _with(kept, expires_at=time.time() + 60)
    renew_profile(found)
    return found


def _with(profile: Any, **changed: Any) -> Any:
    return replace(profile, login=replace(profile.login, **changed))
