"""Program text made of modules of the agent, to be given to an interpreter by `python -c`.

So the supervisor, and what confines a payload inside a fence, run where the files of these modules
cannot be seen. Also used to start the scripts of DAG nodes.
"""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Sequence

_PROGRAM = """import sys, types
for name, text in {modules!r}:
    parts = name.split(".")
    for end in range(1, len(parts)):
        package = sys.modules.setdefault(".".join(parts[:end]), types.ModuleType("package"))
        package.__path__ = []
    module = sys.modules[name] = types.ModuleType(name)
    module.__package__ = name.rpartition(".")[0]
    exec(compile(text, name, "exec"), module.__dict__)
    setattr(package, parts[-1], module)
module.main()
"""


@functools.cache
def program_of(*names: str) -> str:
    """Program text of these modules of the agent; the last one has `main`."""
    return program([module_of(name) for name in names])


def program(modules: Sequence[tuple[str, str]]) -> str:
    """Program text of modules by their full names, each after those that it imports."""
    return _PROGRAM.format(modules=list(modules))


def module_of(name: str) -> tuple[str, str]:
    """Full name and source text of a module of the agent, named as `supervisor.main`."""
    path = name.replace(".", "/") + ".py"
    content = pkgutil.get_data(__package__, path)
    if content is None:
        raise OSError(f"the pilot's own file {path} cannot be read")
    return f"{__package__}.{name}", content.decode()
