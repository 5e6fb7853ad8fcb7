"""Display labels of pools: what people read and type instead of a pool id.

Ids never change: credentials, meters, history and workflow records refer to them. A label is only for the eye: it is
in no file that another program reads, and in JSON it stands beside the id.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from bullswarm_core.errors import BullswarmError, StateError, UnknownNameError, UsageError
from bullswarm_core.fast.text import one_line
from bullswarm_core.store.home import Home, file_lock, read_json, write_json

VERSION = 1
LONGEST_LABEL = 80
"""In characters; a label stands in every line about its pool, and an agent may set one."""
# Where a command begins in a text of ours, and what ends it there.
_COMMAND = "bullswarm "
_ENDS_OF_COMMAND = "·)`\n"

# Default-ignorable characters that are neither format nor control: fillers, joiners and selectors of variants; and the blank
# pattern of Braille.
_IGNORABLE = (
    (0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2800, 0x2800), (0x3164, 0x3164),
    (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xE0000, 0xE0FFF),
)  # fmt: skip
_POOLS_FILE = "pools.json"

WhyNoPool = Callable[[str], str | None]


class Labels:
    """The labels of one home: at most one per pool id, all different."""

    __slots__ = ("_by_id",)

    def __init__(self, by_id: Mapping[str, str] | None = None) -> None:
        self._by_id = dict(by_id or {})

    @classmethod
    def load(cls, home: Home) -> Labels:
        """Read pool-labels.json; no file means no labels. Raises StateError for one that cannot be understood.

        A label that is the id of another pool of this machine, one that came later, is left out: its name means that pool.
        """
        labels = cls.kept(home)
        return labels.among(_known_pools(home)) if labels.items() else labels

    @classmethod
    def kept(cls, home: Home) -> Labels:
        """Read pool-labels.json as it stands, with labels that are not shown now. Raises StateError as ``load`` does."""
        return cls(_labels_in(read_json(home.labels_file), home))

    def items(self) -> list[tuple[str, str]]:
        """Return (pool id, label) pairs by id."""
        return sorted(self._by_id.items())

    def of(self, pool_id: str) -> str | None:
        """Return the label of a pool, or None."""
        return self._by_id.get(pool_id)

    def shown(self, pool_id: str) -> str:
        """Return what people see for a pool: its label, else its id."""
        return self._by_id.get(pool_id, pool_id)

    def typed(self, pool_id: str) -> str:
        """Return what a command names a pool by, not yet quoted: its label, else its id."""
        return typed_name(pool_id, self.of(pool_id))

    def among(self, pool_ids: Collection[str]) -> Labels:
        """Leave out a label that is the id of another of ``pool_ids``: that pool may have come after the label."""
        taken = set(pool_ids)
        return Labels({pool: label for pool, label in self._by_id.items() if label == pool or label not in taken})

    def resolve(self, name: str, pool_ids: Collection[str], *, why_no_pool: WhyNoPool | None = None) -> str:
        """Return the id of the pool that ``name``, an id or a label, stands for; raise UnknownNameError for no pool.

        ``why_no_pool`` tells why a name that is no pool could have been one, such as a CLI that isn't installed.
        """
        if name in pool_ids:
            return name
        for pool_id, label in self._by_id.items():
            if label == name and pool_id in pool_ids:
                return pool_id
        why = why_no_pool(name) if why_no_pool else None
        raise unknown_pool(
            name, why=why or _meant(name, {*pool_ids, *(label for _, label in self.among(pool_ids).items())})
        )

    def in_text(self, text: str, pool_ids: Iterable[str] = ()) -> str:
        """Return ``text`` for people: every pool id that stands as a word of its own becomes its label.

        ``pool_ids`` are further ids that exist: inside ``claude-code:acme`` the id ``claude-code`` is not replaced. In a
        command the label is quoted as a shell reads it, so that what is printed can be typed.
        """
        if not self._by_id:
            return text
        import re

        names = sorted(
            {*self._by_id, *pool_ids}, key=len, reverse=True
        )  # the longest first, so that none hides in another
        choices = "|".join(re.escape(name) for name in names)
        # No part of a longer id, of a path or of a model name; a full stop or colon may end the sentence behind it.
        pattern = rf"(?<![\w:./@-])(?:{choices})(?![\w/@-]|[:.]\w)"
        return re.sub(pattern, lambda found: self._in_place(found.group(), text[: found.start()]), text)

    def _in_place(self, pool_id: str, before: str) -> str:
        """Return the name of a pool as it stands behind ``before``: as a word of a command, or as it is read."""
        begins = before.rfind(_COMMAND)
        if begins < 0 or any(mark in before[begins:] for mark in _ENDS_OF_COMMAND):
            return self.shown(pool_id)
        import shlex

        return shlex.quote(self.typed(pool_id))


def typed_name(pool_id: str, label: str | None) -> str:
    """Return what a command names a pool by: its label, or its id where the label would be read as something else.

    A comma parts the names of a list, a dash begins an option, and what can't be shown can't be copied from the screen.
    """
    if label is None or "," in label or label.startswith("-") or label != one_line(label):
        return pool_id
    return label


def remember_pools(home: Home, pool_ids: Iterable[str]) -> None:
    """Note which pools this machine has, for ``Labels.load``: finding them costs as much as a whole verb.

    Nothing is written while there are no labels, nor where the home can't be written. The state for the hooks tells of pools
    too, but is no such memory: fewer verbs write it, and it keeps pools that only other processes find.
    """
    pools = sorted(pool_ids)
    if not home.labels_file.is_file() or pools == _known_pools(home):
        return
    with contextlib.suppress(BullswarmError, OSError):
        write_json(home.cache_dir / _POOLS_FILE, pools)


def _known_pools(home: Home) -> list[str]:
    """Return the ids of the pools that were last found on this machine; a memory that is lost hides no label."""
    try:
        found = read_json(home.cache_dir / _POOLS_FILE, default=[])
    except StateError:
        return []
    return [pool for pool in found if isinstance(pool, str)] if isinstance(found, list) else []


def _meant(name: str, known: Collection[str]) -> str | None:
    import difflib

    near = sorted(each for each in known if name and each.startswith(name)) or difflib.get_close_matches(
        name, known, n=1
    )
    return f"did you mean {near[0]}?" if near else None


def unknown_pool(name: str, *, why: str | None = None) -> UnknownNameError:
    """Return the error for a name that is neither the id nor the label of a pool; ``why`` it isn't, where that is known."""
    return UnknownNameError(f'unknown pool "{name}" — bullswarm pools lists them', hint=why)


