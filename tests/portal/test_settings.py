"""The settings are all documented, and nothing else is."""

from __future__ import annotations

import re
from pathlib import Path

from django.conf import settings


def test_the_documented_settings_are_those_that_are_read() -> None:
    root = Path(settings.BASE_DIR)
    readers = (
        "portal/settings.py", "portal/config/api_rates.py", "portal/cli/listening.py",
        "portal/cli/supervision.py",
    )  # fmt: skip
    source = "".join((root / path).read_text(encoding="utf-8") for path in readers)
    document = (root / "docs/reference/settings.md").read_text(encoding="utf-8")

    read = set(re.findall(r'env\.\w+\(\s*"([A-Z_]+)"', source))
    documented = set(re.findall(r"^\| `([A-Z_]+)` \|", document, re.MULTILINE))

    assert documented == read
