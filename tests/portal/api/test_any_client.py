"""The API against its own schema: requests made up from it, as somebody else would read it.

Schemathesis makes them, what the schema allows and what it does not, the same in every run. They
are sent by a user and by an operator in turn. Of those with a body two of three name objects that
there are, of the others one of two: by the user in every second operation, by the operator in the
rest. `--any-client-seconds` goes on with other requests in rounds for so long.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cache
from itertools import count, cycle
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, transaction
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.internal.conjecture.providers import HypothesisProvider
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from portal.api.chosen_fields import FIELDS
from portal.api.schema import described
from portal.wsgi import application
from tests import factories
from tests.portal.routes import Route, routes
from tests.portal.world import World, small_world

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
#: Of each operation: of what is refused, all is refused alike.
_EXAMPLES = {GenerationMode.POSITIVE: 3, GenerationMode.NEGATIVE: 2}
#: In each round of a long run.
_EXAMPLES_OF_ROUND = 12
#: The operations are shared out, so that workers take turns.
_GROUPS = 4
_ADDRESSES: Mapping[str, Route] = {
    route.template.replace("%(", "{").replace(")s", "}"): route for route in routes()
}


@cache
def _operations() -> list[Any]:
    schema = schemathesis.openapi.from_dict(deepcopy(described()))
    schema.app = _read_whole
    return [found.ok() for found in schema.get_all_operations()]


def _read_whole(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    """The portal, whose answers are closed as a server does it; nothing here unpacks them."""
    environ.pop("HTTP_ACCEPT_ENCODING", None)
    answer = application(environ, start_response)
    try:
        return [b"".join(answer)]
    finally:
        answer.close()


@pytest.fixture(scope="module")
def world(module_rows: None) -> World:
    return small_world()


@pytest.fixture
def one_connection(db: None) -> Iterator[None]:
    """Requests share the test's connection, whose changes are taken back."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.fixture
def no_known_constants(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hypothesis looks for values among all constants of the code: a quarter of the time."""
    monkeypatch.setattr(HypothesisProvider, "_maybe_draw_constant", lambda *_, **__: None)


@pytest.mark.slow
@pytest.mark.usefixtures("one_connection", "no_known_constants")
@pytest.mark.parametrize("group", range(_GROUPS))
def test_every_answer_is_as_the_schema_says(
    world: World, group: int, pytestconfig: pytest.Config
) -> None:
    until_s = time.monotonic() + pytestconfig.getoption("--any-client-seconds") / _GROUPS
    askers = [world.people.alice, world.people.olga]
    headers = [{"Authorization": f"Token {factories.token_for(each)}"} for each in askers]
    faults: dict[str, str] = {}

    for number in count():
        for turn, operation in enumerate(_operations()[group::_GROUPS], start=number):
            route = _ADDRESSES[operation.path]
            there = {name: world.path_value(route, name) for name in route.parameters}
            for mode in _modes(operation):
                try:
                    _ask(operation, mode, there, headers[:: -1 if turn % 2 else 1], number)
                except FailureGroup as error:
                    faults.setdefault(f"{operation.label} {mode.value}", str(error))
            if number and time.monotonic() >= until_s:
                break
        if time.monotonic() >= until_s:
            break

    assert not faults, "\n".join(f"{name}: {fault}" for name, fault in faults.items())


def _modes(operation: Any) -> list[GenerationMode]:
    """What takes nothing can be asked rightly only."""
    takes = [*operation.path_parameters, *operation.query, *operation.body]
    return list(GenerationMode) if takes else [GenerationMode.POSITIVE]


def _ask(
    operation: Any,
    mode: GenerationMode,
    there: Mapping[str, Any],
    askers: Sequence[Mapping[str, str]],
    number: int,
) -> None:
    """Send some requests of an operation, in each round others. Raises FailureGroup for a fault."""

    pattern = [True, True, False] if operation.body else [True, False]

    @(seed(number) if number else lambda asking: asking)
    @settings(
        max_examples=_EXAMPLES_OF_ROUND if number else min(_EXAMPLES[mode], len(pattern)),
        derandomize=not number,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: Case) -> None:
        # What is asked for by name lacks the rest, also what an object of the schema always has.
        case.query.pop(FIELDS, None)
        if next(is_there) and case.path_parameters:
            case.path_parameters.update(there)
        with transaction.atomic():
            answer = case.call(headers=dict(next(turns)))
            transaction.set_rollback(True)
        case.validate_response(answer, checks=CHECKS)

    turns, is_there = cycle(askers), cycle(pattern)
    ask()
