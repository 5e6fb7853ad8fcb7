"""What comes of a provider's refusals and failures, and of answers that only speak of them.

Every agent runs as bullswarm launches it, with the bounds of the test's own setup taken away: an agent that would wait for
hours or for ever is bullswarm's to end.
"""

import json
import socket
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.agents.conftest import needs
from tests.agents.machine import Machine, Outcome, machine
from tests.agents.scripted_model.request import ModelRequest
from tests.agents.scripted_model.scenario import Fail, Turn, fail, say
from tests.agents.setups import CLAUDE, SETUPS, Setup

pytestmark = pytest.mark.real_cli

HOUR = timedelta(hours=1)
# The slowest bounded failure took 44 s on an idle machine (Grok, a server error); a wait beyond this is one for ever.
LONGEST_FAILURE_SEC = 150
# The rows that wait for retries, and compute little, come first and side by side.
RUNS_AT_ONCE = 5
_BOUNDS = ("request_max_retries", "stream_max_retries", "max_retries", "[features]", "unbounded_connection_retries")

LIMIT_WORDS = (
    "You've hit your usage limit · resets 5pm (UTC)",
    "Error: 429 Too Many Requests: rate limit exceeded, please try again in 20s",
    "insufficient_quota: You exceeded your current quota, please check your plan and billing details.",
    "You’ve hit your usage limit. Upgrade to Pro or try again at 6:02 AM.",
    "Invalid API key · Please run /login",
)
QUOTED_INSIDE = (
    "The reader knows each vendor's notice by its words. Of limits it knows these:\n{}\nNothing else is matched."
)
QUOTED_FIRST = (
    "You've hit your usage limit is what the program prints once the window is spent; it stands in limits.py."
)
RECOVERED = "The parser splits the line at each comma, and unquotes what starts with a quote."


@dataclass(frozen=True, slots=True)
class Row:
    """One run of the batch: what the model does, turn by turn, and whether anything listens at its address."""

    turns: tuple[Callable[[ModelRequest], Turn], ...]
    listens: bool = True


def rows_of(setup: Setup, project: str) -> dict[str, Row]:
    """The runs of one agent that need nothing of each other."""
    log = f"{project}/limits.log"
    return {
        "rate-limit": Row((always(bare(setup.rate_limit())),)),
        "an-hour": Row((always(bare(setup.rate_limit(), {"retry-after": str(int(HOUR.total_seconds()))})),)),
        "server-error": Row((always(server_error(setup)),)),
        "overloaded": Row((always(bare(setup.overloaded())),)),
        "refused": Row((always(say("Nobody is there to say this.")),), listens=False),
        "unauthorized": Row((always(setup.unauthorized()),)),
        "recovered": Row((once_failing(server_error(setup), say(RECOVERED)),)),
        "quoted-inside": Row((always(say(QUOTED_INSIDE.format("\n".join(LIMIT_WORDS)))),)),
        "quoted-first": Row((always(say(QUOTED_FIRST)),)),
        "read-in-a-file": Row((always(setup.read_file(log)), always(say(QUOTED_INSIDE.format("those of the log"))))),
    }


def always(turn: Turn) -> Callable[[ModelRequest], Turn]:
    return lambda request: turn


def once_failing(first: Fail, then: Turn) -> Callable[[ModelRequest], Turn]:
    """Fail the first request alone, as a server does that is restarted."""
    left = [first]
    return lambda request: left.pop() if left else then


def bare(failure: Fail, headers: Mapping[str, str] | None = None) -> Fail:
    """The failure without the headers by which the setup keeps an agent's retries short."""
    return replace(failure, headers=dict(headers or {}))


def server_error(setup: Setup) -> Fail:
    kind = {"type": "api_error" if setup is CLAUDE else "server_error", "message": "Internal server error"}
    return fail(500, {"type": "error", "error": kind})


