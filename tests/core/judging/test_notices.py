"""A provider's records before its words: error records, signals, replies that are notices, and when to stop at once."""

from datetime import UTC, datetime, timedelta

import pytest

from bullswarm_core.judging.limits import Reader, early_stop, notice_of, notice_of_error
from bullswarm_core.streams.facts import LimitSignal, ProviderError, StreamFacts

NOW = datetime(2026, 11, 30, 5, 0, 30, tzinfo=UTC)
READER = Reader(NOW)
FAILED = Reader(NOW, failed=True)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ProviderError("API Error: 529 Overloaded.", status=529, code="server_error"), None),
        (ProviderError("boom", status=500), None),
        (ProviderError("The model is at capacity", status=503), None),
        (ProviderError("rate limit", status=503, code="rate_limit"), None),
        (ProviderError("nope", status=429), "throttle"),
        (ProviderError("nope", status=429, code="insufficient_quota"), "quota"),
        (ProviderError("Monthly usage limit reached", status=429), "quota"),
        (ProviderError("daily quota gone", status=429), "quota"),
        (ProviderError("please pay", status=402), "quota"),
        (ProviderError("Your credit balance is too low to access the API", status=400), "quota"),
        (ProviderError("bad", status=400), None),
        (ProviderError("There's an issue with the selected model", status=404, code="model_not_found"), None),
        (ProviderError("Invalid bearer token", status=401), "auth"),
        (ProviderError("Your account does not have access", status=403), "auth"),
        (ProviderError("x", status=403, code="authentication_failed"), "auth"),
        (ProviderError("Forbidden: Country not supported", status=403), None),
        (ProviderError("x", code="usage_not_included"), "model-not-in-plan"),
        (ProviderError("You've hit your usage limit", warning=True, fatal=False), None),
        (ProviderError("Incorrect API key provided", status=401, fatal=False), "auth"),
    ],
)
def test_records_before_words(error: ProviderError, expected: str | None) -> None:
    found = notice_of_error(error, READER)
    assert (found.kind if found else None) == expected


def test_a_wait_in_a_header_is_a_reset_only_where_it_can_be_one() -> None:
    spent = notice_of_error(ProviderError("Monthly usage limit reached", status=429, retry_after_sec=7200), READER)
    assert spent is not None and spent.resets_at == NOW + timedelta(hours=2) and spent.reset_source == "named"
    hasty = notice_of_error(ProviderError("Monthly usage limit reached", status=429, retry_after_sec=0.05), READER)
    assert hasty is not None and hasty.kind == "quota" and hasty.resets_at is None and hasty.reset_source is None
    rate = notice_of_error(ProviderError("slow", status=429, retry_after_sec=20), READER)
    assert rate is not None and rate.kind == "throttle" and rate.resets_at == NOW + timedelta(seconds=20)
    absurd = notice_of_error(ProviderError("slow", status=429, retry_after_sec=2**31), READER)
    assert absurd is not None and absurd.resets_at is None


def test_a_stamp_in_another_zone_gives_way_to_the_wait_that_agrees_with_a_clock() -> None:
    """The stamp is +08:00 and has no zone; read as UTC it would be eight hours late."""
    late = notice_of_error(
        ProviderError("Your usage limit reached, will reset at 2026-11-30 15:00:41", status=429, retry_after_sec=7210),
        READER,
    )
    assert late is not None and late.resets_at == NOW + timedelta(seconds=7210)
    zoned = notice_of_error(
        ProviderError("Usage limit reached, resets 2026-11-30 15:00:41Z", status=429, retry_after_sec=7210), READER
    )
    assert zoned is not None and zoned.resets_at == datetime(2026, 11, 30, 15, 0, 41, tzinfo=UTC)


def test_a_signal_beats_words_and_keeps_their_sentence() -> None:
    resets = NOW + timedelta(hours=2)
    stream = StreamFacts(
        limits=(LimitSignal("5h", resets, 100.0),),
        errors=(ProviderError("You've hit your 5-hour limit · resets 7:58am (UTC)", status=429, code="rate_limit"),),
    )
    found = notice_of(stream, READER)
    assert found is not None
    assert (found.kind, found.window, found.resets_at, found.said_by) == ("quota", "5h", resets, "signal")
    assert found.line.startswith("You've hit your 5-hour limit")


def test_a_signal_with_a_providers_own_names() -> None:
    found = notice_of(StreamFacts(limits=(LimitSignal("seven_day_opus", None),)), READER)
    assert found is not None and (found.window, found.scope, found.reset_source) == ("weekly", "opus", None)


