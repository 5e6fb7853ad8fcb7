"""Which lines and records are a provider's refusal, and which are only talk about one."""

import json
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.judging.limits import Reader, classify_notice
from bullswarm_core.pools.connector import Signatures
from bullswarm_core.quota.notice import Notice

NOW = datetime(2026, 11, 30, 5, 0, 30, tzinfo=UTC)
READER = Reader(NOW)
FAILED = Reader(NOW, failed=True)
RECORDINGS = Path(__file__).parents[2] / "recordings"

CLAUDE = [
    "You've hit your 5-hour limit · resets 6:32am (UTC)",
    "You've hit your weekly limit · resets 4am (Europe/Paris)",
    "You've hit your Opus limit · resets Dec 3, 8am (Europe/Berlin)",
    "You've hit your usage credit limit",
    "You've hit your session limit · resets 6am",
    "You've hit your usage limit · resets 6am",
    "You've hit your limit · resets 6am (UTC)",
    "You've hit your monthly spend limit",
    "You've hit your org's monthly spend limit",
    "You've hit your team's pooled group budget",
    "You've reached your weekly limit",
    "You're out of usage credits · resets 6am",
    "You're out of extra usage",
    "Your org is out of usage · add funds to continue",
    "Your org is out of usage · contact your admin",
    "Your seat type doesn't include usage credits",
    "Your seat type doesn't include usage",
    "Your seat type doesn't include extra usage",
    "Your usage allocation has been disabled by your admin",
    "Your group's usage limit is set to $0",
    "Fable 5 requires usage credits.",
    "Opus requires usage credits.",
    "Usage is paused for your organization. For help, please contact support.",
    "Credit balance is too low",
]
CODEX_TAILS = [
    " Upgrade to Plus to continue using Codex (https://chatgpt.com/explore/plus), or try again at 6:02 AM.",
    " Visit https://chatgpt.com/settings/usage to purchase more credits or try again at 6:02 AM.",
    " To get more access now, send a request to your admin or try again at 6:02 AM.",
    " Try again at 6:02 AM.",
    " PROMO TEXT here., or try again at 6:02 AM.",
]
OTHER_QUOTA = [
    "You’ve hit your usage limit. Try again later.",
    "You’ve hit your usage limit for GPT-Other. Switch to another model now, or try again at 6:02 AM.",
    "Your workspace is out of credits. Add credits to continue.",
    "Your workspace is out of credits. Ask your workspace owner to refill in order to continue.",
    "You hit your spend cap set in your workspace. Increase your spend cap to continue.",
    "You hit your spend cap set by the owner of your workspace. Ask an owner to increase your spend cap to continue.",
    "Quota exceeded. Check your plan and billing details.",
    "Quota exceeded.",
    "Error: out of credits",
    "insufficient_quota: You exceeded your current quota, please check your plan and billing details.",
    "usage_limit_reached: The usage limit has been reached",
    "usage_pool_exhausted: no usage left in this pool",
    "subscription:free-usage-exhausted: subscribe to go on",
    "Error: usage_limit_reached: The usage limit has been reached",
    "5-hour usage limit reached. It will reset in 3 hours 2 minutes. To continue using this model now, enable usage",
    "Monthly usage limit reached",
    "stream disconnected before completion: You've hit your usage limit",
    "Free usage exceeded, subscribe to Go",
    'Error: Internal error: {"message":"API error (status 402 Payment Required): billing: No money","http_status":402}',
    "Error: You have insufficient credits to go on",
    "Premium credits exhausted",
    "Error: 402 Payment Required",
    "Claude AI usage limit reached|1796020371",
    "429 Too Many Requests: weekly limit",
    '{"type":"error","message":"You’ve hit your usage limit. Try again at 6:02 AM."}',
    '2026-11-30T05:00:20Z ERROR codex: {"error":{"code":"insufficient_quota","message":"no"}}',
    "\x1b[31mYou've hit your usage limit.\x1b[0m",
]
THROTTLE = [
    "Rate limit exceeded. Please wait a moment and try again.",
    "Error: Rate limit exceeded. Please wait a moment and try again.",
    "429 Too Many Requests",
    "Too many requests",
    "exceeded retry limit, last status: 429 Too Many Requests",
    "API Error: Request rejected (429) · This request would exceed your account's rate limit. Please try again later.",
    "API Error: Server is temporarily limiting requests (not your usage limit) · This request would exceed your"
    " account's rate limit. Please try again later.",
    "rate limit exceeded: Rate limit reached for gpt-5 on tokens per min. Please try again in 1.5s",
    "rate limit exceeded: slow down. Please try again in 1.5s",
    "rate_limit_exceeded: Slow down",
    "global_rate_limit: try later",
    "Rate limited (retry in 20s)",
    "You've hit your rate limit",
    "Rate limit reached for requests",
    "HTTP 429: token usage rate limit exceeded",
]
NO_LIMIT = [
    "Your weekly limit is 10",
    "The parser was rate limited by the GitHub API",
    "rate limited by the GitHub API",
    "Too many requests are sent by the crawler, so I added a queue",
    "You've used 80% of your weekly limit · resets 6am",
    "Approaching 5-hour limit",
    "Over 75% of your weekly limit used",
    "You're close to your usage credit limit",
    "You've hit your context limit",
    "You've hit your stride with this refactoring",
    "- You've hit your usage limit is the text that users see",
    "> You've hit your usage limit",
    '"You\'ve hit your usage limit" is shown when the window is spent',
    "# usage limit reached",
    "3. usage limit reached",
    "When the window is spent the CLI prints: You've hit your usage limit. Try again at 6:02 AM.",
    "quota exceeded handling was rewritten",
    "resets at 6:02 AM",
    "API Error: 529 Overloaded. This is a server-side issue, usually temporary — try again in a moment.",
    "API Error: 500 Internal server error.",
    "Selected model is at capacity. Please try a different model.",
    "We’re currently experiencing high demand, which may cause temporary errors.",
    "unexpected status 503 Service Unavailable: unavail, url: http://127.0.0.1/v1/responses",
    "HTTP 503: Rate limit exceeded.",
    "Error: connect ECONNREFUSED 127.0.0.1:4290",
    "You've hit your usage limit " + "x" * 300,
    "",
]