def set_label(
    home: Home, name: str, label: str, pool_ids: Collection[str], *, why_no_pool: WhyNoPool | None = None
) -> str:
    """Give the pool ``name`` (id or label) the label, and return its id.

    Raises UnknownNameError for a name that is no pool, and UsageError for a label that is empty, has a space, a comma or a
    character without a shape, is too long, or is taken: by another pool's id or label, or by one that differs in case or
    width alone.
    """
    if unseen := next((letter for letter in label if _is_unseen(letter)), None):
        raise UsageError(f"pool label {label!a} has a character that nobody sees: U+{ord(unseen):04X}")
    if not label or not label.isprintable() or any(letter.isspace() for letter in label):
        raise UsageError("pool label must be non-empty and contain no spaces")
    if len(label) > LONGEST_LABEL:
        raise UsageError(f"pool label has {len(label)} characters and may have {LONGEST_LABEL}")
    if "," in label:
        # `--avoid a,b` names two pools: a label like that could be typed in no list, and a printed command would mean others.
        raise UsageError(f'pool label "{label}" has a comma, which parts the names of a list')
    home.ensure()
    with _lock(home):
        document = _document(home)
        labels = _labels_in(document, home)
        pool_id = Labels(labels).resolve(name, pool_ids, why_no_pool=why_no_pool)
        if label in pool_ids and label != pool_id:
            raise UsageError(f'pool label "{label}" is another pool\'s id')
        _refuse_twin(label, pool_id, pool_ids, labels)
        for other, taken in sorted(labels.items()):
            if taken == label and other != pool_id:
                raise UsageError(f'pool label "{label}" is already used by {other}')
        _write(home, document, {**labels, pool_id: label})
    return pool_id


def _refuse_twin(label: str, pool_id: str, pool_ids: Collection[str], labels: Mapping[str, str]) -> None:
    """Raise UsageError for a label that looks like another pool's name: the same but for case, width or ligatures (NFKC).

    Letters of two scripts that only look alike are not told apart: no rule without a table of them is sound.
    """
    for taken, is_label in (*((each, False) for each in pool_ids), *((each, True) for each in labels.values())):
        owner = next((pool for pool, each in labels.items() if each == taken), taken) if is_label else taken
        if owner != pool_id and taken != label and _look(taken) == _look(label):
            raise UsageError(
                f'pool label "{label}" looks like {taken}, the name of another pool', hint="choose another one"
            )


def _look(name: str) -> str:
    from unicodedata import normalize

    return normalize("NFKC", normalize("NFKC", name.casefold()).casefold())


def _is_unseen(letter: str) -> bool:
    """Tell whether a character has no shape of its own (Unicode: format characters and the other default-ignorable ones)."""
    from unicodedata import category

    return category(letter) in ("Cf", "Zl", "Zp") or any(first <= ord(letter) <= last for first, last in _IGNORABLE)


def clear_label(
    home: Home, name: str, pool_ids: Collection[str], *, why_no_pool: WhyNoPool | None = None
) -> tuple[str, str | None]:
    """Take the label of the pool ``name`` (id or label) away; return its id and the label it had.

    A pool that is gone but still has a label counts too. Raises UnknownNameError for a name that is no pool.
    """
    labels = _labels_in(read_json(home.labels_file), home)
    pool_id = Labels(labels).resolve(name, {*pool_ids, *labels}, why_no_pool=why_no_pool)
    if pool_id not in labels:
        return pool_id, None
    with _lock(home):
        document = _document(home)
        labels = _labels_in(document, home)
        label = labels.pop(pool_id, None)
        _write(home, document, labels)
    return pool_id, label


def _lock(home: Home) -> Any:
    return file_lock(home.root / "pool-labels.lock")


def _document(home: Home) -> dict[str, Any]:
    document = read_json(home.labels_file, default={})
    _labels_in(document, home)
    return dict(document)


def _write(home: Home, document: dict[str, Any], labels: dict[str, str]) -> None:
    write_json(home.labels_file, {"version": VERSION, **document, "labels": dict(sorted(labels.items()))})


def _labels_in(document: Any, home: Home) -> dict[str, str]:
    file = home.labels_file
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise StateError(f"{file}: the document is not a JSON object", hint="correct it, or move it aside")
    version = document.get("version", VERSION)
    if version != VERSION:
        raise StateError(
            f"{file} has version {version!r}, and this program knows version {VERSION}", hint="update bullswarm"
        )
    labels = document.get("labels", {})
    if not isinstance(labels, dict):
        raise StateError(
            f"{file} field labels: {labels!r} is not a JSON object", hint="correct it, or move the file aside"
        )
    for pool_id, label in labels.items():
        if not isinstance(label, str) or not label:
            raise StateError(f"{file} field labels.{pool_id}: {label!r} is not a label", hint="correct or remove it")
    return dict(labels)
