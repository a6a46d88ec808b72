"""Parser of environment variables and of arguments in submit descriptions.

Environments are `NAME=value;NAME=value`, one a line, or HTCondor's new form in double quotes;
arguments are words, plain or in double quotes. Also writes an environment in the old form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_BARE_QUOTE = re.compile(r'(?<!\\)"')
_QUOTED = re.compile(r'"((?:[^"]|"")*)"(?!")(.*)\Z', re.DOTALL)


class BadEnvironment(ValueError):
    """A text that is not an environment; `line` counts from 1."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def _pair(text: str, line: int | None = None) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not _NAME.match(name.strip()):
        raise BadEnvironment(f"expected NAME=value, found: {text.strip()[:80]}", line)
    return name.strip(), value.strip()


def parse_lines(text: str) -> dict[str, str]:
    """Variables, one NAME=value a line; empty lines and lines that begin with `#` are skipped."""
    pairs: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            name, value = _pair(line, number)
            if ";" in value:
                raise BadEnvironment(f"{name}: a value cannot contain a semicolon", number)
            pairs[name] = value
    return pairs


def parse_semicolons(text: str) -> dict[str, str]:
    """Variables of HTCondor's old form `A=1;B=2`; empty parts are skipped, the last name wins."""
    return dict(_pair(part) for part in text.split(";") if part.strip())


def parse_environment(text: str) -> dict[str, str]:
    """Variables of a submit description's `environment`: new form in double quotes, or old form.

    In the new form blanks separate variables; single quotes protect blanks; two single quotes stand
    for one, and so do two double quotes.
    """
    if not text.strip().startswith('"'):
        return parse_semicolons(text)
    return dict(_word_pair(word) for word in split_quoted(_unquoted(text)))


def _word_pair(word: str) -> tuple[str, str]:
    """Name and value; blanks in the value are kept, since quotes may have protected them."""
    name, _ = _pair(word)
    return name, word.partition("=")[2]


def _unquoted(text: str) -> str:
    """Text between double quotes; two double quotes inside stand for one."""
    match = _QUOTED.match(text.strip())
    if match is None:
        raise BadEnvironment("a double quote is not closed")
    if rest := match[2].strip():
        message = 'behind the closing double quote stands more (inside, "" is one): '
        raise BadEnvironment(message + rest[:80])
    return match[1].replace('""', '"')


def split_quoted(text: str) -> list[str]:
    """Words separated by blanks, as in HTCondor's new syntax for arguments and environment.

    A single-quoted part may contain blanks; in it two single quotes stand for one.
    """
    words: list[str] = []
    # Of characters: a long word would be copied for each of them.
    word: list[str] | None = None
    position, is_quoted = 0, False
    while position < len(text):
        char = text[position]
        if char == "'":
            if is_quoted and text[position + 1 : position + 2] == "'":
                word = word or []
                word.append("'")
                position += 1
            else:
                is_quoted = not is_quoted
                word = word or []
        elif char.isspace() and not is_quoted:
            if word is not None:
                words.append("".join(word))
            word = None
        else:
            word = word or []
            word.append(char)
        position += 1
    if is_quoted:
        raise BadEnvironment("a single quote is not closed")
    return words if word is None else [*words, "".join(word)]


def parse_arguments(text: str) -> list[str]:
    """Arguments of a submit description: new form in double quotes, or separated by blanks.

    In the old form a backslash before a double quote makes it literal.
    """
    if text.strip().startswith('"'):
        return split_quoted(_unquoted(text))
    if (match := _BARE_QUOTE.search(text)) is not None:
        message = (
            f'write \\" for a double quote, or all in double quotes: {text[match.end() - 1 :][:80]}'
        )
        raise BadEnvironment(message)
    return text.replace('\\"', '"').split()


def render_semicolons(environment: Mapping[str, str]) -> str:
    """Environment in HTCondor's old form, which SiteEnvironment uses."""
    return ";".join(f"{name}={value}" for name, value in environment.items())