def kind(text: str, reader: Reader = READER) -> str | None:
    found = classify_notice(text, reader)
    return found.kind if found else None


@pytest.mark.parametrize("line", CLAUDE + [f"You’ve hit your usage limit.{tail}" for tail in CODEX_TAILS] + OTHER_QUOTA)
def test_spent_windows(line: str) -> None:
    assert kind(line) == "quota"
    assert kind(line.replace("'", "’")) == "quota"
    assert kind(line.replace("’", "'")) == "quota"
    assert kind(f"starting up\n{line}\ngoodbye") == "quota"


@pytest.mark.parametrize("line", THROTTLE)
def test_throttles(line: str) -> None:
    assert kind(line) == "throttle"
    assert kind(line.replace("'", "’"), FAILED) == "throttle"


@pytest.mark.parametrize("line", NO_LIMIT)
def test_talk_about_limits_is_no_limit(line: str) -> None:
    assert kind(line) is None
    assert kind(line, FAILED) is None


def test_a_window_named_on_the_next_line_makes_a_throttle_a_spent_window() -> None:
    assert kind("Too many requests\nYour weekly limit resets 6am") == "quota"
    assert kind("Too many requests\nplease slow down") == "throttle"


@pytest.mark.parametrize(
    ("line", "window", "scope", "resets_at"),
    [
        (CLAUDE[0], "5h", None, datetime(2026, 11, 30, 6, 33, tzinfo=UTC)),
        (CLAUDE[1], "weekly", None, datetime(2026, 12, 1, 3, 1, tzinfo=UTC)),
        (CLAUDE[2], "weekly", "opus", datetime(2026, 12, 3, 7, 1, tzinfo=UTC)),
        ("You've hit your monthly spend limit", "monthly", None, None),
        ("You’ve hit your usage limit. Try again at 6:02 AM.", None, None, datetime(2026, 11, 30, 6, 3, tzinfo=UTC)),
        (OTHER_QUOTA[1], None, "gpt-other", datetime(2026, 11, 30, 6, 3, tzinfo=UTC)),
        ("Monthly usage limit reached. resets Dec 25, 8am", "monthly", None, datetime(2026, 12, 25, 8, 1, tzinfo=UTC)),
        ("You've hit your 5-hour limit · resets 3pm (UTC)", "5h", None, None),  # ten hours ahead: not this window's
        ("You've hit your 5-hour limit · resets 4:55am (UTC)", "5h", None, datetime(2026, 11, 30, 4, 56, tzinfo=UTC)),
    ],
)
def test_what_is_spent_and_until_when(line: str, window: str, scope: str, resets_at: datetime) -> None:
    found = classify_notice(line, READER)
    assert found is not None
    assert (found.window, found.scope, found.resets_at) == (window, scope, resets_at)
    assert found.reset_source == ("named" if resets_at else None)


def test_the_line_that_names_the_reset_is_the_one_to_show() -> None:
    found = classify_notice("Usage limit reached\nYou've hit your usage limit, try again at 6:02 AM", READER)
    assert found is not None and found.line.endswith("6:02 AM")


