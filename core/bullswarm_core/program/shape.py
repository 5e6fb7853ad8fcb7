"""Small checks of single values that collect what is wrong as sentences."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from bullswarm_core.pools import EFFORTS, LANES
from bullswarm_core.program.graph import texts

_ID = re.compile(r"[a-z0-9][a-z0-9-]*\Z")
REASONING = ("low", "medium", "high", "xhigh", "max", "default")
MOST_MINUTES = 240


def is_id(value: Any) -> bool:
    """Tell whether a value is a kebab-case id."""
    return isinstance(value, str) and _ID.match(value) is not None


def is_whole(value: Any, least: int, most: int) -> bool:
    """Tell whether a value is a whole number between the two; true is none."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


class Shape:
    """Collects issues in the order in which they are found."""

    def __init__(self) -> None:
        self.issues: list[str] = []

    def say(self, holds: object, issue: str) -> None:
        """Keep the issue unless something holds."""
        if not holds:
            self.issues.append(issue)

    def no_nulls(self, at: str, given: Mapping[str, Any]) -> None:
        """Refuse null: a field that says nothing is left out."""
        for key, value in given.items():
            self.say(value is not None, f"{at}.{key} is null; leave it out")

    def choices(self, at: str, given: Mapping[str, Any]) -> None:
        """Check the fields that steps and defaults have in common."""
        for key, allowed in (("lane", LANES), ("effort", EFFORTS), ("reasoning", REASONING)):
            if key in given:
                self.say(given[key] in allowed, f"{at}.{key} must be one of {', '.join(allowed)}")
        if "retry" in given:
            self.say(is_whole(given["retry"], 0, 1), f"{at}.retry must be 0 or 1")
        if "timeBox" in given:
            self.say(
                is_whole(given["timeBox"], 0, MOST_MINUTES),
                f"{at}.timeBox must be whole minutes from 0 to {MOST_MINUTES}",
            )

    def ids(self, at: str, value: Any, *, filled: bool = False) -> list[str]:
        """Check a list of ids and return those that are texts."""
        if not isinstance(value, list) or (filled and not value):
            self.issues.append(f"{at} must be {'a non-empty' if filled else 'an'} array of ids")
            return []
        for place, name in enumerate(value):
            self.say(is_id(name), f"{at}[{place}] must be a kebab-case id")
        return self.once(at, value)

    def names(self, at: str, value: Any) -> list[str]:
        """Check a list of names, such as pools, and return those that are texts."""
        whole = isinstance(value, list) and all(isinstance(name, str) and name for name in value)
        self.say(whole, f"{at} must be an array of names")
        return self.once(at, value) if isinstance(value, list) else []

    def once(self, at: str, value: list[Any]) -> list[str]:
        """Say which texts of a list stand in it twice."""
        found = texts(value)
        seen: set[str] = set()
        for name in found:
            self.say(name not in seen, f'{at} names "{name}" twice')
            seen.add(name)
        return found

    def line(self, at: str, value: Any, most: int) -> None:
        """Check an optional text for people: one line that isn't empty."""
        if value is not None:
            whole = isinstance(value, str) and 0 < len(value) <= most and value.isprintable()
            self.say(whole, f"{at} must be one line of 1 to {most} characters")
