from __future__ import annotations

import ast
import hashlib
import io
import sys
import zipfile
from pathlib import Path

import pytest

from wms.pilots import agent
from wms.pilots.program.bundle import agent_bundle

FOLDER = Path(agent.__file__).parent
SOURCES = sorted(FOLDER.rglob("*.py"))
#: Names that newer Pythons brought into the library; the agent must do without them.
NEWER = {
    "asyncio": {"TaskGroup", "timeout", "Runner"},
    "contextlib": {"aclosing", "chdir"},
    "dataclasses": {"KW_ONLY"},
    "datetime": {"UTC"},
    "enum": {"StrEnum"},
    "hashlib": {"file_digest"},
    "inspect": {"get_annotations"},
    "itertools": {"pairwise", "batched"},
    "types": {"NoneType", "UnionType"},
    "typing": {"ParamSpec", "TypeAlias", "TypeGuard", "Self", "assert_never", "override"},
}
NEWER_MODULES = {"tomllib"}


def test_the_bundle_is_the_same_bytes_each_time() -> None:
    first = agent_bundle()
    agent_bundle.cache_clear()

    second = agent_bundle()

    assert first == second
    assert second.sha256 == hashlib.sha256(second.content).hexdigest()


def test_the_bundle_holds_the_whole_agent_and_is_small() -> None:
    bundle = agent_bundle()

    names = zipfile.ZipFile(io.BytesIO(bundle.content)).namelist()

    sources = [f"pilot/{source.relative_to(FOLDER).as_posix()}" for source in SOURCES]
    assert names == ["__main__.py", *sources]
    assert len(bundle.content) < 200_000


def _path(source: Path) -> str:
    return source.relative_to(FOLDER).as_posix()


@pytest.mark.parametrize("source", SOURCES, ids=_path)
def test_the_agent_is_written_in_the_language_of_python_3_9(source: Path) -> None:
    tree = ast.parse(source.read_text(), feature_version=(3, 9))

    for node in ast.walk(tree):
        assert not isinstance(node, ast.Match)
        assert not _has_keyword(node, "dataclass", {"slots", "kw_only"})
        assert not _has_keyword(node, "zip", {"strict"})
        assert not _is_slice_of_parents(node)
    assert _unions_at_run_time(tree) == []


def _is_slice_of_parents(node: ast.AST) -> bool:
    """The parents of a path have slices since Python 3.10."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Slice):
        return False
    return isinstance(node.value, ast.Attribute) and node.value.attr == "parents"


@pytest.mark.parametrize("source", SOURCES, ids=_path)
def test_the_agent_imports_the_standard_library_of_python_3_9_only(source: Path) -> None:
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Import):
            modules = {alias.name.split(".")[0] for alias in node.names}
            assert modules <= sys.stdlib_module_names - NEWER_MODULES
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            assert node.module in {"__future__"} or node.module.split(".")[0] in (
                sys.stdlib_module_names - NEWER_MODULES
            )
            assert not {alias.name for alias in node.names} & NEWER.get(node.module, set())
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            assert node.attr not in NEWER.get(node.value.id, set())


def _has_keyword(node: ast.AST, function: str, keywords: set[str]) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == function
        and any(keyword.arg in keywords for keyword in node.keywords)
    )


def _unions_at_run_time(tree: ast.Module) -> list[int]:
    """Lines of `X | None` outside of annotations, which only newer Pythons can compute."""
    annotations: set[int] = set()
    for node in ast.walk(tree):
        for name in ("annotation", "returns"):
            annotation = getattr(node, name, None)
            if annotation is not None:
                annotations.update(id(each) for each in ast.walk(annotation))
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.BitOr)
        and id(node) not in annotations
        and isinstance(node.right, ast.Constant)
        and node.right.value is None
    ]
