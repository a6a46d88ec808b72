"""Account page: its tabs (overview, quotas, notifications, tokens, identities, preferences,
password).

Each tab has its template context; the overview tells the rights of each role.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import reverse
from django.utils import timezone

from portal.lists.registry import LISTS
from portal.personal.models import Preferences
from portal.personal.selectors import preferences_of, visible_filters
from portal.personal.zones import BROWSER, zone_names
from portal.shared.passwords import OwnPasswordForm
from portal.web.account.forms import ChannelForm, SubscriptionForm, TokenForm
from portal.web.shared.pages import render_page
from wms.accounting.limited_tokens import limits_for
from wms.accounting.walls import has_frontends
from wms.core.audit import own_actions
from wms.core.errors import NotFound, PilotageError
from wms.core.identities import identities_of, named_subjects_of
from wms.core.identity_models import Identity, NamedSubject
from wms.core.models import Role, User
from wms.core.policy import has_role
from wms.core.tokens import own_tokens
from wms.jobs.quotas import quotas_of
from wms.notices.conf import conf
from wms.notices.models import Channel, Rule
from wms.notices.policy import may_subscribe
from wms.notices.selectors import latest_deliveries, own_channels, own_subscriptions

_ACTIONS_SHOWN = 10
_TOKENS_SHOWN = 100
_IDENTITIES_SHOWN = 100
_SUBSCRIPTIONS_SHOWN = 200
_FILTERS_SHOWN = 500

#: Rights of each role, added to those of the roles before it.
RIGHTS: Mapping[Role, str] = {
    Role.VIEWER: "Read everything except what is private to other users.",
    Role.USER: "Submit DAGs, and steer your own DAGs and jobs.",
    Role.SITE_ADMIN: "Configure and steer the sites that name you as their administrator.",
    Role.SHIFTER: "Steer everybody's DAGs and jobs, ban and drain sites, enter downtimes, "
    "and decide about failure groups.",
    Role.OPERATOR: "Configure sites, queues and limits, and the rules of failures.",
    Role.ADMIN: "Manage accounts, and the checks that run on worker nodes.",
}


@dataclass(frozen=True, slots=True)
class AccountTab:
    """One tab of the account page; `build` makes its template context."""

    name: str
    label: str
    build: Callable[[User], Mapping[str, Any]]


def _overview(user: User) -> Mapping[str, Any]:
    return {
        "rights": [(role.label, text, has_role(user, role)) for role, text in RIGHTS.items()],
        "actions": own_actions(user)[:_ACTIONS_SHOWN],
        "actions_path": f"{reverse('web:audit')}?actor={user.get_username()}",
    }


def _quotas(user: User) -> Mapping[str, Any]:
    names = {
        "waiting_jobs": "waiting jobs", "clusters": "clusters and DAGs", "size_bytes": "files",
    }  # fmt: skip
    return {
        "uses": [
            (use, [(kind, names[kind], limit, used) for kind, limit, used in use.lines])
            for use in quotas_of(user)
        ],
    }


def token_form(user: User, sent: QueryDict | None = None) -> TokenForm:
    """Form of a new token of the user; it offers frontends if there are any."""
    return TokenForm(sent, frontends=limits_for(user) if has_frontends(user) else ())


def _tokens(user: User) -> Mapping[str, Any]:
    tokens = list(own_tokens(user)[: _TOKENS_SHOWN + 1])
    return {
        "now": timezone.now(),
        "tokens": tokens[:_TOKENS_SHOWN],
        "is_cut": len(tokens) > _TOKENS_SHOWN,
        "token_form": token_form(user),
        "manages_tokens": has_role(user, Role.ADMIN),
        "signed": _signed(user) if settings.TOKEN_ISSUERS else [],
    }


def _signed(user: User) -> list[tuple[Identity | NamedSubject, bool]]:
    """Subjects whose signed tokens are this account, and whether by a link."""
    linked = identities_of(user).filter(issuer__in=settings.TOKEN_ISSUERS)
    return [
        *((each, True) for each in linked[:_IDENTITIES_SHOWN]),
        *((each, False) for each in named_subjects_of(user)[:_IDENTITIES_SHOWN]),
    ]


def _identities(user: User) -> Mapping[str, Any]:
    rows = list(identities_of(user)[: _IDENTITIES_SHOWN + 1])
    known = {each.issuer: each for each in settings.OIDC_PROVIDERS.values()}
    shown = [(row, known.get(row.issuer)) for row in rows[:_IDENTITIES_SHOWN]]
    return {
        "identities": shown,
        "is_cut": len(rows) > _IDENTITIES_SHOWN,
        "providers": list(known.values()),
        "entrances": list({each.id: each for _, each in shown if each is not None}.values()),
        "has_password": user.has_usable_password(),
        "manages_identities": has_role(user, Role.ADMIN),
    }


def _notifications(user: User) -> Mapping[str, Any]:
    """Context of the tab of notifications: rules, channels and deliveries."""
    rules = [rule for rule in Rule if rule != Rule.DAG and may_subscribe(user, rule)]
    subscriptions = list(own_subscriptions(user)[: _SUBSCRIPTIONS_SHOWN + 1])
    known = {row.rule: row for row in subscriptions if row.dag is None and row.site is None}
    configured = conf()
    channels = list(own_channels(user))
    return {
        "rules": [(rule, known.get(rule.value)) for rule in rules],
        "singles": [row for row in subscriptions[:_SUBSCRIPTIONS_SHOWN] if row.dag or row.site],
        "is_cut": len(subscriptions) > _SUBSCRIPTIONS_SHOWN,
        "subscription_form": SubscriptionForm(),
        "channels": channels,
        "has_email": any(row.kind == Channel.Kind.EMAIL for row in channels),
        "is_email_on": configured.is_email_on,
        "is_http_allowed": configured.is_plain_http_allowed,
        "paces": Channel.Pace.choices,
        "hours": [(hour, f"{hour:02}:00") for hour in range(24)],
        # The zone of one's times beside the usual one: a list of all is among the preferences.
        "digest_zones": sorted({"UTC", preferences_of(user).time_zone} - {BROWSER}, reverse=True),
        "channel_form": ChannelForm(),
        "deliveries": latest_deliveries(user),
    }


def _preferences(user: User) -> Mapping[str, Any]:
    chosen = preferences_of(user)
    names = {name: kind.title for name, kind in LISTS.items()}
    by_list: dict[str, list[Any]] = {name: [] for name in names}
    for saved in visible_filters(user)[:_FILTERS_SHOWN]:
        by_list[saved.list_name].append(saved)
    return {
        "chosen": chosen,
        "themes": Preferences.Theme.choices,
        "densities": Preferences.Density.choices,
        "zones": [name for name in zone_names() if name not in {"UTC", BROWSER}],
        "is_named_zone": chosen.time_zone not in {"UTC", BROWSER},
        "starts": [
            (name, names[name], saved, chosen.default_filters.get(name))
            for name, saved in by_list.items()
            if saved
        ],
    }


def _password(user: User) -> Mapping[str, Any]:
    return {"is_local": user.has_usable_password(), "password_form": OwnPasswordForm(user)}


TABS = {
    each.name: each
    for each in (
        AccountTab("overview", "Account", _overview),
        AccountTab("quotas", "Quotas", _quotas),
        AccountTab("notifications", "Notifications", _notifications),
        AccountTab("tokens", "API tokens", _tokens),
        AccountTab("identities", "Identities", _identities),
        AccountTab("preferences", "Preferences", _preferences),
        AccountTab("password", "Password", _password),
    )
}


def show_account(
    request: HttpRequest,
    name: str = "overview",
    *,
    error: PilotageError | None = None,
    status: int = 200,
    **context: Any,
) -> HttpResponse:
    """Render one tab; `error` tells why a form of it was refused, `context` overrides its own.

    The live part is the log of what was sent.
    """
    tab = TABS.get(name)
    if tab is None:
        raise NotFound(f"Your account page has no tab {name!r}.")
    everything = {
        "tab": tab,
        "tabs": TABS.values(),
        "tab_template": f"web/account_{tab.name}.html",
        "page_path": reverse("web:account"),
        "live_path": reverse("web:account") + f"?tab={tab.name}",
        "error": error,
        **tab.build(request.user),
        **context,
    }
    return render_page(request, "account", everything, status=error.status if error else status)
