"""The one place where a site changes its state."""

from __future__ import annotations

from wms.core.statemachine import StateMachine
from wms.sites.models import Site, SiteEvent
from wms.sites.states import TRANSITIONS

SITES = StateMachine(model=Site, event_model=SiteEvent, subject="site", transitions=TRANSITIONS)
