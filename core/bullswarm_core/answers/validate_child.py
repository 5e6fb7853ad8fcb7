"""A program of its own: checks one JSON value against one schema with the library ``jsonschema``, and prints the problems.

Apart from the kernel, because a pattern or a nest of alternatives may take for ever on a value that a worker chose, and
because the library costs a sixth of a second and 20 MB that a kernel of quiet workers has no use for. It gets both as JSON on
standard input, already read and bounded, and imports nothing of ours.
"""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from itertools import islice
from typing import Any

# More problems help nobody who corrects an answer.
_MOST_PROBLEMS = 100
_LONGEST = 300
_LONGEST_KEY = 100
# A schema that refers to itself takes some ten frames for a level of the value, of which there are at most 64.
FRAMES = 4000


def problems(schema: Any, value: Any) -> list[tuple[list[str | int], str]]:
    """Return (place in the value, what is wrong there) for each problem, at most 100."""
    return problems_of(validator_of(schema), value)


def validator_of(schema: Any) -> Any:
    """Return the library's validator of a schema, for one value or many."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend
    from referencing import Registry

    # An empty registry: no reference is ever fetched from anywhere.
    return extend(Draft202012Validator, {"multipleOf": _multiple_of})(schema, registry=Registry())


def problems_of(validator: Any, value: Any) -> list[tuple[list[str | int], str]]:
    """Return the problems of one value, like `problems`."""
    from jsonschema.exceptions import best_match

    found = []
    for error in islice(validator.iter_errors(value), _MOST_PROBLEMS):
        deepest = best_match(iter([error])) or error
        found.append(
            (
                [token[:_LONGEST_KEY] if isinstance(token, str) else token for token in deepest.absolute_path],
                _words(deepest),
            )
        )
    return found


def _multiple_of(validator: Any, step: Any, value: Any, schema: Any) -> Any:
    """Divide as people do: 0.3 is a multiple of 0.1, which the library's binary fractions deny."""
    from jsonschema.exceptions import ValidationError

    if validator.is_type(value, "number") and Fraction(str(value)) % Fraction(str(step)):
        yield ValidationError(f"{value} is not a multiple of {step}")


def _words(error: Any) -> str:
    if len(error.message) <= _LONGEST:
        return str(error.message)
    asked = json.dumps(error.validator_value, ensure_ascii=False)
    return f"it does not satisfy {error.validator} {asked if len(asked) <= _LONGEST else asked[:_LONGEST] + '…'}"


def main() -> None:
    """Read ``{"schema", "value"}`` and print the list of problems."""
    sys.setrecursionlimit(FRAMES)
    given = json.load(sys.stdin)
    sys.stdout.write(json.dumps(problems(given["schema"], given["value"])))


if __name__ == "__main__":
    main()
