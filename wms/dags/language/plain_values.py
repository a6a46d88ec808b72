"""Variables of plain VARS lines, which are kept as they stand there: a list of values for each run.

A run of lines sets the same variables of one node after another. What else a variable has (its
name, file, line) is made when it is asked for: as objects they would take five times the memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from wms.dags.language.spec import SourceLocation, Variable

#: Of a run: in between the time is looked at, and the lines of one fault are read one by one.
MOST_LINES = 1024
#: Shared by all runs.
_NUMBERS = tuple(range(MOST_LINES))
#: No quotes, no escapes, no macros, not empty, and not so long that any limit is in question.
_PLAIN_WORD = re.compile(r"[A-Za-z0-9_.:/+-][A-Za-z0-9_.:/+ -]{0,254}")


def is_plain_word(text: str) -> bool:
    """Whether a text means nothing but itself wherever it stands in the arguments of a job."""
    return _PLAIN_WORD.fullmatch(text) is not None


class PlainLines:
    """Lines of a run: `keys` as they are written and in lower case, and a row of values a line."""

    __slots__ = ("are_plain_words", "file", "first_line", "lowered", "names", "places", "rows")

    def __init__(
        self,
        file: str,
        first_line: int,
        keys: Sequence[tuple[str, str]],
        rows: Sequence[Sequence[str]],
    ) -> None:
        self.file = file
        self.first_line = first_line
        self.names = tuple(name for name, _ in keys)
        self.lowered = tuple(lowered for _, lowered in keys)
        self.places = {lowered: place for place, (_, lowered) in enumerate(keys)}
        #: All values in one list, since most rows have one or two.
        self.rows = [value for row in rows for value in row]
        self.are_plain_words = all(map(is_plain_word, self.rows))

    def __iter__(self) -> Iterator[PlainValues]:
        """The variables of each line."""
        count = len(self.rows) // len(self.names)
        return (PlainValues(self, at) for at in _NUMBERS[:count])

    def value(self, at: int, place: int) -> str:
        """Value of a variable on a line."""
        return self.rows[at * len(self.names) + place]


class PlainValues(Mapping[str, Variable]):
    """Variables of one line, by their names in lower case; none is appended."""

    __slots__ = ("_at", "_lines")

    def __init__(self, lines: PlainLines, at: int) -> None:
        self._lines = lines
        self._at = at

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in lower case."""
        return self._lines.lowered

    @property
    def are_plain_words(self) -> bool:
        """Whether the values, and those of the lines around, are plain words."""
        return self._lines.are_plain_words

    def __getitem__(self, lowered: str) -> Variable:
        lines = self._lines
        place = lines.places[lowered]
        location = SourceLocation(lines.file, lines.first_line + self._at)
        return Variable(lines.names[place], lines.value(self._at, place), location)

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines.lowered)

    def __len__(self) -> int:
        return len(self._lines.lowered)

    def __contains__(self, name: object) -> bool:
        return name in self._lines.places

    def texts(self, *, as_written: bool) -> dict[str, str]:
        """Values by the names of the variables, as they are written or in lower case."""
        lines = self._lines
        names = lines.names if as_written else lines.lowered
        first = self._at * len(lines.names)
        return dict(zip(names, lines.rows[first : first + len(lines.names)], strict=True))


def texts_of(
    variables: Mapping[str, Variable] | None, *, as_written: bool = False
) -> tuple[dict[str, str], dict[str, str]]:
    """Values of variables before the description and of those behind it.

    They are by the names, as written or in lower case.
    """
    if not variables:
        return {}, {}
    if isinstance(variables, PlainValues):
        return variables.texts(as_written=as_written), {}
    texts: tuple[dict[str, str], dict[str, str]] = {}, {}
    for lowered, each in variables.items():
        texts[each.is_appended][each.name if as_written else lowered] = each.value
    return texts


def names_of_plain_words(variables: Mapping[str, Variable] | None) -> tuple[str, ...] | None:
    """Names of variables before the description whose values all are plain words; None if others
    are among them.
    """
    if variables is None:
        return ()
    if isinstance(variables, PlainValues):
        return variables.names if variables.are_plain_words else None
    if all(is_plain_word(each.value) and not each.is_appended for each in variables.values()):
        return tuple(variables)
    return None
