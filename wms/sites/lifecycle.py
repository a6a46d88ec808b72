"""Lifecycle of sites: their state machine, and the inbox topic that announces their events."""

from __future__ import annotations

from wms.core.models import InboxEntry
from wms.core.statemachine import StateMachine
from wms.sites.models import Site, SiteEvent
from wms.sites.states import TRANSITIONS

#: The inbox of events of sites that people want to hear of.
NEWS_TOPIC = "site-news"

SITES = StateMachine(
    model=Site,
    event_model=SiteEvent,
    subject="site",
    transitions=TRANSITIONS,
    observed=frozenset(TRANSITIONS),
    observers=NEWS_TOPIC,
    kind=InboxEntry.Kind.SITE_EVENT,
)
