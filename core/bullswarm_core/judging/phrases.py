"""The words with which providers refuse work, and the shape that a line must have to be a notice and not narration.

Only lines of a provider's error channel come here. Even there a worker's own sentence can stand ("rate limited by the
GitHub API"), so a phrase alone is never enough: see :func:`kind_of_line`.

Rule: docs/design/judging.md, "Limit phrases".
"""

from __future__ import annotations

import re

from bullswarm_core.fast.text import one_line
from bullswarm_core.pools.connector import Signatures
from bullswarm_core.pools.model import WindowKind
from bullswarm_core.quota.notice import NoticeKind

NO_SIGNATURES = Signatures()
# Longer lines are prose or raw records; a phrase that opens a notice stands early in it.
LONGEST_NOTICE = 300
_EARLY = 40

# What Claude Code, Codex, OpenCode, Grok, Command Code and the Anthropic API were seen to print.
_WINDOW_PHRASES = (
    "hit your session limit", "hit your limit", "hit your usage limit", "usage limit reached",
    "reached your usage limit", "usage limit has been reached", "usage_credits_required",
    "exceeded your current quota", "insufficient_quota",
    "quota exceeded. check your plan", "credit balance is too low", "insufficient credits", "premium credits exhausted",
    "free usage exceeded", "usage is paused for your organization", "workspace is out of credits", "hit your spend cap",
    "reached today's limit on", "usage pool exhausted",
)  # fmt: skip
_THROTTLE_PHRASES = (
    "rate limit reached for", "temporarily limiting requests", "would exceed your account's rate limit",
    "request rejected (429)", "hit your rate limit", "reached your rate limit", "hit your concurrency limit",
)  # fmt: skip
# These words are everyday ones: they count only as a bare notice, with nothing behind them but a retry clause.
_BARE_WINDOW_PHRASES = ("quota exceeded", "out of credits")
_BARE_THROTTLE_PHRASES = ("rate limit exceeded", "rate_limit_exceeded", "rate limited", "too many requests")
# The list by which Claude Code itself knows its limit notices; a line must begin with one of them.
_WINDOW_OPENINGS = re.compile(
    r"(?:you've (?:hit|reached) your\b(?!.{0,40}\b(?:rate|concurrency|request|token|context|length) limit)"
    r"(?=.{0,60}\b(?:limit|budget|cap|quota|allowance)\b)"
    r"|you're out of (?:usage credits|extra usage)|your org is out of usage"
    r"|your seat type doesn't include (?:usage|extra usage)|your usage allocation has been disabled by your admin"
    r"|your group's usage limit is set to \$0|(?:fable|haiku|mythos|opus|sonnet)(?: [\w.]+)? requires usage credits)"
)
_MODEL_PHRASES = (
    "model not in plan", "to use codex with your chatgpt plan, upgrade", "model is not included in your plan",
    "model is not available on your plan", "your plan does not include this model",
)  # fmt: skip
# From relays whose credential failed upstream, and from the CLIs. Read only after the stream declared a failure.
_AUTH_PHRASES = (
    "auth_unavailable", "authentication_error", "invalidated oauth token", "no available channel for model",
    "failed to authenticate", "authentication failed", "invalid api key", "incorrect api key", "not signed in",
    "not logged in", "not authenticated", "please run /login", "access token could not be refreshed",
    "missing environment variable", "no cookie auth credentials found", "oauth token has expired", "unauthorized",
)  # fmt: skip

# Error codes are the first word of a notice ("usage_limit_reached: …") or stand in a field of their own.
_QUOTA_CODES = frozenset({
    "usage_pool_exhausted", "usage_limit_reached", "usage_limit_exceeded", "usagelimitexceeded", "insufficient_quota",
    "subscription:free_usage_exhausted", "billing_error", "billing", "gousagelimiterror", "freeusagelimiterror",
    "insufficient_credits", "credits_exhausted", "usage_credits_required", "quota_exceeded", "payment_required",
})  # fmt: skip
_THROTTLE_CODES = frozenset({
    "rate_limit", "rate_limited", "rate_limit_error", "rate_limit_exceeded", "ratelimitexceeded", "global_rate_limit",
    "concurrency_limit", "slow_down", "too_many_requests",
})  # fmt: skip
_AUTH_CODES = frozenset({
    "authentication_failed", "authentication_error", "auth_unavailable", "auth_error", "unauthorized",
    "invalid_api_key", "invalid_authentication", "token_expired", "permission_error",
})  # fmt: skip
_MODEL_CODES = frozenset({"usage_not_included", "model_not_in_plan"})

