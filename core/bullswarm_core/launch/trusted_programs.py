"""Which programs run without confinement, and whether a worker could write one of them.

bullswarm judges a worker with its own program, its Python and its packages, and starts the pool's CLI again for the next
task. A worker that could change one of these would run code outside of its confinement.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from bullswarm_core.fast.files import open_ordinary

_PACKAGES = (
    "bullswarm_core",
    "bullswarm_simulation",
    "bullswarm_providers",
    "bullswarm_server",
    "bullswarm_hooks",
    "landlockpy",
)
_MODULES = "node_modules"
# Linux reads no more of a script's first line.
_FIRST_LINE = 256


@cache
def program_places() -> tuple[str, ...]:
    """Return the real paths of bullswarm's packages, of its Python, and of the folders from which that imports.

    What PYTHONPATH names is among them: Python looks there first, also for a module that bullswarm has never loaded.
    """
    import sysconfig
    from importlib.util import find_spec

    paths = sysconfig.get_paths()
    found = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib", "scripts") if name in paths]
    # The base's own packages, too: a virtual environment may be one that sees them.
    python = Path(sys.executable)
    found += [str(place) for place in (Path(os.__file__).parent, python.parent, python, python.resolve().parent)]
    for name in _PACKAGES:
        spec = find_spec(name)
        found += (spec.submodule_search_locations or ()) if spec is not None else ()
    named = os.environ.get("PYTHONPATH", "")
    # Python takes an empty entry for the folder in which it is started.
    found += named.split(os.pathsep) if named else ()
    return tuple(dict.fromkeys(os.path.realpath(place) for place in found))


def command_places(binary: str, *, search_path: str | None) -> tuple[str, ...]:
    """Return what a start of ``binary`` runs: each link on the way, the program, its npm packages, its interpreter."""
    found = _links(binary)
    real = found[-1]
    parts = Path(real).parts
    if _MODULES in parts:
        found.append(str(Path(*parts[: parts.index(_MODULES) + 1])))
    interpreter = _interpreter(real, search_path)
    if interpreter is not None:
        found += _links(interpreter)
    return tuple(dict.fromkeys(found))


def place_in_reach(places: Iterable[str], folder: str) -> str | None:
    """Return the first of ``places`` that a worker which may write in ``folder`` could change, or None."""
    real = os.path.realpath(folder)
    return next((place for place in places if _within(place, real) or _within(real, place)), None)


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _links(path: str) -> list[str]:
    """Return the place of each link on the way to a program, with the real path of its folder, and the program last."""
    found: list[str] = []
    here = Path(path).absolute()
    while True:
        here = here.parent.resolve() / here.name
        if str(here) in found:
            return found
        found.append(str(here))
        try:
            here = here.parent / here.readlink()
        except OSError:
            return found


def _interpreter(program: str, search_path: str | None) -> str | None:
    try:
        with open_ordinary(Path(program)) as file:
            line = file.read(_FIRST_LINE).split(b"\n", 1)[0]
    except OSError:
        return None
    words = os.fsdecode(line[2:]).split() if line.startswith(b"#!") else []
    if words and Path(words[0]).name == "env":
        named = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        return shutil.which(named[0], path=search_path) if named else None
    return words[0] if words and Path(words[0]).is_absolute() else None
