"""The settings are all documented, and nothing else is."""

from __future__ import annotations

import re
from pathlib import Path

from django.conf import settings


def test_the_documented_settings_are_those_that_are_read() -> None:
    source = Path(settings.BASE_DIR, "portal/settings.py").read_text(encoding="utf-8")
    document = Path(settings.BASE_DIR, "docs/reference/settings.md").read_text(encoding="utf-8")

    read = set(re.findall(r'env\.\w+\(\s*"([A-Z_]+)"', source))
    documented = set(re.findall(r"^\| `([A-Z_]+)` \|", document, re.MULTILINE))

    assert documented == read
