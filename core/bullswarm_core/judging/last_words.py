"""What a worker's last words give away where the work is missing: a question, a plan, a wait, an announcement, a cut.

These readings never make anything ok. They only name why an attempt that left nothing, or not all, is not done.
"""

from __future__ import annotations

import re

from bullswarm_core.judging.content import last_sentence, only_announces, sentences

# Stop reasons with which the CLIs and their models say that a reply was cut, and that the model declined.
_CUT = {
    "max_tokens": "the reply was cut at the model's output limit", "length": "the reply was cut at the model's output limit",
    "max_output_tokens": "the reply was cut at the model's output limit",
    "model_context_window_exceeded": "the model ran out of context", "max_turns": "the CLI stopped at its limit of turns",
    "error_max_turns": "the CLI stopped at its limit of turns", "refusal": "the model declined the task",
    "content_filter": "the provider's filter stopped the reply",
}  # fmt: skip
# A worker stuck in plan mode, or one that asks before it begins.
_ASKS = re.compile(
    r"ready to (?:execute|implement|code|proceed|begin|start)\b|plan mode\b|\b(?:await|waiting for) (?:your|user)\b"
    r"|\b(?:shall|should|may|can) i (?:proceed|go ahead|continue|start|begin|make)\b"
    r"|\b(?:do you want|would you like) me to\b|\bplease (?:confirm|approve|clarify|tell me|let me know|provide)\b"
    r"|\bonce (?:you(?:'ve| have)? )?(?:approved?|confirm)",
)
# Print mode ends while the worker waits for its own background work, which is then killed.
_WAITS = re.compile(
    r"(?:(?:so|now|okay|ok|meanwhile|then|for now)[, ]+)*i(?:'ll| will|'m| am)(?: now| just| simply)* (?:be )?wait(?:ing)?\b"
    r"|(?:still |now )?waiting (?:for|on|until) (?:\S+ ){0,5}(?:notifications?|background|tasks?|results?|commands?|builds?"
    r"|tests?|jobs?|process(?:es)?|(?:sub)?agents?|completion|finish|complete|done)\b(?!.*\b(?:is|are|was|were|takes|costs)\b)"
    r"|standing by\b",
)  # fmt: skip


def cut_short(stop_reason: str | None) -> str | None:
    """Return why the reply is not whole, from the stop reason that the CLI reports; None for an ordinary end."""
    return _CUT.get((stop_reason or "").strip().lower())


def waits_for_itself(answer: str) -> bool:
    """Tell whether the last sentence waits for something that ended with the process ("I will wait for …")."""
    return bool(_WAITS.match(_plain(last_sentence(answer))))


def asks_back(answer: str) -> bool:
    """Tell whether the last sentence is a question or a plan that wants leave, so that the caller must answer it."""
    last = _plain(last_sentence(answer))
    return last.endswith("?") or bool(_ASKS.search(last))


def only_asks(answer: str) -> bool:
    """Tell whether every sentence asks or announces; an answer with a question behind it is an answer."""
    units = sentences(answer)
    return (
        bool(units) and any(asks_back(unit) for unit in units) and all(asks_back(u) or only_announces(u) for u in units)
    )


def _plain(sentence: str) -> str:
    return sentence.replace("’", "'").lower().strip(" *_`\"'")
