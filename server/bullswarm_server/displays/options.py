"""The ways on from a workflow, each a name and the command that does what the name says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# As wide as the longest name, with two cells of air.
_WIDTH = 17
_NAMES = {
    "continue": "go on", "rerun": "rerun elsewhere", "retry": "try again", "accept": "accept anyway",
    "takeOver": "take over", "restart": "restart the step", "add": "add steps", "resume": "end the pause",
}  # fmt: skip
_RERUN_ANYWHERE = "rerun"


def your_call(result: Mapping[str, Any]) -> list[str]:
    """Return the ways on of a workflow's result, each as it is typed; no line where there is none."""
    options = (result.get("handback") or {}).get("options") or {}
    shown = [f"  {option_name(name, str(value)):<{_WIDTH}}{value}" for name, value in options.items()]
    return ["your call:", *shown] if shown else []


def option_name(option: str, command: str) -> str:
    """Return what a way on is called: a rerun is one elsewhere only where its command keeps it from the pools it was on."""
    if option == "rerun" and " --avoid " not in command:
        return _RERUN_ANYWHERE
    return _NAMES.get(option, option)
