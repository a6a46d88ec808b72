"""Returns of the database in tests: no test after one gets large ids, which nothing takes back."""

from __future__ import annotations

import pytest

from wms.recovery import returning


@pytest.fixture(autouse=True)
def small_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(returning, "IDS_OF_A_DAY", 100)
