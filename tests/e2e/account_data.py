"""Test data of an account: Olga's subscriptions, notices, channels, deliveries and tokens.

`account_pages` makes them and returns the addresses of her pages by the names of their pictures.
"""

from __future__ import annotations

from datetime import timedelta

from django.urls import reverse
from django.utils import timezone

from portal.web.account.page import TABS
from tests.e2e.production import Production
from wms.core.actors import Actor
from wms.core.identities import link_identity, link_own_identity, note_use
from wms.core.models import ControlLoop, User
from wms.core.tokens import issue_token, revoke_tokens
from wms.dags.lifecycle import apply_to_dags
from wms.notices import fanout, services
from wms.notices.models import Channel, Delivery, Rule, Subscription


def account_pages(made: Production) -> dict[str, str]:
    """The pages of her account and of her notices, by the names of their pictures."""
    if not Subscription.objects.filter(user=made.people.olga).exists():
        _fill(made)
    account = reverse("web:account")
    return {
        "account": account,
        **{f"account-{name}": f"{account}?tab={name}" for name in TABS if name != "overview"},
        "notices": reverse("web:notices"),
        "notices-read": reverse("web:notices") + "?before=1",
    }


def _fill(made: Production) -> None:
    olga, sam, now = Actor.person(made.people.olga), Actor.person(made.people.sam), timezone.now()
    for rule in (Rule.MY_FAILED, Rule.MY_FAILURES, Rule.LOOPS):
        services.subscribe(rule, actor=olga)
    services.subscribe(Rule.SITE, site=made.site.name, actor=olga)
    for dag in (made.running, made.failed, made.held):
        services.subscribe(Rule.DAG, dag_id=dag.pk, actor=olga)
    hook = services.add_channel(
        "webhook", url="https://hooks.example.org/shifts/9f31?room=control", actor=olga
    ).row
    dead = services.add_channel("webhook", url="https://gone.example.org/", actor=olga).row
    reason = "it took nothing for 24 hours: answered 410"
    Channel.objects.filter(pk=dead.pk).update(is_enabled=False, off_reason=reason)
    _deliveries(hook, dead)
    issue_token(made.people.olga, name="nightly report", actor=olga)
    ending = now + timedelta(days=30)
    issue_token(made.people.olga, name="dashboard in the hall", expires_at=ending, actor=olga)
    old = issue_token(made.people.olga, name="laptop", actor=olga).row
    revoke_tokens([old.pk], actor=olga)
    _identities(made.people.olga)
    ControlLoop.objects.filter(name="sampler").update(started_at=now - timedelta(hours=1))
    fanout.run_cycle(now - timedelta(minutes=3))
    reason = "The calibration is from the wrong run: wait for the new one"
    apply_to_dags("halt", [made.running.pk], actor=sam, reason=reason)
    fanout.run_cycle(now)
    apply_to_dags("resume", [made.running.pk], actor=sam)
    services.mark_read(None, actor=olga, now=now)
    apply_to_dags("release", [made.held.pk], actor=sam)
    apply_to_dags("hold", [made.held.pk], actor=sam, reason="The disk of the portal is full")
    fanout.run_cycle(now)


def _identities(olga: User) -> None:
    issuer, subject = "https://atlas-auth.example.org/", "7b2e4b1c-5d0e-4a53-9c11-3f0f6a1d2b90"
    used = link_identity(olga, issuer, subject, actor=Actor.system("openid"))
    note_use(used, now=timezone.now() - timedelta(minutes=20), address="2001:db8::17")
    link_own_identity(olga.pk, "https://cms-auth.example.org/", "olga", now=timezone.now())


def _deliveries(hook: Channel, dead: Channel) -> None:
    now = timezone.now()
    rows = [
        (hook, "sent", 1, "", 2), (hook, "waiting", 3, "no answer in time", 5),
        (dead, "given-up", 31, "answered 410", 90), (dead, "dropped", 0, "", 91),
    ]  # fmt: skip
    for channel, state, attempts, error, minutes in rows:
        Delivery.objects.create(
            channel=channel, state=state, attempts=attempts, last_error=error,
            created_at=now - timedelta(minutes=minutes), next_at=now + timedelta(minutes=4),
        )  # fmt: skip
