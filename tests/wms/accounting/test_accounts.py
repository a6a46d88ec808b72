"""Accounts told apart by site, user, group, label, day and month; and what walls hide of them."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from tests import factories
from wms.accounting.accounts import Period, UseBy, UseOf, use_lines
from wms.accounting.core_seconds import CoreSeconds, Use, add_uses
from wms.accounting.models import AccountingGroup, Frontend
from wms.core.models import User

pytestmark = pytest.mark.django_db

NOVEMBER = Period(date(2026, 11, 1), date(2026, 11, 30))


def use(useful_s: float, *, day: int = 5, month: int = 11, site: str = "UW", owner: str = "alice",
        **more: Any) -> Use:  # fmt: skip
    spent = CoreSeconds(useful_s=useful_s, failed_s=10.0)
    numbers = {"cpu_s": useful_s / 2, "wall_s": useful_s, "attempts": 2, "failed_attempts": 1}
    return Use(date(2026, month, day), site, owner, spent, **numbers | more)


def told(viewer: User, by: UseBy, period: Period = NOVEMBER, **of: str) -> dict[str, float]:
    lines = use_lines(viewer, by, period, UseOf(**of))
    return {line.name: line.spent.useful_s for line in lines}


@pytest.fixture
def people() -> factories.People:
    return factories.people()


def test_use_is_told_by_each_thing_and_limited_by_each_other(people: factories.People) -> None:
    add_uses([
        use(100.0, group_name="higgs", labels=("campaign=mc26", "v2")),
        use(50.0, group_name="higgs", labels=("v2",), site="FNAL", owner="charlie", day=6),
        use(25.0, owner="charlie"),
        use(7.0, month=10),
        Use(date(2026, 11, 5), "UW", "", CoreSeconds(idle_s=500.0), pilots=3),
    ])  # fmt: skip
    vera = people.vera

    assert told(vera, UseBy.GROUP) == {"higgs": 150.0, "": 25.0}
    assert told(vera, UseBy.LABEL) == {"v2": 150.0, "campaign=mc26": 100.0}
    assert told(vera, UseBy.MONTH, Period(date(2026, 10, 1), date(2026, 11, 30))) == {
        "2026-11": 175.0,
        "2026-10": 7.0,
    }
    assert told(vera, UseBy.DAY, group="higgs") == {"2026-11-06": 50.0, "2026-11-05": 100.0}
    assert told(vera, UseBy.SITE, label="v2") == {"UW": 100.0, "FNAL": 50.0}
    assert told(vera, UseBy.USER, site="UW") == {"alice": 100.0, "charlie": 25.0}
    assert told(vera, UseBy.LABEL, user="charlie") == {"v2": 50.0}
    [october] = use_lines(vera, UseBy.SITE, NOVEMBER.before)
    assert october.spent.useful_s == 7.0


def test_a_line_has_times_and_attempts_by_outcome(people: factories.People) -> None:
    add_uses([use(90.0, group_name="higgs", lost_attempts=1), use(10.0, group_name="higgs")])

    [line] = use_lines(people.vera, UseBy.GROUP, NOVEMBER)

    assert (line.cpu_s, line.wall_s) == (50.0, 100.0)
    assert line.cpu_efficiency == 50.0 / 120.0
    assert (line.attempts, line.failed_attempts, line.lost_attempts) == (4, 2, 1)


def test_pilots_own_use_is_of_no_user_group_or_label(people: factories.People) -> None:
    add_uses([Use(date(2026, 11, 5), "UW", "", CoreSeconds(idle_s=500.0), pilots=3)])

    [line] = use_lines(people.vera, UseBy.SITE, NOVEMBER)

    assert (line.spent.idle_s, line.pilots, line.cpu_efficiency) == (500.0, 3, None)
    for by in (UseBy.USER, UseBy.GROUP, UseBy.LABEL):
        assert use_lines(people.vera, by, NOVEMBER) == []
    assert use_lines(people.vera, UseBy.SITE, NOVEMBER, UseOf(group="higgs")) == []


def test_walls_hide_groups_and_labels_of_other_frontends(people: factories.People) -> None:
    for name, member in (("a", people.alice), ("b", people.charlie)):
        frontend = Frontend.objects.create(name=name)
        AccountingGroup.objects.create(name=f"of-{name}", frontend=frontend).members.add(member)
    add_uses([
        use(1.0, group_name="of-a", labels=("la",)),
        use(2.0, group_name="of-b", labels=("lb",), owner="charlie"),
        use(4.0, labels=("own",)),
        # What one does in the name of another frontend is that frontend's.
        use(8.0, group_name="of-b", labels=("lab",)),
    ])  # fmt: skip

    assert told(people.alice, UseBy.GROUP) == {"of-a": 1.0, "": 4.0}
    assert told(people.alice, UseBy.LABEL) == {"la": 1.0, "own": 4.0}
    assert told(people.alice, UseBy.USER) == {"alice": 5.0}
    assert told(people.alice, UseBy.DAY, group="of-b") == {}
    assert told(people.charlie, UseBy.LABEL) == {"lb": 2.0}
    # Sites are shared: all of their use is told.
    assert told(people.alice, UseBy.SITE) == {"UW": 15.0}
