from __future__ import annotations

from pathlib import Path

import pytest

from wms.elements.local import LocalElement
from wms.elements.protocol import BadSettings
from wms.elements.registry import element_for


def test_settings_become_an_element(tmp_path: Path) -> None:
    element = element_for("local", {"directory": str(tmp_path), "slots": 2})

    assert isinstance(element, LocalElement)
    assert element.capacity().total == 2


@pytest.mark.parametrize(
    ("kind", "values", "key"),
    [
        ("punchcards", {}, "kind"),
        ("local", {"slots": 2}, "directory"),
        ("local", {"directory": "var/pilots", "slots": 2}, "directory"),
        ("local", {"directory": "/tmp/x", "slots": 0}, "slots"),
        ("local", {"directory": "/tmp/x", "slots": "2"}, "slots"),
        ("local", {"directory": "/tmp/x", "slots": True}, "slots"),
        ("local", {"directory": "/tmp/x", "slot": 2}, "slot"),
    ],
)
def test_settings_that_do_not_fit_are_refused_with_their_key(
    kind: str, values: dict[str, object], key: str
) -> None:
    with pytest.raises(BadSettings) as caught:
        element_for(kind, values)

    assert caught.value.key == key
