from __future__ import annotations

import pytest

from portal.cli.document_states import DOCUMENT, ENTITIES, Entity, main, render

each_entity = pytest.mark.parametrize("entity", ENTITIES, ids=lambda entity: entity.title)


def test_the_document_agrees_with_the_tables():
    found = DOCUMENT.read_text(encoding="utf-8")

    assert found == render(), "Run `python -m portal.cli.document_states`, and look at its diff."


def test_the_document_is_written_where_it_is_asked_for(tmp_path):
    main(tmp_path / "states.md")

    assert (tmp_path / "states.md").read_text(encoding="utf-8") == render()


@each_entity
def test_every_state_and_every_event_has_a_meaning_of_one_line(entity: Entity):
    meanings = [*entity.state_meanings.values(), *entity.event_meanings.values()]

    assert set(entity.state_meanings) == set(entity.states.values)
    assert set(entity.event_meanings) == set(entity.transitions)
    assert all(meaning.strip() and "\n" not in meaning for meaning in meanings)


@each_entity
def test_every_state_but_the_first_is_reached_and_no_event_leads_out_of_an_end(entity: Entity):
    targets = {step.target for step in entity.transitions.values()}
    sources = {state for step in entity.transitions.values() for state in step.sources}

    assert targets | {entity.first} == set(entity.states.values)
    assert sources == set(entity.states.values) - set(entity.terminal)