# A log's stamp, and what Codex puts before the message of a stream that the provider ended.
_PREFIX = re.compile(r"^\W?20\d\d-\d\d-\d\d[t ][\d:.,]+z?\W?\s+|^stream disconnected before completion: ")
_LEAD = re.compile(r"^(?:(?:api |internal )?(?:error|fatal|warning)\b[:\]\s]*)+")
_NARRATION = re.compile(r"^(?:[-*+•>#|\"'“`]|\d(?!\d?[- ]?(?:hour|day)\b))")
_ERROR_SHAPED = re.compile(
    r"^(?:(?:api|internal|provider|stream|fatal) )?error\b(?=[:\]!(,]| \d|$|\s+(?:you|your|rate|too|quota|usage)\b)"
    r"|^fatal\b|^(?:unauthori[sz]ed|authentication|failed to authenticate|(?:invalid|incorrect) api key)"
    r"|^not (?:signed in|logged in|authenticated)|^your access token could not|^missing environment variable"
    r"|^please run /login|^no cookie auth|^oauth token"
    r"|^(?:rate[ _]limit(?:ed)?(?: exceeded| reached|_exceeded|_error)?\s*(?:[:.!(]|$)|too many requests)"
    r"|(?:https?|status)(?:[ _-]?(?:code|error))?\W{0,3}(?:401|402|403|429)\b"
    r"|\b(?:401 unauthorized|402 payment required|403 forbidden|429 too many requests)\b"
    r"|payment required|login required|access denied|quota exceeded"
)
_STATUS = re.compile(
    r"(?:\bhttps?|status)(?:[ _-]?(?:code|error))?\W{0,3}(?P<named>4\d\d|5\d\d)\b|\((?P<round>4\d\d|5\d\d)\)"
    r"|^(?:api error:? |error:? )*(?P<first>4\d\d|5\d\d)\b|api error:? (?P<api>4\d\d|5\d\d)\b"
)
_CODE = re.compile(r"^(?P<code>[a-z][a-z]*(?:[_:-][a-z]+)+)\s?(?:[:|]|$)")
_TAIL = re.compile(
    r"^[\s.!,;:·|()\[\]…—–\d%-]*(?:$|(?:please |or |and |then |to |it |your (?:limit|quota) )*"
    r"(?:wait|try again|retry|re-?try|resets?|will reset|back|until|in \d|after \d|again)\b)"
)
_RETRY_CLAUSE = re.compile(r"\b(?:try again|retry|resets?|wait) ")
_WORDING = re.compile(
    r"\b(?:usage|session|daily|weekly|monthly|hourly|5[- ]?h(?:our)?|five[- _]hour|spend(?:ing)?)\b[ _-]"
    r"(?:(?!rate|request|concurrency)\w+ )?(?:limit|quota|window|cap)s?\b|\bquota\b|\bcredits?\b|\bbilling\b"
)
_SPENT = re.compile(
    r"\b(?:hit|reach|exceed|exhaust|insufficient|too low|deplet|spent|used up|ran out|out of|over|requires?|no more)"
)
_WINDOW_NAMES: tuple[tuple[re.Pattern[str], WindowKind], ...] = (
    (re.compile(r"\b(?:5[- ]?h(?:our)?|five[- _]hours?|session)\b"), "5h"),
    (re.compile(r"\b(?:daily|today's|per day|24[- ]hour)\b"), "daily"),
    (re.compile(r"\b(?:weekly|(?:7|seven)[- _]days?(?:_\w+)?|(?:opus|sonnet|fable|haiku|mythos) limit)\b"), "weekly"),
    (re.compile(r"\b(?:monthly|spend cap|spend limit|30[- ]day)\b"), "monthly"),
)
_FAMILY = re.compile(
    r"\b(?:seven_day_)?(opus|sonnet|fable|haiku|mythos)(?: [\w.]+)?(?: limit| requires usage credits|$)"
)
_OTHER_LIMIT = re.compile(r"usage limit for ([\w.-]+[\w-])")
_ASIDE = re.compile(r"\(?\bnot your [\w -]*limit\)?")
_URL = re.compile(r"https?://\S+")


def counted(number: int, one: str, many: str) -> str:
    """Return ``1 file`` or ``2 files``: the number with the form of the noun that belongs to it."""
    return f"{number} {one if number == 1 else many}"


def flat(line: str) -> str:
    """Return ``line`` as phrases are matched: lower case, straight quotes, no web address, no "(not your … limit)"."""
    text = one_line(line).replace("’", "'").replace("‘", "'").replace("“", '"').replace("”", '"').lower()
    return _PREFIX.sub("", " ".join(_ASIDE.sub(" ", _URL.sub(" ", text)).split()))


