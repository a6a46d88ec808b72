"""Exception classes of permanent database errors, which would come again at every try.

They are values that cannot be stored, violated constraints, and faulty statements. Also the first
line of such an error, as text for a reason.
"""

from __future__ import annotations

from django.db import DataError, IntegrityError, NotSupportedError, ProgrammingError

#: Errors of the values themselves: too long, too large, no text. The second is the driver's.
UNSTORABLE_VALUES = (DataError, UnicodeEncodeError)
#: All that are the same at the next try. Not OperationalError: then the database was away, or busy.
PERMANENT_ERRORS = (*UNSTORABLE_VALUES, IntegrityError, NotSupportedError, ProgrammingError)
_MOST_TOLD = 300


def told(error: Exception) -> str:
    """First line of such an error, as a text that can be stored in a reason."""
    line = next(iter(str(error).splitlines()), "")
    return storable(f"{type(error).__name__}: {line}"[:_MOST_TOLD])


def storable(text: str) -> str:
    """The text without what no text of the database can have."""
    return text.replace("\0", "?").encode(errors="replace").decode()
