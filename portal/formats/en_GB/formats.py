"""Date and time formats: ISO 8601 days, and the zone beside each time."""

from __future__ import annotations

DATE_FORMAT = SHORT_DATE_FORMAT = "Y-m-d"
TIME_FORMAT = "H:i:s"
DATETIME_FORMAT = SHORT_DATETIME_FORMAT = "Y-m-d H:i:s e"
DATE_INPUT_FORMATS = ["%Y-%m-%d"]
