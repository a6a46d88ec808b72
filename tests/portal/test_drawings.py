from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from portal.shared import drawings
from portal.shared.drawings import counts_of, drawing_of, ends_by, states_of
from tests import factories
from wms.dags.models import Dag
from wms.dags.reading.drawing_states import DRAWN, version_of

_NOBODY = {
    "default": {
        "BACKEND": "portal.config.caching.PlainCache",
        "LOCATION": "redis://127.0.0.1:1/0",
    }
}


@pytest.fixture(autouse=True)
def _forgetful() -> Iterator[None]:
    """As in a process that has just started."""
    drawings._drawing.cache_clear()
    yield
    drawings._drawing.cache_clear()


@pytest.fixture
def dag(db: None) -> Dag:
    return factories.dag(factories.person("alice"), node_count=3, is_chain=True)


def test_a_drawing_is_made_once_for_all_processes(
    dag: Dag, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    made = drawing_of(dag)
    drawings._drawing.cache_clear()

    with django_assert_num_queries(0):
        again = drawing_of(dag)

    assert again == made
    assert list(again.levels) == [0, 1, 2]


def test_without_a_cache_a_drawing_is_made_anew(dag: Dag) -> None:
    with override_settings(CACHES=_NOBODY):
        drawing = drawing_of(dag)

    assert drawing.node_count == 3


def test_a_spoiled_drawing_is_made_anew(dag: Dag) -> None:
    made = drawing_of(dag)
    drawings._drawing.cache_clear()
    cache.set(f"drawing:{drawings.FORMAT}:{dag.pk}:{dag.created_at.isoformat()}", b"spoiled")

    assert drawing_of(dag) == made


def test_large_new_dags_are_drawn_before_anybody_asks(
    dag: Dag, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    monkeypatch.setattr(drawings, "_LARGE", 3)
    small = factories.dag(dag.owner, name="small.dag", node_count=2)

    first, second = drawings.draw_ahead(timezone.now()), drawings.draw_ahead(timezone.now())

    assert first == {"drawn": [dag.pk]}
    assert second == {"drawn": []}
    with django_assert_num_queries(0):
        assert drawing_of(dag).node_count == 3
    assert drawing_of(small).node_count == 2


def test_expected_ends_of_nodes_are_computed_anew_after_a_while_or_an_event(dag: Dag) -> None:
    states = states_of(dag)
    first = ends_by(dag, states, begun=0.0, now=90.0)

    assert ends_by(dag, states, begun=0.0, now=119.0) is first
    assert ends_by(dag, states, begun=0.0, now=120.0) is not first
    done = replace(states, codes=bytes([DRAWN.index("done")]) + states.codes[1:])
    assert ends_by(dag, done, begun=0.0, now=120.0).mean_s != first.mean_s


def test_the_states_of_all_nodes_are_read_once_until_something_happens(dag: Dag) -> None:
    factories.site()
    before = states_of(dag)
    with CaptureQueriesContext(connection) as again:
        unchanged = states_of(dag)
    factories.turn()

    assert unchanged.codes == before.codes
    assert not [each for each in again if "string_agg" in each["sql"]]
    assert [DRAWN[code] for code in states_of(dag).codes] == ["submitted", "waiting", "waiting"]
    assert counts_of(dag, version_of(dag)).every == {"submitted": 1, "waiting": 2}
