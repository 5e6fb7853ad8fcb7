"""OpenCode's plug-in, run in Node against a fetch that answers as told."""

import json
import shutil
import subprocess
from typing import Any

import pytest
from tests.agents.install import NODE

from bullswarm_providers.opencode.provider import PLUGIN

# Each entry of ANSWERS is a status with headers and body, or an error's name; the model is called once per entry.
DRIVER = """
const [plugin, answersText] = process.argv.slice(1)
const answers = JSON.parse(answersText)
let next = 0
globalThis.fetch = async () => {
  const answer = answers[next++]
  if (typeof answer === "string") throw Object.assign(new Error("no route"), { name: answer, code: "ECONNREFUSED" })
  const body = answer.times ? "x".repeat(answer.times) : (answer.body ?? "{}")
  return new Response(body, { status: answer.status, headers: answer.headers ?? {} })
}
const hooks = await (await import(plugin)).Bullswarm()
const config = { mcp: { a: { enabled: true }, b: {} }, permission: "ask", agent: { build: { permission: { edit: "allow" } } } }
await hooks.config(config)
process.stdout.write(JSON.stringify(config) + "\\n")
const call = { method: "POST", body: JSON.stringify({ model: "m", messages: [] }) }
for (const answer of answers) {
  const other = answer.other ? { method: "GET" } : call
  try { await (await fetch("http://x/", other)).text() } catch (error) { process.stdout.write("threw " + error.name + "\\n") }
}
await new Promise(done => setTimeout(done, 400))
process.stdout.write("alive\\n")
"""

node = str(NODE) if NODE.exists() else shutil.which("node")
pytestmark = pytest.mark.skipif(node is None, reason="Node is not installed here; the real OpenCode tests cover it")


def run(answers: list[Any], **environ: str) -> tuple[int, list[dict[str, Any]], str]:
    argv = [str(node), "--input-type=module", "-e", DRIVER, PLUGIN.as_uri(), json.dumps(answers)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, env=environ, check=False)
    prefix = "bullswarm-opencode "
    reports = [json.loads(line.removeprefix(prefix)) for line in done.stderr.splitlines() if line.startswith(prefix)]
    return done.returncode, reports, done.stdout


def refusal(status: int, wait: str | None = None, kind: str = "rate_limit_exceeded", **more: Any) -> dict[str, Any]:
    headers = {} if wait is None else {"retry-after": wait}
    body = json.dumps({"error": {"type": kind, "message": "Slow down"}})
    return {"status": status, "headers": headers, "body": body, **more}


GOOD = {"status": 200}


@pytest.mark.parametrize(
    "answer", [refusal(429, "7200"), refusal(429, None, "usage_limit_reached"), refusal(503, "86400")]
)
def test_a_wait_that_cannot_be_worth_it_ends_the_worker(answer: dict[str, Any]) -> None:
    code, reports, out = run([answer])
    assert code == 75
    assert reports[0]["ended"] is True
    assert reports[0]["status"] == answer["status"]
    assert reports[0]["message"] == "Slow down"
    assert "alive" not in out


def test_a_short_wait_is_reported_and_left_to_opencode() -> None:
    code, reports, out = run([refusal(429, "20"), refusal(429), GOOD])
    assert code == 0
    assert "alive" in out
    assert [(r["retryAfterSec"], r["ended"]) for r in reports] == [(20, False), (None, False)]


def test_a_run_in_which_no_call_worked_ends_after_the_third_failure() -> None:
    code, reports, _ = run([refusal(500), refusal(529), refusal(500)])
    assert (code, [r["ended"] for r in reports]) == (75, [False, False, True])


def test_a_run_that_did_work_gets_all_of_opencodes_tries() -> None:
    assert run([GOOD, *[refusal(500)] * 5, GOOD])[0] == 0
    assert run([GOOD, *[refusal(500)] * 6])[0] == 75


def test_a_connection_that_cannot_be_made_is_a_failure_and_an_abort_is_not() -> None:
    code, reports, out = run(["TypeError", "AbortError", "TypeError", "TypeError"])
    assert code == 75
    assert [r["code"] for r in reports] == ["ECONNREFUSED"] * 3
    assert out.count("threw") >= 3


def test_refusals_that_opencode_does_not_repeat_are_left_to_its_own_error_event() -> None:
    code, reports, _ = run([refusal(401), refusal(400), refusal(403), refusal(404)])
    assert (code, [r["ended"] for r in reports]) == (0, [False] * 4)


def test_other_requests_than_model_calls_are_nobodys_business() -> None:
    code, reports, _ = run([refusal(429, "7200", other=True)])
    assert (code, reports) == (0, [])


def test_a_huge_body_is_cut_and_a_date_is_a_wait() -> None:
    _, reports, _ = run(
        [{"status": 429, "times": 200_000, "headers": {"retry-after": "Fri, 31 Dec 2999 23:59:59 GMT"}}]
    )
    assert len(reports[0]["message"]) <= 300
    assert reports[0]["retryAfterSec"] > 120


def test_servers_of_the_person_are_turned_off_for_an_isolated_worker_only() -> None:
    _, _, out = run([], BULLSWARM_OPENCODE_ISOLATED="1")
    assert json.loads(out.splitlines()[0])["mcp"] == {"a": {"enabled": False}, "b": {"enabled": False}}
    _, _, out = run([])
    assert json.loads(out.splitlines()[0])["mcp"] == {"a": {"enabled": True}, "b": {}}


def test_the_lanes_permissions_win_over_those_of_an_agent() -> None:
    _, _, out = run([], OPENCODE_PERMISSION='{"edit": "deny", "bash": "deny"}')
    config = json.loads(out.splitlines()[0])
    assert config["permission"] == {"*": "ask", "edit": "deny", "bash": "deny"}
    assert config["agent"]["build"]["permission"] == {"edit": "deny", "bash": "deny"}
    _, _, out = run([], OPENCODE_PERMISSION="{broken")
    assert json.loads(out.splitlines()[0])["permission"] == "ask"
