"""The Claude Mod in the real Claude Code, in a terminal: what a person sees of pools and runs, and what the keys do."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any

import pytest
from tests.agents import mod_sessions
from tests.agents.conftest import MachineMaker
from tests.agents.machine import Machine
from tests.agents.mod_sessions import TRIES, TRY_SEC, by_click, claude, furnish, say
from tests.agents.scripted_model.request import ModelRequest
from tests.agents.scripted_model.scenario import Turn
from tests.agents.scripted_model.scenario import say as answer
from tests.agents.setups import CLAUDE
from tests.agents.terminal import Terminal

from bullswarm_core.store.home import Home, write_json
from bullswarm_core.wire import iso

pytestmark = pytest.mark.real_cli

ANSWER = "The parser splits each line at its commas, then takes the quotes off every field."
TASK = "Explain the parser of this project."
# The bar of 42 % with the mark of its time at the half: five hours, two and a half of them gone.
FIVE_HOURS, HALF_OF_THEM = "████░│░░░░ 42%", timedelta(hours=2, minutes=30)


def use(machine: Machine, pool: str, *, five_hour: float, weekly: float) -> None:
    """Write a reading of this pool's meter, both windows at half their time."""
    now = datetime.now(UTC)
    windows = [
        window("5h", five_hour, now + HALF_OF_THEM, length=timedelta(hours=5)),
        window("weekly", weekly, now + timedelta(days=3, hours=12), length=timedelta(days=7)),
    ]
    document = {
        "schemaVersion": "bullswarm.meter.v1", "pool": pool, "capturedAt": iso(now), "readBy": "test", "refusal": None,
        "windows": windows,
    }  # fmt: skip
    write_json(Home(machine.state).meter_file(pool), document)


def window(kind: str, used: float, resets_at: datetime, *, length: timedelta) -> dict[str, Any]:
    return {
        "kind": kind, "usedPct": used, "resetsAt": iso(resets_at), "lengthSec": length.total_seconds(), "scope": None,
        "source": "live", "resetSource": "provider",
    }  # fmt: skip


@pytest.fixture
def release() -> Iterator[Event]:
    """Lets the worker go that a test holds; it goes in any case when the test is over."""
    event = Event()
    yield event
    event.set()


@pytest.fixture
def machine(make_machine: MachineMaker, release: Event) -> Machine:
    """Claude Code before a model that greets, and Codex whose model answers when it is let go."""

    def turn(request: ModelRequest) -> Turn:
        if TASK in request.prompt:
            assert release.wait(180)
            return answer(ANSWER)
        return answer("Hello there.")

    return make_machine(CLAUDE, [turn])


def wide(row: str, columns: int) -> bool:
    """Whether a row is too wide for what the strip may take: the last five cells are Claude Code's own."""
    return len(row.replace("[-]", "").rstrip()) > columns - 5


def test_a_person_sees_pools_and_runs_sets_a_label_and_looks_into_a_step(machine: Machine, release: Event) -> None:
    mod = furnish(machine)
    use(machine, "codex", five_hour=42, weekly=30)
    assert machine.bullswarm("label", "codex", "cx").returncode == 0
    with claude(machine, "--plugin-dir", str(mod)) as session:
        full = session.wait(FIVE_HOURS)
        (row,) = session.rows(FIVE_HOURS)
        assert row.startswith("cx ") and "weekly ███░░│░░░░ 30%" in row and "surplus +20" in row, full
        assert "echo" not in full

        run = machine.start("run", "--json", "--lane", "analyze", "--pool", "codex", TASK)
        shown = session.wait(rf"1: ▶ \w+ {TASK} · analyze · on cx · \d+s")
        assert "1 in flight" in session.wait("1 in flight"), shown
        name = re.findall(r"1: ▶ (\w+) ", shown)[0]

        look_into_the_step(session, name)
        narrow(session)
        set_a_label(session)
        choose_the_rows(session, name)

        release.set()
        assert run.wait(120) == 0
        # With nothing running there is nothing to say in this mode, and the strip is gone.
        session.wait(lambda screen: f"▶ {name}" not in screen and "seat" not in last_rows(screen))
        say(session, "/bullswarm runs")
        assert ANSWER not in session.wait(rf"nothing is running\n\W+✓ {name} seat · {TASK}")
        finished_step(session, name)


