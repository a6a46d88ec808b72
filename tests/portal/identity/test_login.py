"""People log in by a real provider: the whole way to it and back."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
import time_machine
from django.test import Client

from portal.config.identity_providers import oidc_providers
from tests import factories
from tests.identity_provider.fixtures import PORTAL, described
from tests.identity_provider.server import Person, Provider
from wms.accounting.models import AccountingGroup
from wms.core.identity_models import Identity
from wms.core.models import AuditEntry, Role, User

pytestmark = pytest.mark.django_db
BEGIN = "/login/openid/iam/"


def come_back(browser: Client, username: str, next_path: str = "", **choice: str) -> str:
    """The address to which the provider sends a person back, with what was agreed."""
    begun = browser.get(BEGIN, {"next": next_path} if next_path else {})
    assert begun.status_code == 302
    return Person(username).agree(begun["Location"], **(choice or {"allow": "Authorize"}))


def log_in(browser: Client, username: str, next_path: str = "", **choice: str) -> Any:
    address = come_back(browser, username, next_path, **choice)
    assert address.startswith(PORTAL)
    return browser.get(address.removeprefix(PORTAL))


def test_the_first_login_makes_an_account_with_the_rights_of_the_claims(
    client: Client, provider: Provider
) -> None:
    AccountingGroup.objects.create(name="atlas")
    subject = provider.person(
        "nora", groups=["/atlas", "/atlas/shift"], first_name="Nora", email="nora@example.org"
    )
    client.get("/login/")
    client.session.save()
    before = client.session.session_key

    answer = log_in(client, "nora", "/jobs/")

    assert (answer.status_code, answer["Location"]) == (302, "/jobs/")
    nora = User.objects.get(username="nora")
    assert (nora.role, nora.first_name, nora.email) == (Role.SHIFTER, "Nora", "nora@example.org")
    assert not nora.has_usable_password()
    assert list(nora.accounting_groups.values_list("name", flat=True)) == ["atlas"]
    assert Identity.objects.get(user=nora).subject == subject
    assert client.session.session_key != before
    assert client.get("/jobs/").status_code == 200
    left = client.post("/logout/")
    assert left["Location"] == "/login/?left=iam"
    assert 'href="/login/openid/iam/logout/"' in client.get(left["Location"]).content.decode()
    there = client.get("/login/openid/iam/logout/")["Location"]
    assert there.startswith(f"{provider.issuer}/logout/?client_id=portal&")
    assert client.get("/jobs/").status_code == 302


def test_each_login_sets_role_and_groups_anew_and_leaves_others_alone(
    client: Client, provider: Provider
) -> None:
    AccountingGroup.objects.create(name="atlas")
    local = AccountingGroup.objects.create(name="local")
    provider.person("otto", groups=["/atlas", "/atlas/production"])
    log_in(client, "otto")
    otto = User.objects.get(username="otto")
    otto.accounting_groups.add(local)
    assert otto.role == Role.OPERATOR

    provider.person("otto", groups=[])
    log_in(Client(), "otto")

    otto.refresh_from_db()
    assert otto.role == Role.VIEWER
    assert not otto.is_staff
    assert list(otto.accounting_groups.all()) == [local]
    entry = AuditEntry.objects.filter(action="change account", target="user otto").latest("pk")
    assert entry.facts["role"] == ["operator", "viewer"]
    assert entry.facts["groups"] == [["atlas", "local"], ["local"]]


def test_a_name_or_an_address_of_somebody_else_does_not_open_the_account(
    client: Client, provider: Provider
) -> None:
    ours = factories.person("paula")
    User.objects.filter(pk=ours.pk).update(email="paula@example.org")
    provider.person("paula", email="paula@example.org")

    log_in(client, "paula")

    assert User.objects.filter(username="paula-2").exists()
    assert not Identity.objects.filter(user=ours).exists()


def test_an_address_opens_the_account_where_the_operator_says_so(
    client: Client, provider: Provider, settings: Any
) -> None:
    settings.OIDC_PROVIDERS = oidc_providers(
        json.dumps({"iam": described(provider, link_by_email=True, roles={})})
    )
    ours = factories.person("rosa")
    User.objects.filter(pk=ours.pk).update(email="rosa@example.org")
    provider.person("rosa-of-iam", email="Rosa@example.org")

    log_in(client, "rosa-of-iam")

    assert Identity.objects.get(user=ours).issuer == provider.issuer


def test_who_lacks_the_required_claim_is_not_let_in(
    client: Client, provider: Provider, settings: Any
) -> None:
    settings.OIDC_PROVIDERS = oidc_providers(
        json.dumps({"iam": described(provider, required=["/cms"])})
    )
    provider.person("stig", groups=["/atlas"])

    assert log_in(client, "stig").status_code == 403
    assert not User.objects.filter(username="stig").exists()


def test_who_says_no_at_the_provider_is_told_so(client: Client, provider: Provider) -> None:
    provider.person("tove")

    assert log_in(client, "tove", allow="").status_code == 403
    assert "_auth_user_id" not in client.session


def test_an_account_that_is_off_stays_off(client: Client, provider: Provider) -> None:
    provider.person("ugo")
    log_in(Client(), "ugo")
    User.objects.filter(username="ugo").update(is_active=False)

    assert log_in(client, "ugo").status_code == 401


def test_what_another_browser_began_is_not_ended_in_this_one(
    client: Client, provider: Provider
) -> None:
    provider.person("vito")
    address = come_back(client, "vito").removeprefix(PORTAL)

    assert Client().get(address).status_code == 400
    assert client.get(address).status_code == 302
    assert client.get(address).status_code == 400


def test_a_code_of_another_login_is_refused(client: Client, provider: Provider) -> None:
    provider.person("wanda")
    mine, other = Client(), come_back(client, "wanda")
    own = parse_qs(urlsplit(mine.get(BEGIN)["Location"]).query)["state"][0]
    code = parse_qs(urlsplit(other).query)["code"][0]

    answer = mine.get(f"{BEGIN}callback/", {"code": code, "state": own})

    assert answer.status_code == 400
    assert "_auth_user_id" not in mine.session


@pytest.mark.parametrize("elsewhere", ["https://evil.example.org/", "//evil.example.org"])
def test_nobody_is_sent_to_another_site(client: Client, provider: Provider, elsewhere: str) -> None:
    provider.person("xara")

    assert log_in(client, "xara", elsewhere)["Location"] == "/"


def test_clocks_that_differ_are_told_with_both_times(client: Client, provider: Provider) -> None:
    provider.person("yves")
    real = datetime.now(UTC)

    with time_machine.travel(real - timedelta(hours=1)):
        early = log_in(Client(), "yves")
    with time_machine.travel(real + timedelta(days=2)):
        late = log_in(client, "yves")

    assert [early.status_code, late.status_code] == [401, 401]
    assert f"{real:%Y-%m-%d}" in early.content.decode()
    assert not User.objects.filter(username="yves").exists()


def test_a_provider_that_is_away_is_told_of(
    client: Client, provider: Provider, settings: Any
) -> None:
    away = json.dumps({"iam": {**described(provider), "issuer": "http://127.0.0.1:9/o"}})
    settings.OIDC_PROVIDERS = oidc_providers(away)

    assert client.get(BEGIN).status_code == 503
    assert client.get("/login/openid/other/").status_code == 404


def test_the_browser_is_sent_with_the_public_address_pkce_and_a_nonce(
    client: Client, provider: Provider
) -> None:
    sent = client.get(BEGIN, headers={"Host": "127.0.0.1"})["Location"]

    asked = parse_qs(urlsplit(sent).query)
    assert asked["redirect_uri"] == [f"{PORTAL}/login/openid/iam/callback/"]
    assert asked["code_challenge_method"] == ["S256"]
    assert asked["nonce"]
    assert "portal-secret" not in sent + urlencode(asked, doseq=True)


def test_the_login_page_leads_to_the_provider_and_on(client: Client, provider: Provider) -> None:
    page = client.get("/login/", {"next": "/jobs/?state=failed"}).content.decode()

    assert 'href="/login/openid/iam/?next=/jobs/%3Fstate%3Dfailed"' in page
    assert AccountingGroup.objects.count() == 0
