"""Find code that decides by the words of a reason: they are for people, causes are for code.

    .venv/bin/python .ci/check_reasons.py [FOLDER...]

Reasons are what is named `reason`, `..._reason` or `why`, as a name, an attribute, a key or a
column, and names that are given one in the same function. Nothing may compare them, search or
cut them, match them with a pattern, or order or group by them; in Python, in lookups of the ORM,
and in SQL. Whether there is one may be asked, and one that is too long may be cut at its end.
`exempt_reasons.toml` beside this file names the places that may, and says why; one that is not
needed any more is a fault as well. Exit code 1 on a fault.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

BASE = Path(__file__).resolve().parent.parent
EXEMPTIONS = Path(__file__).with_name("exempt_reasons.toml")
FOLDERS = ("wms", "portal", "matching", "templates")

_REASON = re.compile(r"-?(?:\w+_)?(?:reason|why)")
#: What is named so is no text, but whether there has to be one, or what is grouped by it.
_NO_TEXT = re.compile(r"(?:needs|has|is|takes|wants)_|(?:\w+_)?by_")
_LOOKUP = re.compile(
    r"(?:\w+_)?(?:reason|why)(?:__(?:lower|upper|trim))?__(?:i?exact|i?contains|i?startswith|"
    r"i?endswith|i?regex|in|gte?|lte?|range|search|trigram\w+)"
)
_SQL = re.compile(
    r"\breason(?:::text)?\s*(?:(?:NOT\s+)?I?LIKE\b|(?:NOT\s+)?SIMILAR\b|!?~|(?:=|<>|!=)\s*'[^'{])"
    r"|_reason(?:::text)?\s*(?:(?:NOT\s+)?I?LIKE\b|(?:NOT\s+)?SIMILAR\b|!?~|(?:=|<>|!=)\s*'[^'{])"
    r"|\b(?:ORDER|GROUP)\s+BY\s[^()]*?(?:\b|_)reason\b"
    r"|\b(?:starts_with|strpos|position|substr(?:ing)?|regexp_\w+|right)\s*\([^()]*?(?:\b|_)reason\b",
    re.I,
)
_TEMPLATE = re.compile(
    r"{%\s*(?:el)?if\b[^%]*?(?:\breason|_reason)\s*(?:[=!<>]=|[<>]|(?:not\s+)?in\b)\s*(?!\"\")"
    r"|{%\s*(?:el)?if\b[^%]*?(?:[=!]=|\bin)\s+[\w.]*reason\b"
    r"|{%\s*regroup\b[^%]*?\bby\s+[\w.]*reason\b"
)
#: What leaves a text the text that it is.
_KEEPING = frozenset({"strip", "lstrip", "rstrip", "lower", "upper", "casefold", "replace"})
_SEARCHING = frozenset(
    {"startswith", "endswith", "removeprefix", "removesuffix", "find", "rfind", "index", "rindex",
     "count", "split", "rsplit", "partition", "rpartition", "splitlines", "__contains__"}
)  # fmt: skip
_MATCHING = frozenset({"match", "search", "fullmatch", "findall", "finditer", "split", "sub"})
_SELECTING = frozenset({"filter", "exclude", "get", "Q", "When", "get_or_create", "aget"})
_ORDERING = frozenset(
    {"order_by", "distinct", "latest", "earliest", "GroupBy", "StrIndex", "Substr", "Right"}
)
_SORTING = frozenset({"sorted", "sort", "groupby", "min", "max"})


@dataclass(frozen=True, slots=True)
class Fault:
    """A place that decides by a reason; `scope` is the function or class that it is in."""

    path: str
    scope: str
    line: int
    said: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.scope or 'module'}: {self.said}"


def is_reason_name(name: str) -> bool:
    """Whether what is named so holds a reason."""
    return bool(_REASON.fullmatch(name)) and not _NO_TEXT.match(name)


def faults_of_template(text: str, path: str) -> list[Fault]:
    """All the places of one template, in the order of their lines."""
    lines = enumerate(text.splitlines(), start=1)
    found = ((number, match) for number, line in lines for match in _TEMPLATE.finditer(line))
    return [Fault(path, "", number, f"decides by a reason: {match[0]}") for number, match in found]


def faults_of(text: str, path: str) -> list[Fault]:
    """All the places of one module, in the order of their lines."""
    finder = _Finder(path)
    finder.visit(ast.parse(text, path))
    return sorted(finder.faults, key=lambda fault: fault.line)


class _Finder(ast.NodeVisitor):
    """Walks a module, and knows in which function it is and which names there hold reasons."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.faults: list[Fault] = []
        self._scope: list[str] = []
        self._aliases: list[frozenset[str]] = [frozenset()]

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._enter(node, self._aliases_in(node))

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._enter(node, frozenset())

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        if any(map(self._is_reason, sides)) and not any(map(_is_nothing, sides)):
            self._tell(node, "compares a reason")
        self.generic_visit(node)

    def visit_Match(self, node: ast.Match) -> None:
        if self._is_reason(node.subject):
            self._tell(node, "compares a reason")
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        is_bound = isinstance(node.slice, ast.Slice) and node.slice.lower is node.slice.step is None
        if self._is_reason(node.value) and not is_bound and not _is_key(node.slice):
            self._tell(node, "takes a reason apart")
        if _is_constant(node.value) and self._is_reason(node.slice):
            self._tell(node, "looks up what a reason means")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        called = _called(node)
        on = node.func.value if isinstance(node.func, ast.Attribute) else None
        given = [*node.args, *(each.value for each in node.keywords)]
        if called in _SEARCHING and on is not None and self._is_reason(on):
            self._tell(node, f"searches a reason: {called}")
        elif called in _MATCHING and on is not None and any(map(self._is_reason, node.args)):
            self._tell(node, f"matches a reason with a pattern: {called}")
        elif called in _ORDERING and any(map(_names_reason, node.args)):
            self._tell(node, f"orders or cuts by a reason: {called}")
        elif called in _SORTING and any(map(self._sorts_by_reason, given)):
            self._tell(node, f"orders by reasons: {called}")
        elif called == "get" and node.args and _reads_reason(node.args[0]):
            self._tell(node, "looks up what a reason means")
        elif called == "annotate" and on is not None and _groups_by_reason(on):
            self._tell(node, "groups by a reason")
        if called in _SELECTING:
            self._look_at_lookups(node)
        self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg and _LOOKUP.fullmatch(node.arg):
            self._tell(node.value, f"looks a reason up: {node.arg}")
        elif node.arg == "field_name" and _names_reason(node.value):
            self._tell(node.value, "filters by a reason")
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        names = [each.id for each in node.targets if isinstance(each, ast.Name)]
        is_order = any(name in {"ordering", "order_by"} for name in names)
        if is_order and any(_names_reason(each) for each in ast.walk(node.value)):
            self._tell(node, "orders by a reason")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if not isinstance(node.value, str):
            return
        if _LOOKUP.fullmatch(node.value.rpartition("}")[2]):
            self._tell(node, f"looks a reason up: {node.value}")
        elif " " in node.value and (found := _SQL.search(node.value)):
            self._tell(node, f"SQL decides by a reason: {' '.join(found[0].split())}")

    def _enter(
        self,
        node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef,
        aliases: frozenset[str],
    ) -> None:
        self._scope.append(node.name)
        self._aliases.append(self._aliases[-1] | aliases)
        self.generic_visit(node)
        self._aliases.pop()
        self._scope.pop()

    def _aliases_in(self, function: ast.AST) -> frozenset[str]:
        """The names that a function gives reasons to, from the first to the last."""
        found: set[str] = set()
        for node in ast.walk(function):
            value = getattr(node, "value", None)
            if isinstance(node, ast.Assign | ast.NamedExpr) and self._is_reason(value, found):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found.update(each.id for each in targets if isinstance(each, ast.Name))
        return frozenset(found)

    def _is_reason(self, node: ast.AST | None, aliases: Collection[str] = ()) -> bool:
        """Whether the value of an expression is a reason, or a part of one."""
        match node:
            case ast.Name(id=name) if name in aliases or name in self._aliases[-1]:
                return True
            case ast.Subscript(value=value, slice=ast.Slice()) | ast.NamedExpr(value=value):
                return self._is_reason(value, aliases)
            case ast.Call(func=ast.Attribute(attr=name, value=value)) if name in _KEEPING:
                return self._is_reason(value, aliases)
            case ast.Call(func=ast.Name(id="str"), args=[value]):
                return self._is_reason(value, aliases)
            case ast.BoolOp(values=values):
                return any(self._is_reason(each, aliases) for each in values)
            case ast.IfExp(body=body, orelse=other):
                return self._is_reason(body, aliases) or self._is_reason(other, aliases)
        return _reads_reason(node)

    def _sorts_by_reason(self, node: ast.AST) -> bool:
        """Whether a key by which is sorted, or what is sorted, is reasons."""
        match node:
            case ast.Lambda(body=ast.Tuple(elts=parts)):
                return any(map(self._is_reason, parts))
            case ast.Lambda(body=body):
                return self._is_reason(body)
            case ast.GeneratorExp(elt=part) | ast.ListComp(elt=part) | ast.SetComp(elt=part):
                return self._is_reason(part)
            case ast.Call() if _called(node) == "attrgetter":
                return any(map(_names_reason, node.args))
        return False

    def _look_at_lookups(self, node: ast.Call) -> None:
        for each in node.keywords:
            name = (each.arg or "").rpartition("__")[2]
            if is_reason_name(name) and not _is_nothing(each.value):
                self._tell(node, f"looks a reason up: {each.arg}")

    def _tell(self, node: ast.expr | ast.stmt, said: str) -> None:
        self.faults.append(Fault(self.path, ".".join(self._scope), node.lineno, said))


