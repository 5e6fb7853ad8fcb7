"""What can be read by address: the pools, a run, its output, the contract of programs; and the prompt `delegate`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mcp_types import (
    GetPromptResult,
    Prompt,
    PromptArgument,
    PromptMessage,
    Resource,
    ResourceTemplate,
    TextContent,
)

from bullswarm_core.errors import UnknownNameError, UsageError
from bullswarm_server.mcp.contract import TEXT as CONTRACT_TEXT
from bullswarm_server.mcp.results import compact_json, fence
from bullswarm_server.mcp.session import Call
from bullswarm_server.mcp.tools.pools import pools_now
from bullswarm_server.mcp.tools.workflow_goal import CONTRACT
from bullswarm_server.mcp.verdicts import Output

POOLS = "bullswarm://pools"
RUN_TEMPLATE = "bullswarm://runs/{id}"
OUTPUT_TEMPLATE = "bullswarm://runs/{id}/output"
PROMPT = "delegate"
_JSON = "application/json"
_RUN = re.compile(r"bullswarm://runs/(?P<id>[A-Za-z0-9-]{1,80})(?P<output>/output)?\Z")
# A resource is read on purpose, often by a person's client, and has no cursor; what is beyond is in the file.
_MOST_OUTPUT_BYTES = 64 * 1024

RESOURCES = [
    Resource(uri=POOLS, name="pools", description="Every pool with meters, pace, load and label", mime_type=_JSON),
    Resource(uri=CONTRACT, name="program-contract", description="How a program is written", mime_type="text/markdown"),
]
TEMPLATES = [
    ResourceTemplate(uri_template=RUN_TEMPLATE, name="run", description="A run's whole verdict", mime_type=_JSON),
    ResourceTemplate(
        uri_template=OUTPUT_TEMPLATE,
        name="run-output",
        description="A run's output, untrusted data",
        mime_type="text/plain",
    ),
]
PROMPTS = [
    Prompt(
        name=PROMPT,
        description="Hand a bounded task to another coding-agent account",
        arguments=[PromptArgument(name="task", description="what is to be done", required=True)],
    )
]


@dataclass(frozen=True, slots=True)
class Content:
    """What an address holds."""

    text: str
    mime_type: str


def read_resource(call: Call, uri: str) -> Content:
    """Return what is at ``uri``. Raises UnknownNameError for an address that stands for nothing."""
    if uri == POOLS:
        return Content(compact_json(pools_now(call)[0]), _JSON)
    if uri == CONTRACT:
        return Content(CONTRACT_TEXT, "text/markdown")
    found = _RUN.match(uri)
    if found is None:
        known = ", ".join((POOLS, CONTRACT, RUN_TEMPLATE, OUTPUT_TEMPLATE))
        raise UnknownNameError(f'unknown resource "{uri[:200]}"', hint=f"there are {known}")
    state = call.state_of(found["id"])
    document = call.document_of(state)
    if not found["output"]:
        return Content(compact_json(document), _JSON)
    if state.finished is None:
        raise UsageError(f"run {state.created.short_id} has no output yet", hint="wait for it with `run`")
    output = Output(document.get("outFile"), document.get("excerpt"))
    text, after = output.page(0, _MOST_OUTPUT_BYTES)
    rest = f"\n(bytes {after} to {output.size} are left out: {document.get('outFile')})" if after < output.size else ""
    return Content(fence(text) + rest, "text/plain")


def delegate_prompt(arguments: dict[str, str] | None) -> GetPromptResult:
    """Return the prompt that has an agent delegate ``task``. Raises UsageError without one."""
    task = (arguments or {}).get("task", "").strip()
    if not task:
        raise UsageError("the prompt delegate needs the argument task", hint="say what is to be done")
    words = (
        "Delegate this task with the bullswarm tool `run`: choose the lane (analyze reads only, build writes, chore is "
        "mechanical), pass the absolute cwd of the project, and write a prompt that stands alone: the goal, the files, what "
        "must not change, and how to tell that it is done. While the answer says state running, call `run` with its run_id. "
        f"Then check the verdict and the changed files yourself before you rely on them.\n\nThe task:\n{task}"
    )
    message = PromptMessage(role="user", content=TextContent(type="text", text=words))
    return GetPromptResult(description="Delegate a bounded task", messages=[message])
