"""Help pages: states, examples, keys, and links from empty pages."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse
from django.utils.html import strip_tags

from portal.cli.document_states import DOCUMENT
from portal.lists.registry import LISTS
from portal.shared.state_badges import MEANINGS
from portal.shared.state_words import ENTITIES, Entity

STATES, HELP = reverse("web:help-states"), reverse("web:help")


def text(client: Client, address: str) -> str:
    return " ".join(client.get(address).content.decode().split())


@pytest.mark.parametrize("entity", ENTITIES, ids=lambda entity: entity.title)
def test_the_glossary_says_of_each_state_what_the_reference_says(
    alice: Client, entity: Entity
) -> None:
    page, reference = text(alice, STATES), DOCUMENT.read_text(encoding="utf-8")

    for state, meaning in entity.state_meanings.items():
        assert f"| {meaning} |" in reference
        told = MEANINGS[entity.kind][state]
        assert told == f"{meaning[0].upper()}{meaning[1:]}."
        assert told.replace("'", "&#x27;") in page
        assert f'id="{entity.kind}-{state.replace(" ", "-")}"' in page


def test_the_glossary_says_how_states_change(alice: Client) -> None:
    page = text(alice, STATES)

    for entity in ENTITIES:
        for name in entity.transitions:
            assert f">{name}</td>" in page


@pytest.mark.parametrize("name", ["dags", "jobs", "pilots", "placements", "sites", "downtimes"])
def test_each_list_leads_to_what_its_states_mean(alice: Client, name: str) -> None:
    page = alice.get(f"{reverse(f'web:{name}')}?saved=none").content.decode()

    kind = page.split(f'href="{STATES}#', 1)[1].split('"', 1)[0]
    assert f'id="{kind}"' in alice.get(STATES).content.decode()


def test_help_has_examples_of_filters_and_expressions(alice: Client) -> None:
    page = text(alice, HELP)

    for example in ("5..9", "7d..24h", "!alice", "TARGET.Memory &gt;= 4000", "dag:12"):
        assert example in page


def test_keys_are_shown_on_every_page_and_can_be_switched_off(alice: Client) -> None:
    assert '<dialog id="keys-dialog"' in text(alice, reverse("web:dags"))
    assert 'data-shortcuts="off"' not in text(alice, HELP)

    alice.post(reverse("web:preferences"), {"has_shortcuts": "false", "next": HELP})

    assert 'data-shortcuts="off"' in text(alice, HELP)
    assert 'name="has_shortcuts" value="true"' in text(alice, HELP)


@pytest.mark.parametrize("name", [name for name in LISTS if name != "audit"])
def test_an_empty_list_says_what_it_waits_for(alice: Client, name: str) -> None:
    page = text(alice, f"{reverse(f'web:{name}')}?saved=none")

    told = page.split('<div class="empty">', 1)[1].split("</div>", 1)[0]
    assert len(strip_tags(told)) > 40