def last_rows(screen: str) -> str:
    return "\n".join(screen.splitlines()[-9:])


def look_into_the_step(session: Terminal, name: str) -> None:
    """By the digit in an empty composer, then by digits in the pane; back and away by its letters."""
    by_digit(session, "1", rf"{name} running · 0 of 1 done")
    session.wait(r"1: ▶ run · running · cx · \d+s")
    session.press("1")
    step = session.wait("so far")
    assert "task" in step and "0 commands" in step and TASK in step
    session.press("b")
    session.wait("so far", gone=True)
    session.press("p")
    pools = session.wait("resets in 2h")
    assert "5h           ████░│░░░░ 42%" in pools and "resets in 3d" in pools
    assert "codex · near" in pools or "codex · ready" in pools or "codex · " in pools
    session.press("Escape")
    # Beside the docked pane the bars are short, as in a narrow terminal; the next look at them must not take these for those.
    session.wait(lambda screen: "resets in 2h" not in screen and FIVE_HOURS in screen)


def by_digit(session: Terminal, digit: str, wanted: str) -> None:
    """Press a digit until it counts: in a composer that is empty it presses a row half a second later, and stays text when
    the row has only just appeared.
    """
    for _ in range(TRIES):
        # The press before may have counted late, and the digit would then press a row of the pane.
        if re.search(wanted, session.screen()):
            return
        session.press(digit)
        with contextlib.suppress(AssertionError):
            session.wait(wanted, seconds=TRY_SEC)
            return
        session.press("BSpace")
    raise AssertionError(f"{digit} is only ever text\n{session.screen()}")


def narrow(session: Terminal) -> None:
    """In 55 columns each item keeps to one row."""
    session.resize(55, 40)
    screen = session.wait(lambda screen: "5h ██│░░ 42%" in screen and "▶" in screen)
    rows = [row for row in screen.splitlines() if "42%" in row or "▶" in row]
    assert len(rows) == 2 and not any(wide(row, 55) for row in rows), screen
    assert re.search(r"wk ██│░░ 30% \+\d+ ×1$", rows[0])
    assert "on cx" in rows[1]
    session.resize(120, 40)
    session.wait(FIVE_HOURS)


def set_a_label(session: Terminal) -> None:
    say(session, "/bullswarm label cx seat")
    session.wait(r"codex is shown as seat")
    session.wait(rf"(?m)^seat +5h {FIVE_HOURS}")
    session.wait(r"· on seat ·")


def choose_the_rows(session: Terminal, name: str) -> None:
    say(session, "/bullswarm strip off")
    session.wait(lambda screen: "strip: off" in screen and f"1: ▶ {name}" not in screen)
    say(session, "/bullswarm strip runs")
    session.wait(lambda screen: f"1: ▶ {name}" in screen and FIVE_HOURS not in last_rows(screen))


def finished_step(session: Terminal, name: str) -> None:
    """Opened by name when it is over, and closed by a click."""
    say(session, f"/bullswarm open {name} run")
    session.wait("the quotes off every field")
    by_click(session, "q: close", "q: close", gone=True)


def program() -> dict[str, Any]:
    steps: list[dict[str, Any]] = [
        {"id": "survey", "prompt": "List the files.", "lane": "analyze"},
        {"id": "explain", "prompt": TASK, "lane": "analyze", "dependsOn": ["survey"]},
        {"id": "check", "prompt": "Check it all.", "lane": "analyze", "dependsOn": ["explain"]},
    ]
    return {
        "schemaVersion": "bullswarm.workflow.program.v3",
        "steps": [{**step, "route": {"pools": {"use": ["codex"]}}} for step in steps],
    }


