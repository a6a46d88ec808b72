"""Users of sessions: what is read with each of them, and what is asked for only when shown."""

from __future__ import annotations

from typing import Any

import pytest

from portal.personal.backends import WithPreferences
from tests import factories
from tests.wms.notices.hearing import happens, hears, told
from wms.accounting.models import AccountingGroup, Frontend

pytestmark = pytest.mark.django_db


def test_unread_notices_behind_walls_are_counted_only_when_asked_for(
    django_assert_num_queries: Any,
) -> None:
    alice = factories.people().alice
    lsst = Frontend.objects.create(name="lsst")
    AccountingGroup.objects.create(name="lsst", frontend=lsst)
    hears(alice, "my-dags-failed")
    happens("fail", factories.dag(alice), reason="disk")
    told(alice)

    with django_assert_num_queries(1):
        user = WithPreferences().get_user(alice.pk)
    assert user is not None
    with django_assert_num_queries(1):
        counts = [user.unread_notices() for _ in range(2)]

    assert counts == [1, 1]
