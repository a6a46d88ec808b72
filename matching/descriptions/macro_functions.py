"""Functions of submit descriptions: `$INT(x,%03d)`, `$CHOICE(n,a,b)`, `$Fn(file)` and others.

Arguments and results are HTCondor's; where it would leave a garbled text, FunctionError is raised.
Macros in the arguments are expanded before; an argument that is not known yet (`UNKNOWN`) makes
the result unknown. Also values of constant expressions (`constant`), which arguments may name a
value (`looked_up`), and random draws that can be repeated.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Sequence
from functools import lru_cache

import classad2

from matching.ads.ad_cost import check_cost
from matching.ads.classads import AdError, build_ad, evaluate, parse_expression, quote

#: The functions whose values are drawn.
RANDOM = frozenset({"RANDOM_CHOICE", "RANDOM_INTEGER"})
#: Who draws: no text can spell the first name. Jobs with other values draw other numbers.
SEED = "$seed"
SEEDS = (SEED, "process")
#: Stands for what is not known before the job is submitted, where a description is only checked.
UNKNOWN = "\ue001"
#: What an expression may cost to evaluate, in the steps of `adcost`: too little for a pattern.
MOST_STEPS = 8 * 1024
_FORMAT = re.compile(
    r"(?P<before>[^%]*)%(?P<flags>[-+ #0]*)(?P<width>[0-9]{0,3})(?P<precision>\.[0-9]{0,3})?"
    r"(?:ll|l)?(?P<kind>[a-zA-Z])(?P<after>[^%]*)"
)
_KINDS = {"INT": "diuxXo", "REAL": "eEfFgG", "STRING": "s"}
_INTEGER = re.compile(r"\s*[-+]?[0-9]{1,18}")
_MOST = 2**63
_VALUE = "FunctionValue"
_NOTHING = build_ad({})


class FunctionError(ValueError):
    """A function call that cannot be computed."""


def looked_up(function: str, place: int, count: int) -> str:
    """Whether an argument may name a value: `name`, `name or text`, or empty for no.

    With `name`, an argument without such a value becomes empty.
    """
    if function in ("INT", "REAL", "STRING", "CHOICE") and place == 0:
        return "name or text"
    if function == "SUBSTR":
        return "name or text" if place else "name"
    if function == "CHOICE":
        return "name" if count == 2 else ""
    if function == "RANDOM_INTEGER" or count > 1:
        return ""
    return "name or text"


def call(function: str, arguments: Sequence[str], seat: Callable[[], Sequence[str]]) -> str:
    """Value of a function call; UNKNOWN if an argument is. Raises FunctionError.

    `seat` identifies who draws at random, and where.
    """
    if any(UNKNOWN in argument for argument in arguments):
        return UNKNOWN
    try:
        if function in RANDOM:
            return _drawn(function, arguments, seat())
        if function in _FIXED:
            return _FIXED[function](arguments)
        return file_part(function, ",".join(arguments))
    except AdError as error:
        message = error.message.removeprefix(f"{_VALUE}: ")
    except ValueError as error:
        message = str(error)
    raise FunctionError(f"${function}({','.join(arguments)[:80]}): {message}")


def constant(text: str) -> object:
    """Value of an expression that refers to nothing. Raises AdError."""
    return _kept_constant(text) if len(text) <= 256 else _constant(text)


def _constant(text: str) -> object:
    check_cost({_VALUE: text}, most_steps=MOST_STEPS)
    value: object = evaluate(parse_expression(text), _NOTHING)
    return value


_kept_constant = lru_cache(maxsize=1024)(_constant)


def _number(text: str) -> int | float:
    value = constant(text) if text.strip() else None
    if not isinstance(value, int | float) or isinstance(value, classad2.Value):
        raise ValueError(f"not a number: {text.strip()[:80] or 'nothing'}")
    return value


def _whole(text: str) -> int:
    number = math.trunc(_number(text))
    if not -_MOST <= number < _MOST:
        raise ValueError(f"not a number of 64 bits: {text.strip()[:80]}")
    return number


def _int(arguments: Sequence[str]) -> str:
    number = _whole(arguments[0])
    return _formatted("INT", arguments[1:], number) if len(arguments) > 1 else str(number)


def _real(arguments: Sequence[str]) -> str:
    number = float(_number(arguments[0]))
    if len(arguments) == 1:
        return f"{number:.16G}"
    text = _formatted("REAL", arguments[1:], number)
    # So that it is read as one again.
    return text if "." in text else f"{text}.0"


def _string(arguments: Sequence[str]) -> str:
    text = arguments[0]
    try:
        value = constant(text)
    except AdError:
        value = text
    plain = value if isinstance(value, str) else text
    return _formatted("STRING", arguments[1:], plain) if len(arguments) > 1 else plain


def _formatted(function: str, formats: Sequence[str], value: float | str) -> str:
    """Value in a format of C's `printf`."""
    text = ",".join(formats)
    match = _FORMAT.fullmatch(text)
    if match is None or match["kind"] not in _KINDS[function]:
        kinds = ", ".join(f"%{kind}" for kind in _KINDS[function])
        raise ValueError(f"not a format for it, which are {kinds}: {text[:80]}")
    flags, kind, precision = match["flags"], match["kind"], match["precision"] or ""
    if kind in "diuxXo":
        # Python has its own opinion of what C says of these.
        flags = flags.replace("0", "") if precision else flags
        flags = flags.replace("#", "") if kind not in "xX" or not value else flags
        if kind in "uxXo":
            flags = flags.replace("+", "").replace(" ", "")
            value = int(value) % 2**64
    try:
        made = f"%{flags}{match['width']}{precision}{kind}" % value
    except (ValueError, OverflowError) as error:
        raise ValueError(f"not a format: {text[:80]}") from error
    return f"{match['before']}{made}{match['after']}"


