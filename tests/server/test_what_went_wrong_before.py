"""Whole runs of what programs like this one have got wrong: each case once lost work, hid a failure or sent work elsewhere."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.core.runs.journals import document
from tests.processes import until
from tests.server.site import ANSWER, SAY, Site
from tests.server.workflow_site import goal, printed_commands
from tests.server.workflows import ACTOR, TYPED, begin, ended, result, statuses

from bullswarm_core.attempts import attempt
from bullswarm_core.pools import Window
from bullswarm_core.quota.reading import write_reading
from bullswarm_core.store.home import write_json

METERED: dict[str, Any] = {"meter": {"type": "declared"}, "subscription": {"quotaWindow": "weekly"}}


def meter(site: Site, pool: str, **used: float) -> None:
    now = datetime.now(UTC)
    lengths = {"five": ("5h", timedelta(hours=2)), "week": ("weekly", timedelta(days=3))}
    windows = [
        Window(lengths[name][0], share, now + lengths[name][1], reset_source="provider", captured_at=now)  # type: ignore[arg-type]
        for name, share in used.items()
    ]
    write_reading(site.home, pool, windows, captured_at=now)


def test_two_pools_close_to_their_walls_still_take_the_task(site: Site) -> None:
    """One gate in one place: what is nearly full comes last, and is never nobody."""
    for name, used in (("alpha", 96.0), ("beta", 95.0)):
        site.worker(name, SAY, **METERED)
        meter(site, name, five=used, week=50.0)
    said = site.run()
    assert (said.code, said.document["ok"]) == (0, True)


def test_a_step_is_picked_by_the_meters_of_its_own_moment(site: Site) -> None:
    site.worker("alpha", ACTOR, **METERED)
    site.worker("beta", ACTOR, **METERED)
    meter(site, "alpha", week=5.0)
    meter(site, "beta", week=50.0)
    program = document({"id": "a", "prompt": "WAIT"}, {"id": "b", "dependsOn": ["a"]})
    run_id = begin(site, program)
    until(lambda: site.in_flight(), "the first step is at work")
    meter(site, "alpha", week=99.0)
    site.go()
    state = ended(site, run_id)
    assert [state.steps[name].attempts[0].picked.pool for name in "ab"] == ["alpha", "beta"]


def test_a_review_goes_by_pace_unless_its_route_says_otherwise(site: Site) -> None:
    """Nobody is kept from reviewing its own work unasked."""
    site.worker("alpha", ACTOR, **METERED)
    site.worker("beta", ACTOR, **METERED)
    meter(site, "alpha", week=5.0)
    meter(site, "beta", week=50.0)
    write = {"id": "w", "lane": "build", "prompt": "WRITE made.txt", "files": ["made.txt"]}
    state = ended(site, begin(site, document(write, {"id": "r", "dependsOn": ["w"]})))
    assert [state.steps[name].attempts[0].picked.pool for name in "wr"] == ["alpha", "alpha"]


def test_what_a_failed_worker_wrote_in_the_shared_tree_stays(site: Site) -> None:
    site.worker("alpha", "cat > /dev/null\necho half > half.txt\nexit 3")
    step = {"id": "w", "lane": "build", "prompt": "Do it.", "files": ["other.txt"], "retry": 0}
    state = ended(site, begin(site, document(step)))
    assert statuses(state) == {"w": "failed"} and (site.project / "half.txt").read_text() == "half\n"
    assert result(state)["steps"][0]["changedFiles"] == ["half.txt"]


def test_a_schema_that_comes_back_instead_of_an_answer_is_none(site: Site) -> None:
    site.worker("alpha", f"cat > /dev/null\necho '{json.dumps(TYPED)}'")
    state = ended(site, begin(site, document({"id": "a", "answer": TYPED, "retry": 0})))
    attempted = state.steps["a"].attempts[0].finished
    assert attempted is not None and attempted.failure_kind == "schema"


@pytest.mark.parametrize("text", ["{{step.output}} {prompt} ${HOME} %s {cwd} {reasoning}", "{", "}}{{"])
def test_nothing_in_a_prompt_is_a_template(site: Site, text: str) -> None:
    site.worker("alpha", f"cat > got.txt\necho '{ANSWER}'")
    state = ended(site, begin(site, document({"id": "a", "lane": "chore", "effort": "low", "prompt": text})))
    assert statuses(state) == {"a": "succeeded"}
    assert (site.project / "got.txt").read_text().startswith(text)


def test_a_phase_groups_and_holds_nobody_back(site: Site) -> None:
    site.worker("alpha", ACTOR)
    steps = [{"id": "late", "phase": "two", "prompt": "WAIT"}, {"id": "early", "phase": "one", "prompt": "WAIT"}]
    run_id = begin(site, document(*steps))
    until(lambda: len(site.in_flight()) == 2, "both are at work at once")
    site.go()
    assert set(statuses(ended(site, run_id)).values()) == {"succeeded"}


def test_a_parked_run_hides_no_failure_of_another_branch(site: Site) -> None:
    site.worker("alpha", ACTOR)
    program = document(
        {"id": "a"}, {"id": "b", "prompt": "FAIL"}, {"id": "c", "dependsOn": ["g"]},
        gates=[{"id": "g", "dependsOn": ["a"], "note": "look"}],
    )  # fmt: skip
    run_id = begin(site, program, retryAttempts=0)
    assert ended(site, run_id).parked is not None
    for words in (("runs", "show", run_id), ("workflow", "watch", run_id), ("runs", "result", run_id, "--summary")):
        said = site.say(*words)
        text = said.out + said.err
        assert "gate g" in text or '"g"' in text or " g" in text, (words, text)
        assert re.search(r"\bb\b", text) and "process" in text, (words, text)
    commands = printed_commands(site.say("workflow", "watch", run_id).out)
    assert any("continue" in command for command in commands) and any("rerun" in command for command in commands)


@pytest.mark.parametrize(
    "words",
    [
        ("workflow", "goal", "g", "--program"),
        ("workflow", "goal", "g", "--program", "--json"),
        ("run", "--lane", "analyze", "--pool"),
        ("run", "--lane"),
        ("run", "--lane", "analyze"),
        ("run", "Explain it."),
        ("runs", "list", "--limit", "nope"),
        ("runs", "list", "--limit", "-1"),
        ("pools", "--watch", "nope"),
    ],
)
def test_a_flag_without_its_value_is_a_wrong_call(site: Site, words: tuple[str, ...]) -> None:
    site.worker("alpha", SAY)
    said = site.say(*words)
    assert (said.code, said.out) == (2, ""), (said.out, said.err)
    assert said.err and not site.home.database_file.exists()


def test_a_pool_that_was_turned_on_stays_on_though_it_cannot_work_now(site: Site) -> None:
    site.worker("alpha", SAY, signIn={"files": ["~/.alpha/auth.json"], "required": True})
    write_json(site.home.state_file, {"version": 1, "pools": {"alpha": {"enabled": True}}, "theirs": 1})
    assert site.say("setup", "--yes").code == 0
    state = json.loads(site.home.state_file.read_bytes())
    assert state["pools"]["alpha"]["enabled"] is True and state["theirs"] == 1


def test_remarks_never_stand_within_a_document(site: Site) -> None:
    site.worker("alpha", ACTOR)
    program = document(*({"id": name, "lane": "build", "effort": "high", "prompt": "WRITE m.txt"} for name in "abc"))
    started = goal(site, program, "--json", "--foreground")
    assert json.loads(started.out)["shortId"]
    for words in (("pools",), ("runs", "list"), ("runs", "show", "last"), ("runs", "result", "last"), ("doctor",)):
        assert isinstance(json.loads(site.say(*words, "--json").out), dict), words


def test_a_fault_in_reading_one_worker_ends_that_attempt_alone(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel of this test is this process, so that the fault can be put into it."""
    from tests.server.workflows import record

    from bullswarm_core.kernel.engine import drive
    from bullswarm_server.ops.services import services_for

    real = attempt.LiveAttempt._read_stream

    def broken(self: attempt.LiveAttempt) -> bool:
        if self.picked.step == "a":
            raise RuntimeError("boom in the reader")
        return real(self)

    monkeypatch.setattr(attempt.LiveAttempt, "_read_stream", broken)
    site.worker("alpha", SAY)
    run_id = record(site, document({"id": "a"}, {"id": "b"}))
    told: list[str] = []
    with site.database() as connection:
        state = drive(services_for(site.home, site.environ), connection, run_id, say=told.append)
    assert statuses(state) == {"a": "failed", "b": "succeeded"}
    finished = state.steps["a"].attempts[-1].finished
    assert finished is not None and finished.failure_kind == "runtime"
    assert "RuntimeError: boom in the reader" in finished.why and any("Traceback" in line for line in told)
    assert Path(site.run_folder()).is_dir()
