"""Accounts, tokens and the audit trail in the administration."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests import factories
from tests.portal.admin.conftest import AsPerson
from wms.core.actors import Actor
from wms.core.errors import NotAuthenticated
from wms.core.identities import link_identity
from wms.core.models import ApiToken, AuditEntry, Role, User
from wms.core.tokens import authenticate_token

ADD_USER = "/admin/core/user/add/"
USER = {
    "username": "dora",
    "first_name": "",
    "last_name": "",
    "email": "",
    "role": "user",
    "is_active": "on",
    "new_password": "a long enough secret",
}
ADD_TOKEN = "/admin/core/apitoken/add/"


def _errors(answer: HttpResponse) -> dict[str, list[str]]:
    assert answer.status_code == 200
    return {name: list(errors) for name, errors in answer.context["adminform"].form.errors.items()}


def _change(user: User) -> str:
    return f"/admin/core/user/{user.pk}/change/"


def test_an_account_is_made_and_audited(ada: Client) -> None:
    answer = ada.post(ADD_USER, USER)

    assert answer.status_code == 302, _errors(answer)
    dora = User.objects.get(username="dora")
    assert dora.check_password(USER["new_password"])
    assert Client().login(username="dora", password=USER["new_password"])
    entry = AuditEntry.objects.get(action="create account", target="user dora", actor="ada")
    assert entry.facts["password"] == "set"
    assert USER["new_password"] not in str(entry.facts)


@pytest.mark.parametrize("password", ["", "short", "dora", "password123"])
def test_a_bad_password_is_refused(ada: Client, password: str) -> None:
    errors = _errors(ada.post(ADD_USER, USER | {"new_password": password}))

    assert list(errors) == ["new_password"]
    assert not User.objects.filter(username="dora").exists()


def test_a_new_account_is_not_told_to_keep_a_password(ada: Client, people: SimpleNamespace) -> None:
    forms = [
        ada.get(address).context["adminform"].form.fields["new_password"]
        for address in (ADD_USER, reverse("admin:core_user_change", args=[people.bob.pk]))
    ]

    assert [each.required for each in forms] == [True, False]
    assert forms[0].help_text != forms[1].help_text


def test_a_role_is_changed_and_the_password_kept(ada: Client, people: SimpleNamespace) -> None:
    body = USER | {"username": "bob", "role": "shifter", "new_password": ""}

    answer = ada.post(_change(people.bob), body)

    assert answer.status_code == 302, _errors(answer)
    people.bob.refresh_from_db()
    assert people.bob.role == Role.SHIFTER
    assert people.bob.check_password(factories.PASSWORD)
    entry = AuditEntry.objects.get(action="change account", target="user bob")
    assert entry.facts == {"role": ["user", "shifter"]}


def test_the_last_administrator_stays_one(ada: Client, people: SimpleNamespace) -> None:
    body = USER | {"username": "ada", "role": "user", "new_password": ""}

    errors = _errors(ada.post(_change(people.ada), body))

    assert "last administrator" in errors["__all__"][0]
    people.ada.refresh_from_db()
    assert people.ada.role == Role.ADMIN


def test_an_operator_manages_no_accounts(olga: Client, people: SimpleNamespace) -> None:
    assert olga.get("/admin/core/user/").status_code == 403
    assert olga.post(_change(people.olga), USER | {"role": "admin"}).status_code == 403
    assert "Users" not in olga.get("/admin/").content.decode()


def test_ones_own_password_is_changed_and_audited(olga: Client, people: SimpleNamespace) -> None:
    body = {
        "old_password": factories.PASSWORD,
        "new_password1": "another long secret",
        "new_password2": "another long secret",
    }

    answer = olga.post("/admin/password_change/", body)

    assert answer.status_code == 302
    people.olga.refresh_from_db()
    assert people.olga.check_password("another long secret")
    assert AuditEntry.objects.filter(action="change password", actor="olga").count() == 1
    assert olga.get("/admin/").status_code == 200


def _token_in(page: str) -> str:
    found = re.search(r'<code id="token">(plt_\w+?_[\w-]+)</code>', page)
    assert found is not None, page
    return found.group(1)


def test_a_token_is_shown_once(olga: Client, people: SimpleNamespace) -> None:
    answer = olga.post(ADD_TOKEN, {"user": people.olga.pk, "name": "laptop", "scopes": ["read"]})

    text = _token_in(answer.content.decode())
    assert "no-store" in answer["Cache-Control"]
    assert authenticate_token(text, now=timezone.now()) == people.olga
    secret = text.split("_", 2)[2]
    token = ApiToken.objects.get(name="laptop")
    for address in ("/admin/core/apitoken/", f"/admin/core/apitoken/{token.pk}/change/"):
        page = olga.get(address).content.decode()
        assert token.prefix in page or "laptop" in page
        assert secret not in page
        assert token.secret_sha256 not in page


def test_an_operator_makes_tokens_for_oneself_only(olga: Client, people: SimpleNamespace) -> None:
    errors = _errors(
        olga.post(ADD_TOKEN, {"user": people.alice.pk, "name": "x", "scopes": ["read"]})
    )

    assert list(errors) == ["user"]
    assert not ApiToken.objects.exists()


def test_an_administrator_makes_tokens_for_others(ada: Client, people: SimpleNamespace) -> None:
    answer = ada.post(
        ADD_TOKEN, {"user": people.alice.pk, "name": "robot", "scopes": ["read", "submit"]}
    )

    text = _token_in(answer.content.decode())
    assert authenticate_token(text, now=timezone.now()) == people.alice
    assert AuditEntry.objects.get(action="create token").actor == "ada"
    assert ApiToken.objects.get().scopes == ["read", "submit"]


def test_a_token_is_revoked(olga: Client, people: SimpleNamespace) -> None:
    text = factories.token_for(people.olga)
    token = ApiToken.objects.get()

    chosen = {"action": "revoke", "_selected_action": [token.pk]}
    asked = olga.post("/admin/core/apitoken/", chosen)
    assert authenticate_token(text, now=timezone.now()) == people.olga
    assert token.prefix in asked.content.decode()

    olga.post("/admin/core/apitoken/", {**chosen, "reason": ""})

    with pytest.raises(NotAuthenticated):
        authenticate_token(text, now=timezone.now())
    assert (
        AuditEntry.objects.get(action="revoke token").target == f"user olga, token {token.prefix}"
    )


def test_an_administrator_revokes_tokens_of_others_with_a_reason(
    ada: Client, people: SimpleNamespace
) -> None:
    factories.token_for(people.olga)
    token = ApiToken.objects.get()
    chosen = {"action": "revoke", "_selected_action": [token.pk]}

    refused = ada.post("/admin/core/apitoken/", {**chosen, "reason": " "})
    assert refused.status_code == 400
    token.refresh_from_db()
    assert token.revoked_at is None

    assert ada.post("/admin/core/apitoken/", {**chosen, "reason": "leaked"}).status_code == 302
    entry = AuditEntry.objects.get(action="revoke token")
    assert (entry.actor, entry.reason, entry.object_key) == ("ada", "leaked", "olga")


def test_a_service_account_is_made_and_changed_by_administrators(
    ada: Client, people: SimpleNamespace
) -> None:
    group = factories.accounting(people.alice)
    form = {"username": "robot", "role": "user", "is_active": "on"}
    made = ada.post("/admin/core/serviceaccount/add/", {**form, "member_of": [group.pk]})
    assert made.status_code == 302, made.content
    robot = User.objects.get(username="robot")
    change = f"/admin/core/serviceaccount/{robot.pk}/change/"

    assert (robot.is_service, robot.has_usable_password()) == (True, False)
    assert list(robot.accounting_groups.all()) == [group]
    assert ada.post(change, form).status_code == 302
    assert not robot.accounting_groups.exists()
    assert "role" in _errors(ada.post(change, {**form, "role": "admin"}))
    assert ada.get(f"/admin/core/user/{robot.pk}/change/").status_code == 404
    entries = AuditEntry.objects.filter(target="user robot").order_by("pk")
    assert [each.facts["groups"] for each in entries] == [[[], ["physics"]], [["physics"], []]]


def test_the_tokens_of_others_are_not_seen(olga: Client, people: SimpleNamespace) -> None:
    text = factories.token_for(people.alice)
    token = ApiToken.objects.get()

    page = olga.get("/admin/core/apitoken/").content.decode()
    olga.post("/admin/core/apitoken/", {"action": "revoke", "_selected_action": [token.pk]})

    assert token.prefix not in page
    assert authenticate_token(text, now=timezone.now()) == people.alice


def test_the_audit_trail_is_read_only(ada: Client, people: SimpleNamespace) -> None:
    entry = AuditEntry.objects.latest("pk")

    page = ada.get(f"/admin/core/auditentry/{entry.pk}/change/")

    assert page.status_code == 200
    assert 'name="_save"' not in page.content.decode()
    answer = ada.post(f"/admin/core/auditentry/{entry.pk}/change/", {"actor": "nobody"})
    assert answer.status_code == 403
    assert AuditEntry.objects.get(pk=entry.pk).actor == entry.actor


@pytest.mark.parametrize("name", ["vera", "alice", "sam"])
def test_who_lacks_the_role_is_told_so(as_person: AsPerson, name: str) -> None:
    answer = as_person(name).get("/admin/sites/site/", follow=True)

    assert answer.status_code == 403
    assert answer.redirect_chain[-1][0].startswith("/admin/login/")


def test_an_identity_is_linked_and_unlinked_with_a_reason(
    ada: Client, people: SimpleNamespace
) -> None:
    add = "/admin/core/identity/add/"
    body = {
        "user": people.alice.pk, "issuer": "https://iam.example.org/", "subject": "7b2e",
        "reason": "asked by mail",
    }  # fmt: skip

    assert list(_errors(ada.post(add, body | {"reason": ""}))) == ["reason"]
    assert list(_errors(ada.post(add, body | {"issuer": "iam"}))) == ["issuer"]
    assert ada.post(add, body).status_code == 302
    row = people.alice.identities.get()
    assert row.linked_by == "ada"
    assert list(_errors(ada.post(add, body | {"user": people.bob.pk}))) == ["__all__"]
    page = f"/admin/core/identity/{row.pk}/"
    assert ada.post(f"{page}change/", body | {"subject": "other"}).status_code == 403
    assert ada.post(f"{page}delete/", {"post": "yes"}).status_code == 400
    assert ada.post(f"{page}delete/", {"post": "yes", "reason": "left"}).status_code == 302
    trail = AuditEntry.objects.filter(target="user alice", actor="ada")
    told = [("link identity", "asked by mail"), ("unlink identity", "left")]
    assert list(trail.order_by("pk").values_list("action", "reason")) == told
    assert not people.alice.identities.exists()


def test_the_page_of_an_account_tells_its_identities(ada: Client, people: SimpleNamespace) -> None:
    link_identity(
        people.alice, "https://iam.example.org/", "<7b2e>", actor=Actor.system("tests"), reason="x"
    )

    page = ada.get(f"/admin/core/user/{people.alice.pk}/change/").content.decode()

    assert "&lt;7b2e&gt; at https://iam.example.org/, linked " in page