def kind_of_line(
    line: str,
    next_line: str = "",
    *,
    signatures: Signatures = NO_SIGNATURES,
    failed: bool = False,
    in_record: bool = False,
) -> NoticeKind | None:
    """Return what the line of an error channel refuses, or None where it is no refusal.

    ``next_line`` may hold the window's name. ``failed`` says that the stream declared a failure; only then are sign-in
    and plan phrases read, our own sign-in phrases only in an error-shaped line or ``in_record`` (the message of a
    failure record). Quota comes before throttle, throttle before sign-in.
    """
    text = flat(line)
    if not text or len(text) > LONGEST_NOTICE:
        return None
    if (code := _CODE.match(_LEAD.sub("", text))) and (kind := kind_of_code(code["code"])):
        return kind if kind != "auth" or failed else None
    status = status_in(text)
    if _says_window(text, signatures) or status == 402:
        return "quota"
    if status is not None and status >= 500:
        return None
    if _says_throttle(text, signatures) or status == 429:
        return "quota" if has_window_wording(text) or has_window_wording(flat(next_line)) else "throttle"
    if not failed:
        return None
    own_phrases = _AUTH_PHRASES if in_record or _ERROR_SHAPED.search(text) else ()
    if _shaped_phrase(text, (*signatures.auth, *own_phrases)) or status == 401:
        return "auth"
    return "model-not-in-plan" if _shaped_phrase(text, (*signatures.model_not_in_plan, *_MODEL_PHRASES)) else None


def kind_of_code(code: str | None) -> NoticeKind | None:
    """Return what a provider's own error code refuses; None for a code that is no refusal of ours to know."""
    name = (code or "").strip().lower().replace("-", "_")
    if name in _QUOTA_CODES:
        return "quota"
    if name in _THROTTLE_CODES:
        return "throttle"
    if name in _AUTH_CODES:
        return "auth"
    return "model-not-in-plan" if name in _MODEL_CODES else None


def has_window_wording(text: str) -> bool:
    """Tell whether flat ``text`` speaks of a usage window, a quota, credits or billing (never of a mere rate)."""
    return bool(_WORDING.search(text))


def window_named(text: str) -> WindowKind | None:
    """Return the kind of the window that ``text`` (a notice, or a provider's name such as ``five_hour``) speaks of."""
    lowered = flat(text)
    return next((kind for pattern, kind in _WINDOW_NAMES if pattern.search(lowered)), None)


def scope_named(text: str) -> str | None:
    """Return the model, or its family, whose own limit ``text`` speaks of, in lower case; else None."""
    lowered = flat(text)
    found = _FAMILY.search(lowered) or _OTHER_LIMIT.search(lowered)
    return found[1] if found else None


def status_in(text: str) -> int | None:
    """Return the HTTP status that a flat ``text`` states; one below 500 counts only in an error-shaped line."""
    found = _STATUS.search(text)
    if found is None:
        return None
    status = int(next(group for group in found.groups() if group))
    shaped = _ERROR_SHAPED.search(text) or re.match(r"[45]\d\d [a-z]", text)
    return status if status >= 500 or shaped else None


def _says_window(text: str, signatures: Signatures) -> bool:
    bare = _LEAD.sub("", text)
    if _WINDOW_OPENINGS.match(bare) or _shaped_phrase(text, _WINDOW_PHRASES):
        return True
    core_throttle = (*_THROTTLE_PHRASES, *_BARE_THROTTLE_PHRASES)
    declared = tuple(p for p in signatures.quota if p not in core_throttle and p not in _BARE_WINDOW_PHRASES)
    if _SPENT.search(text) and _shaped_phrase(text, declared) and not _shaped_phrase(text, core_throttle):
        return True
    return _shaped_phrase(text, _BARE_WINDOW_PHRASES, bare=True)


def _says_throttle(text: str, signatures: Signatures) -> bool:
    return _shaped_phrase(text, _BARE_THROTTLE_PHRASES, bare=True) or _shaped_phrase(
        text, (*_THROTTLE_PHRASES, *(p for p in signatures.throttle if p not in _BARE_THROTTLE_PHRASES))
    )


def _shaped_phrase(text: str, phrases: tuple[str, ...], *, bare: bool = False) -> bool:
    """Tell whether one of ``phrases`` stands in ``text`` the way a notice has it; every occurrence is tried."""
    error_shaped = bool(_ERROR_SHAPED.search(text))
    opens = not _NARRATION.match(text)
    for phrase in phrases:
        at = text.find(phrase)
        while at >= 0:
            if (error_shaped or (opens and at < _EARLY)) and (not bare or _is_bare(text, at, phrase)):
                return True
            at = text.find(phrase, at + 1)
    return False


def _is_bare(text: str, at: int, phrase: str) -> bool:
    """Tell whether only punctuation, a number or a retry clause follows ``phrase`` at position ``at``.

    A phrase that opens the line and a colon may be followed by the provider's message if that ends in a retry clause.
    """
    tail = text[at + len(phrase) :]
    if _TAIL.match(tail):
        return True
    opens = not _LEAD.sub("", text[:at])
    return opens and tail.startswith(":") and bool(_RETRY_CLAUSE.search(tail))
