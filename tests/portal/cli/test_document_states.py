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
    assert set(entity.event_meanings) == {*entity.transitions, *entity.notes}
    assert all(meaning.strip() and "\n" not in meaning for meaning in meanings)


#: What people ask for when something is to run again although it has ended.
BY_HAND = {"reopen", "rerun", "retry", "mark done"}


@each_entity
def test_every_state_but_the_first_is_reached_and_only_people_lead_out_of_an_end(entity: Entity):
    steps = entity.transitions
    targets = {step.target for step in steps.values()}
    sources = {
        state
        for event, step in steps.items()
        for state in step.sources
        if event not in BY_HAND or state not in entity.terminal
    }

    assert targets | {entity.first} == set(entity.states.values)
    assert sources == set(entity.states.values) - set(entity.terminal)
