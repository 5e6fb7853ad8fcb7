"""Numbers on the pages are the numbers of the program."""

from __future__ import annotations

import re

import pytest
from tests.server.documents import ROOT

from bullswarm_core.answers import answer, data_child, schema
from bullswarm_core.attempts import prepare
from bullswarm_core.dispatch import ledger
from bullswarm_core.program import model, step_checks, validate
from bullswarm_core.program import model as text_issues
from bullswarm_core.quota import durations, history, holds
from bullswarm_core.reports import summary
from bullswarm_core.routing import measure
from bullswarm_core.routing import measure as forecast
from bullswarm_core.routing import measure as sparing
from bullswarm_core.runs import intents, retry
from bullswarm_hooks import delegation
from bullswarm_server.cli import task_arguments, workflow_arguments
from bullswarm_server.dashboard import web
from bullswarm_server.mcp import resources, waits
from bullswarm_server.ops import workflows

CONFIGURATION, WORKFLOWS, ROUTING, MCP, PROVIDERS, START = (
    f"docs/{name}.md" for name in ("configuration", "workflows", "routing", "mcp", "providers", "start")
)
MIB = 1024 * 1024


def mib(size: int) -> str:
    return f"{size // MIB} MiB" if size % MIB == 0 else f"{size // 1024} KiB"


# page, how the number stands there: what isn't the number itself is copied from the page.
SAID = [
    (CONFIGURATION, f"| a task or a prompt of a step | {mib(text_issues.MAX_PROMPT_BYTES)} |"),
    (WORKFLOWS, f"the whole task, at most {mib(text_issues.MAX_PROMPT_BYTES)}"),
    (CONFIGURATION, f"| a program | {mib(workflows.MOST_PROGRAM_BYTES)} |"),
    (CONFIGURATION, f"| a goal | {workflows.MOST_GOAL:,} characters |"),
    (CONFIGURATION, f"| steps at once | 4, at most {workflow_arguments.MOST_CONCURRENCY} |"),
    (WORKFLOWS, f"(4; at most {workflow_arguments.MOST_CONCURRENCY})"),
    (MCP, f"`concurrency` (1 to {workflow_arguments.MOST_CONCURRENCY})"),
    (
        CONFIGURATION,
        f"{step_checks.MOST_EVIDENCE}, each 1 to {step_checks.MOST_EVIDENCE_SEC} seconds"
        f" ({model.DEFAULT_EVIDENCE_SEC:g})",
    ),
    (WORKFLOWS, f"at most {step_checks.MOST_EVIDENCE} checks, in order"),
    (CONFIGURATION, f"| rounds of a loop | 1 to {validate.MOST_ROUNDS} |"),
    (CONFIGURATION, f"at most {workflow_arguments.MOST_RETRIES} by `--retry-attempts`"),
    (CONFIGURATION, f"{mib(schema.MOST_SCHEMA_BYTES)}, {mib(answer.MOST_ANSWER_BYTES)}, both 64 levels"),
    (START, f"may have {mib(schema.MOST_SCHEMA_BYTES)} and an answer {mib(answer.MOST_ANSWER_BYTES)}"),
    (CONFIGURATION, f"| data that a check reads | {mib(data_child.MOST_VALUE_BYTES)} |"),
    (CONFIGURATION, f"| `--timeout` | {task_arguments.LARGEST_TIMEOUT_SEC // 86400} days |"),
    (CONFIGURATION, f"| {intents.MOST_MESSAGE:,} and {intents.MOST_REASON} characters |"),
    (CONFIGURATION, f"{delegation._LONGEST_ANSWER:,} characters"),
    (CONFIGURATION, f"({delegation.MOST_WAIT_SEC:g} at most)"),
    (CONFIGURATION, f"| open pages of the web dashboard | {web.MOST_SESSIONS} |"),
    (CONFIGURATION, f"{ledger.MAX_AGE.total_seconds() / 3600:g} hours at most"),
    (CONFIGURATION, f"(at most {mib(history.LARGEST_BYTES)} a pool)"),
    (CONFIGURATION, f"may write nothing ({prepare.SILENCE_SEC:g};"),
    (CONFIGURATION, f"may change no file ({prepare.NO_PROGRESS_SEC:g})"),
    (WORKFLOWS, f"0 to {step_checks.MOST_MINUTES}; 0 leaves it out"),
    (WORKFLOWS, f"at most {step_checks.PHASE_LENGTH} and {step_checks.LABEL_LENGTH} characters"),
    (WORKFLOWS, f"at most {summary.MOST_BYTES:,} bytes"),
    (
        WORKFLOWS,
        "waits {:g} and then {:g} seconds".format(*(wait.total_seconds() for wait in retry.BACK_OFFS)),
    ),
    (ROUTING, f"`live` up to {holds.FRESH.total_seconds() / 60:g} minutes"),
    (ROUTING, f"at {forecast.NEAR_LIMIT_PCT:g} % or more"),
    (ROUTING, f"forecast at {measure.DRAINING_FORECAST_PCT:g} % or more"),
    (ROUTING, f"its week ends within {'a day' if sparing.LEAD_MINUTES['weekly'] == 1440 else '?'}"),
    (ROUTING, f"its month within {'three' if sparing.LEAD_MINUTES['monthly'] == 3 * 1440 else '?'}"),
    (ROUTING, f"else {durations.DEFAULT_EXPECTED_MINUTES['analyze']['medium']:g}, or 10 and 6 for `build`"),
    (
        PROVIDERS,
        f"alone\nfor {holds.FIRST_BACKOFF.total_seconds() / 60:g} to"
        f" {holds.LONGEST_BACKOFF.total_seconds() / 60:g} minutes",
    ),
    (MCP, f"| Claude Code | {waits._LONG_SEC:g},"),
    (MCP, f"| Codex | {waits._CODEX_SEC:g}; {waits._CODE_MODE_SEC:g} by itself"),
    (MCP, f"| OpenCode | {waits._LONG_SEC:g},"),
    (MCP, f"| Grok | {waits._GROK_SEC:g} |"),
    (MCP, f"| Gemini CLI | {waits._GEMINI_SEC:g} |"),
    (MCP, f"| Command Code | {waits._COMMAND_CODE_SEC:g},"),
    (MCP, f"| any other | {waits.UNKNOWN_SEC:g} |"),
    (MCP, f"at most {resources._MOST_OUTPUT_BYTES // 1024} KiB of it"),
]


@pytest.mark.parametrize(("page", "said"), SAID, ids=lambda value: value[:40])
def test_a_number_on_a_page_is_the_programs(page: str, said: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert re.sub(r"\s+", " ", said) in re.sub(r"\s+", " ", text)
