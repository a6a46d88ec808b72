"""Regular expressions of normalisation rules, checked and run by RE2 in time linear in the text.

RE2 goes over a text once and never back, whatever the expression. What it cannot promise that of
it does not read: references to groups, looks ahead and behind, atomic groups, possessive repeats.
Also fills in the names of owner, site and host.
"""

from __future__ import annotations

from functools import lru_cache

import re2

MAX_PATTERN = 400
#: Instructions of RE2 for one expression: each may be looked at for every byte of a text.
MAX_PROGRAM = 2000
#: What an expression may say for the names of what failed, to be filled in for each failure.
NAMES = ("owner", "site", "host")
#: A longer one is no name of any of them.
MAX_NAME = 255
#: A group of this name narrows down what is found; around it an expression may look at the text.
IT = "it"
# In bytes, for an expression and the states that it is in while it reads. What does not fit is
# refused; a text for which the states do not fit takes longer, still in proportion to its length.
_MEMORY_BYTES = 1024 * 1024
_LONGEST_NAME = "\U0010ffff" * MAX_NAME
# No character at all.
_NO_WORD = r"[^\x00-\x{10FFFF}]"


class BadPattern(ValueError):
    """The expression cannot be read, or is too large."""


class Pattern:
    """An expression, ready for use on texts in UTF-8."""

    def __init__(self, pattern: str) -> None:
        options = re2.Options()
        options.max_mem = _MEMORY_BYTES
        options.log_errors = False
        try:
            self._compiled = re2.compile(pattern, options)
        except re2.error as error:
            (message,) = error.args
            raise BadPattern(
                f"RE2 cannot read this: {message.decode(errors='replace')}."
            ) from error
        except UnicodeEncodeError as error:
            raise BadPattern("It contains half of a character.") from error
        self.size: int = self._compiled.programsize
        self._group: int = self._compiled.groupindex.get(IT, 0)

    def find(self, text: bytes, start: int) -> tuple[int, int, int] | None:
        """Start and end of the next find from `start` on, and the position to search on from.

        What begins where it ends is no find. What stands before `start` is still seen by `^`
        and `\\b`. None if there is nothing more.
        """
        found = self._compiled.search(text, start)
        if found is None:
            return None
        begin, end = found.span(self._group)
        if begin < end:
            return begin, end, end
        return begin, begin, max(found.end(), start + 1)

    def fits(self, text: bytes) -> bool:
        """True when something of the text is found, be it empty."""
        return self._compiled.search(text) is not None


def check_pattern(pattern: str) -> None:
    """Raise BadPattern, with what is wrong and where, unless the expression can be used."""
    if len(pattern) > MAX_PATTERN:
        raise BadPattern(f"An expression has at most {MAX_PATTERN} characters.")
    if not pattern:
        raise BadPattern("Give an expression.")
    checked = Pattern(fill_in(pattern, dict.fromkeys(NAMES, "x")))
    if checked.size > MAX_PROGRAM:
        raise BadPattern(
            f"Counted repeats and classes written out make {checked.size} steps of it, and "
            f"{MAX_PROGRAM} are allowed: count less, or write [A-Za-z] for \\pL."
        )
    Pattern(fill_in(pattern, dict.fromkeys(NAMES, _LONGEST_NAME)))
    if checked.fits(b""):
        raise BadPattern("It fits an empty text, so it would be found everywhere.")


def fill_in(pattern: str, names: dict[str, str]) -> str:
    """The expression with `{owner}`, `{site}` and `{host}` as what they are called, literally."""
    for name in NAMES:
        if f"{{{name}}}" in pattern:
            value = names.get(name, "")
            is_name = 0 < len(value) <= MAX_NAME
            pattern = pattern.replace(f"{{{name}}}", re2.escape(value) if is_name else _NO_WORD)
    return pattern


@lru_cache(maxsize=256)
def compiled(pattern: str) -> Pattern:
    """The expression, ready for use. Raises BadPattern."""
    return Pattern(pattern)
