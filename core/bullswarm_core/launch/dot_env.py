"""A ``.env`` in the folder of work, and the CLIs that take their own settings out of it.

Such a CLI would be billed by a key of the project's, or send the person's key where the project says.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from bullswarm_core.fast.files import open_ordinary
from bullswarm_core.launch.project_settings import LARGEST_BYTES as LARGEST_DIGESTED_BYTES
from bullswarm_core.launch.project_settings import places_above

# No settings of a person's are longer; a file that is, is not read to its end.
LARGEST_BYTES = 64 * 1024
_ANY_NAME = re.compile(rb"([A-Za-z_][A-Za-z0-9_]*)\s*[=:]")
_NAME = re.compile(rb"^[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*[=:]", re.MULTILINE)


def emptied(names: Sequence[str], environ: Mapping[str, str], removed: Sequence[str]) -> dict[str, str]:
    """Return the ``names`` that the worker's environment would not set, each as an empty text.

    A ``.env`` fills what is missing and leaves alone what is there; to the CLIs an empty variable is none.
    """
    return {name: "" for name in names if name not in environ or name in removed}


def names_like(folder: str, pattern: str) -> tuple[str, ...]:
    """Return the names that the ``.env`` files in and above ``folder`` may set and ``pattern`` finds.

    The CLIs take no notice of a repository's root: they look up to the home folder, or to the file system's root. Whatever
    precedes an equals sign or a colon may be a name: each CLI's own reading of the file differs a little.
    """
    if not pattern:
        return ()
    found: dict[str, None] = {}
    for place in places_above(folder, everywhere=True):
        try:
            with open_ordinary(place / ".env") as file:
                content = file.read(LARGEST_DIGESTED_BYTES)
        except (OSError, ValueError):
            continue
        found |= {name.decode(): None for name in _ANY_NAME.findall(content) if re.search(pattern, name.decode())}
    return tuple(found)


def names_set_in(folder: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return those of ``names`` that the ``.env`` of ``folder`` sets; nothing for a file that is none or can't be read."""
    if not names:
        return ()
    try:
        with open_ordinary(os.path.join(folder, ".env")) as file:  # noqa: PTH118
            content = file.read(LARGEST_BYTES)
    except (OSError, ValueError):
        return ()
    found = {match.decode() for match in _NAME.findall(content)}
    return tuple(name for name in names if name in found)