@pytest.mark.parametrize("window", ["5h", "weekly", "monthly", None])
def test_a_signal_cannot_keep_a_pool_out_for_longer_than_a_window(window: str | None) -> None:
    """A worker's command can write such a line into its CLI's stream; no reset lies further ahead than its window is long."""
    forged = datetime(9999, 12, 31, 23, 59, 59, 500_000, tzinfo=UTC)
    found = notice_of(StreamFacts(limits=(LimitSignal(window, forged),)), READER)
    assert found is not None and (found.kind, found.resets_at, found.reset_source) == ("quota", None, None)
    honest = NOW + timedelta(hours=5, minutes=1)
    kept = notice_of(StreamFacts(limits=(LimitSignal(window, honest),)), READER)
    assert kept is not None and (kept.resets_at, kept.reset_source) == (honest, "named")


def test_an_empty_signal_proves_no_window() -> None:
    """Claude Code sends a bare ``rejected`` for a plain 429 of a subscription."""
    bare = (LimitSignal(None, None),)
    text = "API Error: Server is temporarily limiting requests (not your usage limit) · Please try again later."
    found = notice_of(StreamFacts(limits=bare, errors=(ProviderError(text, status=429, code="rate_limit"),)), READER)
    assert found is not None and found.kind == "throttle"
    alone = notice_of(StreamFacts(limits=bare), READER)
    assert alone is not None and alone.kind == "throttle"


def test_a_notice_in_the_place_of_an_answer() -> None:
    """The one exception: one line, and a turn that produced nothing."""
    refused = StreamFacts(answer="You've hit your usage limit. Try again at 6:02 AM.", worked=False)
    found = notice_of(refused, READER)
    assert found is not None and found.said_by == "reply"
    assert notice_of(StreamFacts(answer=refused.answer, worked=True), READER) is None
    assert notice_of(StreamFacts(answer="Too many requests\nis what the user sees", worked=False), READER) is None


def test_a_good_answer_that_quotes_a_notice_is_never_scanned() -> None:
    stream = StreamFacts(answer="You've hit your usage limit", terminal=True, answer_source="terminal")
    assert notice_of(stream, FAILED) is None


def test_a_last_word_that_mirrors_the_reply_is_no_notice() -> None:
    said = "Too many requests. Please try again: that is what the parser prints when " + "x" * 50
    mirror = ProviderError(said, mirrors_reply=True)
    assert notice_of(StreamFacts(errors=(mirror,), openings=(said[:60],)), FAILED) is None
    refused = ProviderError("Too many requests", mirrors_reply=True)
    assert notice_of(StreamFacts(errors=(refused,), openings=("Too many requests",), worked=False), FAILED) is not None


def test_a_retry_that_a_fatal_error_followed_is_not_why_it_ended() -> None:
    retry = ProviderError("HTTP 429: Too many requests", status=429, fatal=False)
    boom = ProviderError("boom", status=500)
    channel = "HTTP 429: Too many requests\nHTTP 500: boom"
    assert notice_of(StreamFacts(errors=(retry, boom), channel=channel), FAILED) is None
    assert notice_of(StreamFacts(errors=(retry,), channel=channel), FAILED) is not None
    spent = ProviderError("The usage limit has been reached", status=429, fatal=False)
    found = notice_of(StreamFacts(errors=(spent, boom)), FAILED)
    assert found is not None and found.kind == "quota"


def test_when_a_running_attempt_is_stopped_at_once() -> None:
    limit = ProviderError("The usage limit has been reached", fatal=False)
    assert early_stop(StreamFacts(errors=(limit,)), READER) is not None
    assert early_stop(StreamFacts(limits=(LimitSignal("5h", None),)), READER) is not None
    assert early_stop(StreamFacts(channel="You've hit your usage limit"), READER) is not None
    assert early_stop(StreamFacts(errors=(limit,), terminal=True), READER) is None
    for patient in (
        ProviderError("slow", status=429, fatal=False),
        ProviderError("slow", status=429, fatal=False, retry_after_sec=100),
        ProviderError("Invalid bearer token", status=401),
        ProviderError("boom", status=500),
    ):
        assert early_stop(StreamFacts(errors=(patient,)), READER) is None
    long = early_stop(
        StreamFacts(errors=(ProviderError("slow", status=429, fatal=False, retry_after_sec=86400),)), READER
    )
    assert long is not None and long.kind == "throttle" and long.resets_at == NOW + timedelta(days=1)
    assert early_stop(StreamFacts(), READER) is None


def test_plain_text_never_stops_a_worker() -> None:
    quoting = StreamFacts(
        channel="You've hit your usage limit", answer="You've hit your usage limit", event_stream=False
    )
    assert early_stop(quoting, READER) is None