def unbound(home: Path, environ: dict[str, str]) -> None:
    """Take the setup's own bounds on retries away, so that only bullswarm's launch is left to bound them."""
    environ.pop("CLAUDE_CODE_MAX_RETRIES", None)
    for config in home.glob(".*/config.toml"):
        kept = [line for line in config.read_text().splitlines() if not line.startswith(_BOUNDS)]
        config.write_text("\n".join(kept) + "\n")


@pytest.fixture(scope="module", params=sorted(SETUPS))
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """One machine for all the runs of an agent: some need seconds to make themselves at home."""
    setup = SETUPS[request.param]
    needs(setup, request.config)
    with machine(tmp_path_factory.mktemp(request.param), setup, []) as built:
        unbound(built.home, built.environ)
        yield built


@pytest.fixture(scope="module")
def outcomes(shared: Machine) -> dict[str, Outcome]:
    """What came of each row, several run at once."""
    setup = shared.setup
    (shared.project / "limits.log").write_text("\n".join(LIMIT_WORDS) + "\n", encoding="utf-8")
    rows = rows_of(setup, str(shared.project))

    def turn(index: int) -> Callable[[ModelRequest], Turn]:
        def pick(request: ModelRequest) -> Turn:
            row = rows[request.prompt.partition("[row ")[2].partition("]")[0]]
            return row.turns[min(index, len(row.turns) - 1)](request)

        return pick

    shared.turns[:] = [turn(0), turn(1)]
    with closing(socket.socket()) as deaf, ThreadPoolExecutor(RUNS_AT_ONCE) as at_once:
        # Bound and not listening: whoever connects is refused, and nobody else can take the port.
        deaf.bind(("127.0.0.1", 0))
        nowhere = home_elsewhere(shared, f"http://127.0.0.1:{deaf.getsockname()[1]}")
        started = {
            name: at_once.submit(run_row, shared, name, {} if row.listens else nowhere) for name, row in rows.items()
        }
        return {name: future.result() for name, future in started.items()}


def home_elsewhere(built: Machine, url: str) -> dict[str, str]:
    """The environment of an agent that was set up for another address."""
    home = built.root / "home-elsewhere"
    home.mkdir()
    environ = {"HOME": str(home), **built.setup.prepare(home, url)}
    unbound(home, environ)
    return environ


def run_row(built: Machine, name: str, environ: Mapping[str, str]) -> Outcome:
    done = built.bullswarm(
        "run", "--json", "--lane", "analyze", "--pool", built.setup.name, "--add-dir", str(built.project),
        "--timeout", str(LONGEST_FAILURE_SEC), *built.model_option(), f"Explain the limits. [row {name}]",
        environ=dict(environ),
    )  # fmt: skip
    assert done.stdout.strip(), f"{name}: no document on stdout, exit {done.returncode}: {done.stderr}"
    return Outcome(done.returncode, json.loads(done.stdout), done.stderr)


def back_at(outcome: Outcome) -> datetime | None:
    """When the pool is back, which only the provider's own word may say here."""
    text, source = outcome.verdict["backAt"], outcome.verdict["backAtSource"]
    assert (source == "named") == (text is not None), outcome
    return datetime.fromisoformat(text) if text else None


def assert_failed(outcome: Outcome, kind: str, why: str) -> None:
    assert (outcome.code, outcome.kind, outcome.verdict["ok"]) == (1, kind, False), outcome
    assert outcome.verdict["why"].startswith(why), outcome.verdict["why"]
    assert outcome.verdict["meta"]["leftoversKilled"] == 0


def assert_good(outcome: Outcome, answer: str) -> None:
    assert (outcome.code, outcome.kind, outcome.verdict["ok"]) == (0, None, True), outcome
    assert outcome.answer.strip() == answer
    assert back_at(outcome) is None


# --- refusals


