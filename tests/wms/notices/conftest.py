"""Fixtures of tests of notices: people with addresses, a webhook, a mail server, settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings

from tests import factories
from tests.wms.notices import receivers


@pytest.fixture
def people(db: None) -> SimpleNamespace:
    """The standard people, each with an address."""
    known = factories.people()
    for user in vars(known).values():
        user.email = f"{user.username}@example.org"
        user.save(update_fields=["email"])
    return known


@pytest.fixture
def hook() -> Iterator[receivers.Hook]:
    with receivers.hook() as listening:
        yield listening


@pytest.fixture
def mail_sink() -> Iterator[receivers.Sink]:
    with receivers.mail_sink() as listening:
        yield listening


@pytest.fixture
def configured() -> Iterator[Callable[..., None]]:
    """Change settings of notices: by default, webhooks may call loopback and mail is on."""
    usual = {
        "EMAIL_FROM": "pilotage@example.org",
        "WEBHOOKS_ALLOWED": ["127.0.0.1"],
        "PLAIN_HTTP": True,
    }
    overrides: list[override_settings] = []

    def change(**changes: Any) -> None:
        notices = usual | {name: changes.pop(name) for name in list(changes) if name in usual}
        override = override_settings(PILOTAGE=settings.PILOTAGE | {"NOTICES": notices}, **changes)
        override.enable()
        overrides.append(override)

    change()
    yield change
    for override in reversed(overrides):
        override.disable()