def _reads_reason(node: ast.AST | None) -> bool:
    """Whether a name, an attribute or a key is read that holds a reason."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return is_reason_name(name)
        case ast.Subscript(slice=ast.Constant(value=str(name))):
            return is_reason_name(name)
        case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=str(name)), *_]):
            return is_reason_name(name)
        case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str(name)), *_]):
            return is_reason_name(name)
    return False


def _called(node: ast.Call) -> str:
    match node.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def _is_key(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_constant(node: ast.AST) -> bool:
    """Whether this is a table that the code has from the beginning, by its name."""
    return isinstance(node, ast.Name) and node.id.isupper()


def _is_nothing(node: ast.AST) -> bool:
    """An empty text or None: whoever compares with these asks only whether there is a reason."""
    return isinstance(node, ast.Constant) and node.value in ("", None)


def _names_reason(node: ast.AST) -> bool:
    """Whether a column is named that holds a reason, as "-dag__state_reason" or F("reason")."""
    match node:
        case ast.Constant(value=str(name)):
            return is_reason_name(name.rpartition("__")[2])
        case ast.Call(func=ast.Attribute(attr="asc" | "desc", value=value)):
            return _names_reason(value)
        case ast.Call(args=[name, *_]) if _called(node) in {"F", "Lower", "Upper", "Left"}:
            return _names_reason(name)
    return False


def _groups_by_reason(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and _called(node) in {"values", "values_list"}
        and any(map(_names_reason, node.args))
    )


_READERS = {".py": faults_of, ".html": faults_of_template}


def exempt(faults: Sequence[Fault], exemptions: Mapping[str, str]) -> tuple[list[Fault], list[str]]:
    """The faults that no exemption covers, and the exemptions that cover nothing.

    Exemptions are named `path:scope`, and their values say why.
    """
    places = {f"{fault.path}:{fault.scope}" for fault in faults}
    left = [fault for fault in faults if f"{fault.path}:{fault.scope}" not in exemptions]
    return left, sorted(exemptions.keys() - places)


def files(folders: Iterable[Path]) -> Iterator[Path]:
    """The files to be looked at. Migrations are history: they change what was, once."""
    for folder in folders:
        found = [path for path in folder.rglob("*") if path.suffix in _READERS]
        yield from sorted(path for path in found if "migrations" not in path.parts)


def main(arguments: Sequence[str]) -> int:
    folders = [Path(each).resolve() for each in arguments] or [BASE / name for name in FOLDERS]
    exemptions = tomllib.loads(EXEMPTIONS.read_text(encoding="utf-8"))["exempt"]
    found = [
        fault
        for path in files(folders)
        for fault in _READERS[path.suffix](
            path.read_text(encoding="utf-8"), str(path.relative_to(BASE))
        )
    ]
    left, unused = exempt(found, exemptions)
    for fault in left:
        sys.stdout.write(f"{fault}\n")
    for place in unused if not arguments else ():
        sys.stdout.write(f"{place}: is exempt, and decides by no reason\n")
    return 1 if left or unused else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
