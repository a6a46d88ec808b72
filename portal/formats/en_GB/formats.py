"""Django's date and time formats, for display and for input: ISO 8601 days, UTC beside times."""

from __future__ import annotations

DATE_FORMAT = SHORT_DATE_FORMAT = "Y-m-d"
TIME_FORMAT = "H:i:s"
DATETIME_FORMAT = SHORT_DATETIME_FORMAT = "Y-m-d H:i:s e"
DATE_INPUT_FORMATS = ["%Y-%m-%d"]
