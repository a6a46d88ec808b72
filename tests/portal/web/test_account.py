"""Account page and list of notices."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.conf import settings
from django.test import Client, override_settings
from django.urls import reverse
from django.utils import timezone

from portal.personal.services import save_filter
from tests import factories
from tests.portal.furnishing import schedules
from tests.portal.web.markup import text_of
from tests.wms.notices.hearing import happens, hears, told
from wms.accounting.frontends import DEFAULT_KEY
from wms.accounting.models import AccountingGroup, Quota
from wms.accounting.services import save_quota
from wms.core.actors import Actor
from wms.core.models import ApiToken, AuditEntry, Scope, User
from wms.core.tokens import authenticate_token, create_token
from wms.failures import grouping
from wms.failures.models import FailureGroup
from wms.jobs.content.blobs import store_bytes
from wms.jobs.operations import create_workspace
from wms.notices import services
from wms.notices.messages import path_of
from wms.notices.models import Channel, Delivery, Notice, SubjectKind, Subscription
from wms.pilots.lifecycle import apply as apply_to_pilots
from wms.schedules.models import Schedule

# Wrong passwords are counted there.
pytestmark = pytest.mark.usefixtures("own_cache")

ACCOUNT = "/account/"
HOOK = "https://hooks.example.org/in?key=hidden"
BrowserOf = Callable[[User], Client]


def _text(answer) -> str:  # type: ignore[no-untyped-def]
    return str(answer.content.decode())


def _audited(action: str) -> list[AuditEntry]:
    return list(AuditEntry.objects.filter(action=action))


@pytest.mark.parametrize(
    "tab",
    ["overview", "quotas", "notifications", "tokens", "identities", "preferences", "password"],
)
def test_every_tab_is_there_for_every_role(
    people: SimpleNamespace, browser_of: BrowserOf, tab: str
) -> None:
    for user in (people.vera, people.olga):
        answer = browser_of(user).get(ACCOUNT, {"tab": tab})

        assert answer.status_code == 200
        assert user.username in _text(answer)


def test_a_tab_that_is_none_is_not_found(alice: Client) -> None:
    assert alice.get(ACCOUNT, {"tab": "secrets"}).status_code == 404


def test_the_account_tells_what_the_role_may_do_and_what_was_done(
    people: SimpleNamespace, alice: Client
) -> None:
    factories.dag(people.alice)

    text = _text(alice.get(ACCOUNT))

    assert text.count(">you may<") == 2
    assert "/audit/?actor=alice" in text
    assert "submit" in _text(alice.get("/audit/?actor=alice"))
    assert "submit" in text


def test_a_token_is_shown_once_and_works(people: SimpleNamespace, alice: Client) -> None:
    answer = alice.post(f"{ACCOUNT}tokens/", {"name": "nightly", "days": "30"})

    issued = answer.context["issued"]
    assert issued.text in _text(answer)
    assert authenticate_token(issued.text, now=timezone.now()) == people.alice
    remaining = issued.row.expires_at - timezone.now()
    assert timedelta(days=29) < remaining <= timedelta(days=30)
    assert issued.text not in _text(alice.get(ACCOUNT, {"tab": "tokens"}))
    [entry] = _audited("create token")
    assert issued.text not in str(entry.facts)


@pytest.mark.parametrize("body", [{"name": ""}, {"name": "x" * 101}, {"name": "x", "days": "-1"}])
def test_a_bad_token_form_is_shown_with_its_fault(alice: Client, body: dict[str, str]) -> None:
    answer = alice.post(f"{ACCOUNT}tokens/", body)

    assert answer.status_code == 400
    assert 'class="fault"' in _text(answer)
    assert not ApiToken.objects.exists()


def test_a_token_is_revoked_by_its_owner_and_hidden_from_others(
    people: SimpleNamespace, alice: Client, browser_of: BrowserOf
) -> None:
    text = create_token(people.alice, name="nightly", actor=Actor.person(people.alice))
    token = ApiToken.objects.get()
    address = f"{ACCOUNT}tokens/{token.pk}/revoke/"

    assert browser_of(people.bob).post(address).status_code == 404
    assert browser_of(people.ada).post(address).status_code == 404
    assert authenticate_token(text, now=timezone.now()) == people.alice
    assert alice.post(address).status_code == 302
    assert alice.post(address).status_code == 409
    token.refresh_from_db()
    assert token.revoked_at is not None
    assert len(_audited("revoke token")) == 1


def test_a_list_opens_with_the_filter_that_was_chosen(
    people: SimpleNamespace, alice: Client
) -> None:
    saved = save_filter(
        "jobs", name="mine", parameters={"state": ["failed"]}, actor=Actor.person(people.alice)
    )

    answer = alice.post(f"{ACCOUNT}start-filters/", {"list": "jobs", "filter": str(saved.pk)})

    assert answer.status_code == 302
    text = _text(alice.get(ACCOUNT, {"tab": "preferences"}))
    assert f'<option value="{saved.pk}" selected>mine' in text
    assert (
        alice.post(f"{ACCOUNT}start-filters/", {"list": "jobs", "filter": "x"}).status_code == 404
    )
    alice.post(f"{ACCOUNT}start-filters/", {"list": "jobs", "filter": ""})
    assert "selected>mine" not in _text(alice.get(ACCOUNT, {"tab": "preferences"}))


def test_a_rule_is_switched_on_and_off_with_one_entry_each(
    people: SimpleNamespace, alice: Client
) -> None:
    alice.post(f"{ACCOUNT}subscriptions/", {"rule": "my-dags-failed"})
    alice.post(f"{ACCOUNT}subscriptions/", {"rule": "my-dags-failed"})

    known = Subscription.objects.get(user=people.alice)
    alice.post(f"{ACCOUNT}subscriptions/{known.pk}/remove/")

    assert not Subscription.objects.exists()
    assert [len(_audited(each)) for each in ("subscribe", "unsubscribe")] == [1, 1]


def test_a_site_that_is_not_there_is_told_at_the_field(alice: Client) -> None:
    answer = alice.post(f"{ACCOUNT}subscriptions/", {"rule": "site", "site": "Atlantis"})

    assert answer.status_code == 404
    assert "Atlantis" in text_of(answer.content.decode(), "fault-site")


def test_loops_are_told_to_operators_only(
    people: SimpleNamespace, alice: Client, browser_of: BrowserOf
) -> None:
    assert alice.post(f"{ACCOUNT}subscriptions/", {"rule": "loops"}).status_code == 403
    assert "on-loops" not in _text(alice.get(ACCOUNT, {"tab": "notifications"}))
    olga = browser_of(people.olga)
    assert "on-loops" in _text(olga.get(ACCOUNT, {"tab": "notifications"}))
    assert olga.post(f"{ACCOUNT}subscriptions/", {"rule": "loops"}).status_code == 302


def test_the_secret_of_a_webhook_is_shown_once(people: SimpleNamespace, alice: Client) -> None:
    answer = alice.post(f"{ACCOUNT}channels/", {"kind": "webhook", "url": HOOK, "pace": "hourly"})

    secret = answer.context["made"].secret
    assert secret in _text(answer)
    page = _text(alice.get(ACCOUNT, {"tab": "notifications"}))
    assert secret not in page
    assert "https://hooks.example.org/in?key=hidden" in page, "its owner may see the address"
    [entry] = _audited("add channel")
    assert entry.facts == {"kind": "webhook", "host": "hooks.example.org"}


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("http://hooks.example.org/", "must begin with https://"),
        ("https://me:secret@hooks.example.org/", "must not contain a user"),
        ("", "must begin with https://"),
    ],
)
def test_a_bad_webhook_is_told_at_the_field(alice: Client, url: str, fault: str) -> None:
    answer = alice.post(f"{ACCOUNT}channels/", {"kind": "webhook", "url": url, "pace": "now"})

    assert answer.status_code == 400
    assert fault in _text(answer)
    assert not Channel.objects.exists()


def test_without_a_mail_server_the_page_says_so(alice: Client) -> None:
    assert 'id="no-email"' in _text(alice.get(ACCOUNT, {"tab": "notifications"}))
    answer = alice.post(f"{ACCOUNT}channels/", {"kind": "email", "pace": "now"})
    assert answer.status_code == 409


def test_mail_goes_to_the_address_of_the_account_only(
    people: SimpleNamespace, alice: Client
) -> None:
    notices = settings.PILOTAGE["NOTICES"] | {"EMAIL_FROM": "pilotage@example.org"}
    with override_settings(PILOTAGE=settings.PILOTAGE | {"NOTICES": notices}):
        page = {"tab": "notifications"}
        assert 'id="no-address"' in _text(alice.get(ACCOUNT, page))
        assert (
            alice.post(f"{ACCOUNT}channels/", {"kind": "email", "pace": "now"}).status_code == 409
        )
        User.objects.filter(pk=people.alice.pk).update(email="alice@example.org")
        answer = alice.post(
            f"{ACCOUNT}channels/", {"kind": "email", "pace": "now", "url": "eve@example.org"}
        )

        assert answer.status_code == 302
        assert "alice@example.org" in _text(alice.get(ACCOUNT, page))
        assert Channel.objects.get().url == ""


def _channel(user: User, url: str = HOOK) -> Channel:
    return services.add_channel("webhook", url=url, actor=Actor.person(user)).row


def test_channels_and_subscriptions_of_others_are_not_found(
    people: SimpleNamespace, alice: Client, browser_of: BrowserOf
) -> None:
    row, known = _channel(people.alice), hears(people.alice, "site")

    for user in (people.bob, people.olga, people.ada):
        other = browser_of(user)
        for action in ("change", "test", "renew", "remove"):
            answer = other.post(f"{ACCOUNT}channels/{row.pk}/", {"action": action})
            assert answer.status_code == 404
        assert other.post(f"{ACCOUNT}subscriptions/{known.pk}/remove/").status_code == 404
    assert Channel.objects.get().secret_check == row.secret_check
    assert Subscription.objects.filter(pk=known.pk).exists()


def test_a_channel_is_changed_tested_renewed_and_removed(
    people: SimpleNamespace, alice: Client
) -> None:
    row = _channel(people.alice)
    address = f"{ACCOUNT}channels/{row.pk}/"

    alice.post(address, {"action": "change", "pace": "daily"})
    first = alice.post(address, {"action": "test"}).status_code
    again = alice.post(address, {"action": "test"})
    renewed = alice.post(address, {"action": "renew"})
    off = alice.post(address, {"action": "change", "is_enabled": "false"})
    refused = alice.post(address, {"action": "test"})

    changed = Channel.objects.get()
    assert (changed.pace, changed.is_enabled) == ("daily", False)
    assert changed.off_reason
    assert (first, again.status_code, off.status_code) == (302, 429, 302)
    assert renewed.context["made"].secret in _text(renewed)
    assert changed.secret_check != row.secret_check
    assert refused.status_code == 409
    assert Delivery.objects.get().state == "dropped"
    alice.post(address, {"action": "remove"})
    assert not Channel.objects.exists()
    assert len(_audited("change channel")) == 2
    assert len(_audited("remove channel")) == 1


def test_the_log_of_deliveries_tells_what_went_wrong(
    people: SimpleNamespace, alice: Client
) -> None:
    Delivery.objects.create(
        channel=_channel(people.alice), is_test=True, state="given-up", attempts=1,
        next_at=timezone.now(), created_at=timezone.now(), last_error="answered 403",
    )  # fmt: skip

    page = _text(alice.get(ACCOUNT, {"tab": "notifications"}))

    assert "answered 403" in page
    assert "given up" in page


def test_one_click_on_a_dag_tells_and_another_one_stops(
    people: SimpleNamespace, browser_of: BrowserOf
) -> None:
    dag, vera = factories.dag(people.alice), browser_of(people.vera)

    vera.post(f"/dags/{dag.pk}/tell/", {"tell": "yes"})
    page = _text(vera.get(f"/dags/{dag.pk}/"))
    subscribed = Subscription.objects.filter(user=people.vera, dag=dag).count()
    vera.post(f"/dags/{dag.pk}/tell/", {"tell": "no"})

    assert subscribed == 1
    assert 'name="tell" value="no"' in page
    assert not Subscription.objects.exists()
    assert 'name="tell" value="yes"' in _text(vera.get(f"/dags/{dag.pk}/"))
    assert vera.post("/dags/99999999/tell/").status_code == 404


def test_notices_are_listed_counted_and_marked(people: SimpleNamespace, alice: Client) -> None:
    hears(people.alice, "my-dags-failed")
    dags = [factories.dag(people.alice, name=f"d{number}.dag") for number in range(3)]
    happens("fail", *dags, reason="disk <full>")
    told(people.alice)

    page = _text(alice.get("/notices/"))
    first = Notice.objects.order_by("pk")[0]
    alice.post("/notices/read/", {"notice": str(first.pk)})

    assert f'<a id="notice-link-{first.pk}" href="/dags/{dags[0].pk}/">' in page
    assert "disk &lt;full&gt;" in page
    assert "Notices: 3 unread" in page
    assert "Notices: 2 unread" in _text(alice.get("/notices/bell/"))
    assert f"notice-link-{first.pk}" not in _text(alice.get("/notices/?unread"))
    alice.post("/notices/read/", {"all": "yes"})
    assert "unread" not in _text(alice.get("/notices/bell/"))


def test_nobody_reads_or_marks_the_notices_of_others(
    people: SimpleNamespace, browser_of: BrowserOf
) -> None:
    hears(people.alice, "my-dags-failed")
    happens("fail", factories.dag(people.alice))
    told(people.alice)
    notice, bob = Notice.objects.get(), browser_of(people.bob)

    assert 'id="notice-' not in _text(bob.get("/notices/"))
    bob.post("/notices/read/", {"notice": str(notice.pk)})
    bob.post("/notices/read/", {"all": "yes"})
    assert Notice.objects.get().read_at is None


@pytest.mark.parametrize("word", ["x", "-1", "9" * 40])
def test_marking_what_is_no_number_is_refused(alice: Client, word: str) -> None:
    assert alice.post("/notices/read/", {"notice": word}).status_code == 400


def test_an_empty_list_says_what_to_do_next(alice: Client) -> None:
    assert f'href="{ACCOUNT}?tab=notifications"' in _text(alice.get("/notices/"))


@pytest.mark.slow
def test_paths_of_all_kinds_of_notices_lead_somewhere(
    people: SimpleNamespace, alice: Client
) -> None:
    site, dag = factories.site(), factories.dag(people.alice)
    apply_to_pilots("abort", [factories.queued_pilot().pk], actor=factories.SYSTEM, reason="lost")
    grouping.run_cycle(timezone.now())
    schedules(people.alice, dag, 1)
    ids = {
        SubjectKind.DAG: dag.pk,
        SubjectKind.SITE: site.name,
        SubjectKind.FRONTEND: DEFAULT_KEY,
        SubjectKind.FAILURES: FailureGroup.objects.get().pk,
        SubjectKind.JOB: factories.job(people.alice).pk,
        SubjectKind.SCHEDULE: Schedule.objects.latest("pk").pk,
    }

    for kind in SubjectKind:
        assert alice.get(path_of(kind, str(ids.get(kind, "1")))).status_code == 200


def test_the_tab_of_quotas_tells_what_is_used_of_each(
    people: SimpleNamespace, browser_of: BrowserOf
) -> None:
    group = AccountingGroup.objects.create(name="physics")
    group.members.add(people.alice)
    save_quota(Quota(max_bytes=2048, max_clusters=77), actor=factories.SYSTEM)
    save_quota(Quota(group=group, max_waiting_jobs=12345), actor=factories.SYSTEM)
    create_workspace(people.alice, {"a": store_bytes(b"x" * 100)})

    page = text_of(_text(browser_of(people.alice).get(ACCOUNT, {"tab": "quotas"})), "quotas")

    for words in ("user alice", "group physics", "100 B", "2 KiB", "77", "12,345"):
        assert words in page


def test_a_token_is_made_for_what_was_chosen(client: Client, people: SimpleNamespace) -> None:
    client.force_login(people.alice)

    for powers in ("", "read submit"):
        client.post(reverse("web:add-token"), {"name": "t", "days": "7", "powers": powers})
    refused = client.post(reverse("web:add-token"), {"name": "t", "days": "7", "powers": "fly"})

    scopes = [token.scopes for token in ApiToken.objects.order_by("pk")]
    assert scopes == [Scope.values, ["read", "submit"]]
    assert refused.status_code == 400