def test_sign_in_phrases_count_only_after_a_declared_failure() -> None:
    for line in (
        "Failed to authenticate. API Error: 401 Invalid bearer token",
        "Invalid API key · Fix external API key",
        "unexpected status 401 Unauthorized: Incorrect API key provided, url: http://127.0.0.1/v1/responses",
        'Internal error: "Unauthorized (401) from URL: invalid_request_error: Incorrect API key provided: x"',
        "Your access token could not be refreshed because your refresh token has expired.",
        'Error: Authentication failed. Please run "cmd login" first.',
        "Not signed in. To authenticate without a browser, run:",
        '{"error":{"type":"authentication_error","message":"no"}}',
    ):
        assert kind(line, FAILED) == "auth", line
        assert kind(line) is None, line


def test_a_review_about_signing_in_is_no_sign_in_failure() -> None:
    for line in ("The handler returns 401 and logs 'unauthorized' for every expired token, see line 12",
                 "- unauthorized", "I fixed the login page"):  # fmt: skip
        assert kind(line, FAILED) is None


def test_quota_is_tested_before_sign_in() -> None:
    assert kind("unauthorized\nYou've hit your usage limit", FAILED) == "quota"
    codex = Reader(NOW, Signatures(auth=("usage_credits_required",), quota=("usage_credits_required",)), failed=True)
    assert kind("usage_credits_required", codex) == "quota"


def test_connector_phrases_add_to_the_list_and_keep_its_shape() -> None:
    quota = ("tokens used up", "usage limit", "too many requests")
    signatures = Signatures(("badge refused",), quota, ("calm down",), ("not in your tier",))
    own = Reader(NOW, signatures, failed=True)
    assert kind("Tokens used up for today", own) == "quota"
    assert kind("Calm down please", own) == "throttle"
    assert kind("Badge refused", own) == "auth"
    assert kind("That model is not in your tier", own) == "model-not-in-plan"
    assert kind("Too many requests", own) == "throttle"
    assert kind("Your usage limit is 10 a day", own) is None
    assert kind("- Tokens used up", own) is None


def test_a_plan_without_the_model() -> None:
    line = "To use Codex with your ChatGPT plan, upgrade to Plus: https://chatgpt.com/explore/plus."
    assert kind(line, FAILED) == "model-not-in-plan"
    assert kind(line) is None


def _texts(value: object) -> list[str]:
    """Every message of a failure record, as the error channel would hold it."""
    if isinstance(value, dict):
        own = [value[k] for k in ("message", "result") if isinstance(value.get(k), str)]
        return own + [t for k, v in value.items() if isinstance(v, (dict, list)) for t in _texts(v)]
    return [t for v in value for t in _texts(v)] if isinstance(value, list) else []


@pytest.mark.parametrize("cli", ["claude-code", "codex", "opencode"])
@pytest.mark.parametrize(
    ("case", "expected"),
    [("usage-limit", "quota"), ("usage-limit-no-reset", "quota"), ("rate-limit", "throttle"), ("unauthorized", "auth"),
     ("server-error", None), ("overloaded", None), ("text", None), ("empty", None), ("denied", None)],
)  # fmt: skip
def test_what_real_clis_printed(cli: str, case: str, expected: str | None) -> None:
    lines = (RECORDINGS / cli / f"{case}.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines if line.startswith("{")]
    failures = [r for r in records if "error" in r or r.get("is_error") or r.get("type") == "error"]
    channel = "\n".join(text for record in failures for text in _texts(record))
    if cli == "opencode" and case == "rate-limit":
        assert "Rate limit reached" in channel
    found = classify_notice(channel, Reader(datetime(2026, 11, 30, 6, 0, tzinfo=UTC), failed=bool(failures)))
    assert (found.kind if found else None) == expected
    if case == "usage-limit" and cli != "opencode":
        assert found is not None and found.resets_at is not None


@given(st.text(max_size=400), st.booleans())
def test_any_text_is_judged(text: str, failed: bool) -> None:
    found = classify_notice(text, Reader(NOW, failed=failed))
    assert found is None or (len(found.line) <= 300 and "\n" not in found.line and "\x1b" not in found.line)


@given(st.text(alphabet=st.characters(codec="ascii", exclude_characters="{}"), max_size=80), st.sampled_from(CLAUDE))
def test_a_notice_is_found_among_any_other_lines(noise: str, line: str) -> None:
    assert kind(f"{noise}\n{line}\n{noise}") == "quota"


def test_a_broken_or_deep_record_is_only_text() -> None:
    assert kind('{"message": "You') is None
    assert kind('{"error":' * 3000 + "1" + "}" * 3000) is None
    assert isinstance(classify_notice('{"error":{"data":{"message":"Quota exceeded."}}}', READER), Notice)


def test_no_line_takes_long_to_read() -> None:
    started = time.process_time()
    for line in ("too many requests " + "1." * 130 + "x", "(not your " * 400, "a_" * 2000, "error " * 600, "1" * 4000):
        assert kind(line, FAILED) is None
    assert time.process_time() - started < 0.5