def _eval(arguments: Sequence[str]) -> str:
    text = ",".join(arguments)
    return _unparsed(constant(text)) if text.strip() else ""


def _unparsed(value: object) -> str:
    """Value in ClassAd syntax; a string without its quotes."""
    if isinstance(value, str):
        return value
    if isinstance(value, classad2.Value):
        return str(value.name).lower()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f"{value:.15E}"
    if isinstance(value, list):
        return f"{{ {','.join(quote(x) if isinstance(x, str) else _unparsed(x) for x in value)} }}"
    raise ValueError("its value is an ad")


def _choice(arguments: Sequence[str]) -> str:
    if len(arguments) == 1:
        raise ValueError("it has no list")
    index = _whole(arguments[0])
    items = [item.strip() for item in ",".join(arguments[1:]).split(",")]
    if items == [""]:
        raise ValueError("there is no such list, or it is empty")
    if not 0 <= index < len(items):
        raise ValueError(f"{index} is not from 0 to {len(items) - 1}")
    return items[index]


def _substr(arguments: Sequence[str]) -> str:
    if not 2 <= len(arguments) <= 3:
        raise ValueError("it has a name, a start and, if need be, a length")
    text, start = arguments[0], _whole(arguments[1])
    rest = text[start:] if start >= 0 else text[max(0, len(text) + start) :]
    length = _whole(arguments[2]) if len(arguments) > 2 else len(rest)
    return rest[:length] if length >= 0 else rest[: max(0, len(rest) + length)]


def _drawn(function: str, arguments: Sequence[str], seat: Sequence[str]) -> str:
    items = [item.strip() for item in ",".join(arguments).split(",")]
    if function == "RANDOM_CHOICE":
        if items == [""]:
            raise ValueError("its list is empty")
        place = _place(seat, len(items))
        return UNKNOWN if place is None else items[place]
    if not 2 <= len(items) <= 3:
        raise ValueError("it has a least number, a greatest one and, if need be, a step")
    least, most, step = map(_plain_number, [*items, "1"][:3])
    if step < 1:
        raise ValueError("its step is less than 1")
    if least > most:
        raise ValueError(f"{least} is more than {most}")
    place = _place(seat, (most - least + step) // step)
    return UNKNOWN if place is None else str(least + place * step)


def _plain_number(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError(f"not a whole number: {text[:80] or 'nothing'}")
    return int(text)


def _place(seat: Sequence[str], count: int) -> int | None:
    """Random but repeatable index below `count`; None when it is not known who asks."""
    if any(UNKNOWN in each for each in seat):
        return None
    digest = hashlib.sha256("\0".join(seat).encode(errors="replace")).digest()
    return int.from_bytes(digest[:16]) % count


def file_part(function: str, name: str) -> str:
    """Parts of a file name, as the letters of the function say: `$Fpn(name)`."""
    letters = {"BASENAME": "nx", "DIRNAME": "p"}.get(function, function[1:].lower())
    if len(name) > 1 and name[0] == name[-1] and name[0] in "\"'":
        name = name[1:-1]
    if "w" in letters or "u" in letters:
        is_windows = letters.rindex("w") > letters.rfind("u") if "w" in letters else False
        name = name.replace("/", "\\") if is_windows else name.replace("\\", "/")
    part = _part(name, letters)
    if "q" not in letters:
        return part
    quote = "'" if "a" in letters else '"'
    return f"{quote}{part}{quote}"


def _part(name: str, letters: str) -> str:
    base = name.rfind("/") + 1
    dot = name.rfind(".", base + 1)
    extension = dot if dot >= 0 else len(name)
    has_name, has_extension, is_bare = "n" in letters, "x" in letters, "b" in letters
    has_path, parents = "p" in letters, letters.count("d")
    if not base and (has_name or has_extension):
        has_path, parents = False, 0
    end = extension if has_name and not has_extension else len(name)
    if parents:
        if not base:
            return ""
        end = end if has_name or has_extension else base - is_bare
        return name[_parent(name, parents) : end]
    if has_path:
        # The name is between the folder and the extension.
        end = end if has_name or has_extension else base - (is_bare and base > 0)
        return name[:end]
    if has_name:
        return name[base:end]
    if has_extension:
        return name[extension + is_bare :]
    return name


def _parent(name: str, parents: int) -> int:
    """Index at which the part of a name begins that has this many folders."""
    starts = [place + 1 for place, char in enumerate(name) if char in "/\\"]
    return starts[-1 - parents] if len(starts) > parents else 0


_FIXED: dict[str, Callable[[Sequence[str]], str]] = {
    "INT": _int,
    "REAL": _real,
    "STRING": _string,
    "EVAL": _eval,
    "CHOICE": _choice,
    "SUBSTR": _substr,
}
