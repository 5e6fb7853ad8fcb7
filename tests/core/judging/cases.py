"""Facts that the tests of verdicts are put together from."""

from datetime import UTC, datetime, timedelta
from typing import Any

from bullswarm_core.judging.model import JudgeInput
from bullswarm_core.judging.verdict import Judgement, judge
from bullswarm_core.pools import Lane
from bullswarm_core.quota.notice import Notice
from bullswarm_core.streams.facts import Denial, EndReason, ExitFacts, ProviderError, StreamFacts
from bullswarm_core.trees.snapshot import DeliverableFacts

NOW = datetime(2026, 11, 30, 5, 0, 30, tzinfo=UTC)
LATER = NOW + timedelta(hours=2)
ANSWER = (
    "The parser reads tokens one at a time and keeps a stack of open brackets. A closing bracket pops it, and an"
    " unmatched one raises SyntaxError with the line."
)
CHANGED = DeliverableFacts(modified=("src/main.py",), is_git=True)
COMMITTED = DeliverableFacts(commits=("abc",), head_moved=True, is_git=True)
NOTHING = DeliverableFacts(is_git=True)
GOOD = StreamFacts(answer=ANSWER, answer_source="terminal", terminal=True)
QUOTA = Notice("quota", "You've hit your 5-hour limit · resets 7am (UTC)", "5h", LATER, "named")
THROTTLE = Notice("throttle", "Rate limit exceeded. Please wait a moment and try again.")
AUTH = Notice("auth", "Failed to authenticate. API Error: 401 Invalid bearer token")
PLAN = Notice("model-not-in-plan", "To use Codex with your ChatGPT plan, upgrade to Plus")
BOOM = ProviderError("API Error: 500 boom", status=500)
DENIED = (Denial("Write", "no leave"), Denial("Bash"), Denial("Write"))


def verdict(lane: Lane = "analyze", reason: EndReason = "exited", code: int | None = 0, **parts: Any) -> Judgement:
    ended = parts.pop("exit", None) or ExitFacts(reason=reason, exit_code=code, wall_sec=12.0)
    stream = parts.pop("stream", GOOD)
    return judge(JudgeInput(lane=lane, exit=ended, stream=stream, now=NOW, **parts))