def test_a_rate_is_a_throttle(outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes["rate-limit"]
    assert_failed(outcome, "throttle", "rate limited: ")
    assert back_at(outcome) is None
    assert outcome.verdict["why"].endswith("try again in a moment")


def test_nobody_waits_the_hour_that_a_rate_asks_for(shared: Machine, outcomes: dict[str, Outcome]) -> None:
    """Codex and OpenCode would sleep on it and say so; Claude Code and Grok end at once and don't tell the time that they
    were told; Command Code doesn't look at it and tries nine times."""
    outcome = outcomes["an-hour"]
    assert_failed(outcome, "throttle", "rate limited: ")
    back = back_at(outcome)
    if shared.setup.name in ("codex", "opencode"):
        ended = datetime.fromisoformat(outcome.verdict["meta"]["endedAt"])
        assert back is not None and abs(back - ended - HOUR) < timedelta(minutes=1), outcome
        assert f"back at {back:%Y-%m-%dT%H:%M:%S}Z" in outcome.verdict["why"]
    else:
        assert back is None, outcome


def test_a_refused_sign_in_is_auth(outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes["unauthorized"]
    by_key = outcome.verdict["billing"] == "api-key"
    assert_failed(outcome, "auth", "API key refused: " if by_key else "sign-in failed: ")
    assert back_at(outcome) is None


# --- failures


@pytest.mark.parametrize("row", ["server-error", "overloaded", "refused"])
def test_a_failing_server_is_the_providers_failure(row: str, outcomes: dict[str, Outcome]) -> None:
    """No clock of bullswarm has to end it: as bullswarm launches them, all five agents give up by themselves in a minute
    and name the failure, which says more than `stalled`."""
    outcome = outcomes[row]
    assert_failed(outcome, "provider", "provider error")
    assert outcome.verdict["meta"]["endReason"] == "exited"
    assert back_at(outcome) is None


@pytest.mark.parametrize("shared", ["codex"], indirect=True)
def test_a_wait_in_silence_ends_with_the_silence_clock(shared: Machine) -> None:
    """Codex sits out the hour that a 503 asks for and prints nothing at all, so that only the clock can end it, and nobody
    can know why: `stalled`. The other agents give up on it."""
    shared.turns[:] = [bare(shared.setup.overloaded(), {"retry-after": "3600"})]
    outcome = shared.run(environ={"BULLSWARM_WORKER_SILENCE_SEC": "4"})
    assert_failed(outcome, "stalled", "stalled: no output for 4 s")


# --- good answers


def test_an_error_that_the_agent_recovered_from_is_a_note(shared: Machine, outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes["recovered"]
    assert_good(outcome, RECOVERED)
    notes = {note["kind"] for note in outcome.verdict["notes"]}
    # Codex, Grok and Command Code repeat a first failed request without a word: there is nothing to note.
    assert ("recovered-stream-error" in notes) == (shared.setup.name in ("claude-code", "opencode")), outcome


@pytest.mark.parametrize(
    ("row", "answer"),
    [
        ("quoted-inside", QUOTED_INSIDE.format("\n".join(LIMIT_WORDS))),
        ("quoted-first", QUOTED_FIRST),
        ("read-in-a-file", QUOTED_INSIDE.format("those of the log")),
    ],
)
def test_words_of_limits_in_good_work_are_no_limit(row: str, answer: str, outcomes: dict[str, Outcome]) -> None:
    assert_good(outcomes[row], answer)


# --- used-up windows


@pytest.fixture
def fresh(shared: Machine) -> Iterator[Machine]:
    """The agent's machine, on which no refusal is remembered."""
    meters = shared.state / "meters"
    forget(meters)
    yield shared
    forget(meters)


def forget(meters: Path) -> None:
    for file in meters.glob("*.json"):
        file.unlink()


def routed(built: Machine) -> tuple[str | None, dict[str, Any]]:
    """Which pool the next task would go to, and why this one would not."""
    done = built.bullswarm("route", "--json", "--lane", "analyze")
    document = json.loads(done.stdout)
    left_out = [row for row in document["excluded"] if row["pool"] == built.setup.name]
    assert done.returncode == (0 if document["pool"] else 1)
    return document["pool"], left_out[0] if left_out else {}


def test_a_used_up_window_is_quota_and_keeps_the_pool_out_until_its_reset(fresh: Machine) -> None:
    reset = (datetime.now(UTC) + timedelta(hours=2)).replace(microsecond=0)
    fresh.turns[:] = [lambda request: usage_limit(fresh.setup, reset)]
    outcome = fresh.run()
    assert_failed(outcome, "quota", "usage limit: ")
    back = back_at(outcome)
    if fresh.setup.name in ("grok", "command-code"):
        # Grok drops the header that names the reset; prepaid credits, as Command Code has them, have none.
        assert back is None and routed(fresh)[0] == fresh.setup.name
        return
    assert back is not None and reset <= back < reset + timedelta(minutes=1), (reset, back)
    if fresh.setup.name == "codex":
        # It prints the minute, and is back when that is over.
        assert back == reset.replace(second=0) + timedelta(minutes=1)
    assert f"back at {back:%Y-%m-%dT%H:%M:%S}Z" in outcome.verdict["why"]
    pool, left_out = routed(fresh)
    assert pool is None and datetime.fromisoformat(left_out["until"]).replace(microsecond=0) == back.replace(
        microsecond=0
    )
    let_time_pass(fresh)
    assert routed(fresh) == (fresh.setup.name, {})


def usage_limit(setup: Setup, reset: datetime) -> Fail:
    """The vendor's refusal with its reset, and nothing that makes the agent ask again soon."""
    refusal = setup.usage_limit(reset)
    return bare(refusal, {name: value for name, value in refusal.headers.items() if name != "retry-after-ms"})


def let_time_pass(built: Machine) -> None:
    """Move the remembered refusal into the past, as if its reset had come."""
    meter = built.state / "meters" / f"{built.setup.name}.json"
    document = json.loads(meter.read_bytes())
    document["refusal"]["resetsAt"] = (datetime.now(UTC) - timedelta(minutes=1)).isoformat()
    meter.write_text(json.dumps(document))


def test_a_used_up_window_without_a_reset_keeps_no_pool_out(fresh: Machine) -> None:
    fresh.turns[:] = [bare(fresh.setup.usage_limit(None), fresh.setup.usage_limit(None).headers)]
    outcome = fresh.run()
    assert_failed(outcome, "quota", "usage limit: ")
    assert back_at(outcome) is None
    assert "no reset is known" in outcome.verdict["why"]
    assert routed(fresh) == (fresh.setup.name, {})


# --- API keys


def test_claude_with_a_key_alone_is_billed_by_the_key(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    needs(CLAUDE, request.config)
    with machine(tmp_path, CLAUDE, [say(RECOVERED)]) as built:
        del built.environ["CLAUDE_CODE_OAUTH_TOKEN"]
        built.environ["ANTHROPIC_API_KEY"] = "stub-key"
        allowed = built.bullswarm("strategy", "set-provider", "claude-code", "--allow-billing", "on")
        assert allowed.returncode == 0, allowed
        outcome = built.run("Explain the parser.")
        assert_good(outcome, RECOVERED)
        assert outcome.verdict["billing"] == "api-key"
        asked = built.model.prompts()[0].headers
        assert asked["x-api-key"] == "stub-key" and "authorization" not in asked
        pools = json.loads(built.bullswarm("pools", "--json").stdout)["pools"]
        (pool,) = (row for row in pools if row["provider"] == "claude-code")
        assert pool["billing"] == "api-key"
        # Without a subscription there is no window: what its headers say is left alone, and the 429 is a rate.
        built.turns[:] = [CLAUDE.usage_limit(datetime.now(UTC) + HOUR)]
        assert_failed(built.run(), "throttle", "rate limited: ")