def test_a_workflow_is_one_row_with_its_progress_and_opens_by_a_click(machine: Machine, release: Event) -> None:
    mod = furnish(machine)
    use(machine, "codex", five_hour=42, weekly=30)
    machine.bullswarm("label", "codex", "cx")
    write_json(machine.root / "program.json", program())
    with claude(machine, "--plugin-dir", str(mod)) as session:
        session.wait(FIVE_HOURS)
        goal = machine.start(
            "workflow", "goal", "Know the parser", "--program", str(machine.root / "program.json"), "--foreground"
        )
        session.wait(r"1: ▶ \w+ Know the parser · 1/3 explain · on cx · \d+s")
        steps = by_click(session, "Know the parser", r"running · 1 of 3 done")
        assert re.search(r"1: ✓ survey · succeeded · cx · \d+s", steps) and "2: ▶ explain · running · cx" in steps
        assert "3: · check · pending" in steps
        release.set()
        session.wait(r"running · 1 of 3 done", gone=True)
        assert goal.wait(120) == 0
        session.wait(r"\w+ is ok")


def test_a_broken_bullswarm_is_one_quiet_line_with_the_way_to_mend_it(machine: Machine) -> None:
    mod = furnish(machine)
    command = machine.root / "bin" / "bullswarm"
    good = command.read_text()
    mod_sessions.script(command, "echo 'bullswarm: no module named sqlite3' >&2; exit 1")
    with claude(machine, "--plugin-dir", str(mod)) as session:
        session.wait("bullswarm is broken: no module named sqlite3 · fix: run bullswarm doctor")
        assert len(session.rows("bullswarm is broken")) == 1
        # The session is none the worse for it.
        say(session, "Hello?")
        session.wait("Hello there.")
        command.unlink()
        say(session, "/bullswarm refresh")
        session.wait(r"the command bullswarm can't be started · fix: uv tool install bullswarm")
        command.write_text(good)
        command.chmod(0o755)
        say(session, "/bullswarm refresh")
        session.wait("bullswarm: read anew")
        session.wait(r"(?m)^codex ")


def test_in_a_worker_of_ours_it_does_nothing(machine: Machine) -> None:
    mod = furnish(machine)
    machine.environ["BULLSWARM_DEPTH"] = "1"
    with claude(machine, "--plugin-dir", str(mod)) as session:
        say(session, "Hello?")
        session.wait("Hello there.")
        assert "codex" not in session.screen()
    assert not (machine.state / "cache" / "mod-state.json").exists()
    assert not any("bullswarm can hand" in json.dumps(request.body) for request in machine.model.prompts())


def test_the_model_is_told_when_a_pool_changes_bucket_and_not_otherwise(machine: Machine) -> None:
    mod = furnish(machine)
    use(machine, "codex", five_hour=10, weekly=45)
    assert machine.bullswarm("pools").returncode == 0 and machine.bullswarm("mod-state").returncode == 0
    with claude(machine, "--plugin-dir", str(mod)) as session:
        session.wait(r"(?m)^codex ")
        for number in (1, 2):
            say(session, f"Hello number {number}?")
            asked(machine, f"number {number}")
            session.wait(rf"(?s)Hello number {number}\?.*Hello there\.")
        use(machine, "codex", five_hour=10, weekly=99.5)
        assert machine.bullswarm("mod-state").returncode == 0
        session.wait(r"weekly .* (99|100)%")
        say(session, "Hello number 3?")
        asked(machine, "number 3")
    counts = [told(machine, f"number {number}")[0] for number in (1, 2, 3)]
    assert counts == [1, 1, 2]


def asked(machine: Machine, words: str) -> None:
    assert machine.model.wait_for_prompt(words, timeout=60), f"the model was never asked {words}"


def told(machine: Machine, words: str) -> list[int]:
    """How often each request with these words tells of the pools."""
    bodies = [json.dumps(request.body) for request in machine.model.prompts() if words in json.dumps(request.body)]
    return [body.count("pools by surplus") for body in bodies]
