"""The rules of the Claude Mod's code, run by Node: errors of a start, letters and their cells, and a start that is refused."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.agents.install import NODE, TYPE_CHECKER
from tests.agents.machine import COMMAND_LIMIT_SEC

from bullswarm_server.integrate.sources import claude_mod

pytestmark = pytest.mark.real_cli

Run = Callable[[str], Any]

# The three of Claude Code's own that the code takes from `claude-code`, kept in a plain table.
HOST = """
const kept = {}
exports.refused = new Set()
exports.atom = ({ key }, first) => { if (!(key in kept)) kept[key] = first; return key }
exports.read = async (_, key) => kept[key]
exports.update = async (_, key, change) => {
  if (exports.refused.has(key)) throw new Error(`update of ${key} is refused`)
  kept[key] = change(kept[key])
}
"""
# Every action that the start takes, by name; the ones that are refused throw.
FAKE = """
const host = require('claude-code')
const made = []
const fake = (refused, answers = {}) => {
  const act = (name, answer) => async (...words) => {
    if (refused.includes(name)) throw new Error(`${name} is refused`)
    made.push(name)
    return typeof answer === 'function' ? answer(...words) : answer
  }
  return {
    env: { get: act('env.get', answers.env ?? ''), set: act('env.set') },
    process: { hookEnv: act('hookEnv', {}), run: act('run', answers.run ?? { exitCode: 0, stdout: '', stderr: '' }) },
    clock: {
      now: act('now', () => Date.now()),
      every: (...words) => { if (refused.includes('every')) throw new Error('every is refused'); made.push('every') },
      sleep: act('sleep', ms => new Promise(done => setTimeout(done, ms))),
    },
    fs: { stat: act('stat', undefined), read: act('read', '') },
    ui: { panes: act('panes', []) },
    command: { register: act('register') },
    session: { cwd: act('cwd', '/') },
  }
}
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The mod's modules as plain JavaScript, beside a small host."""
    folder = tmp_path_factory.mktemp("mod-rules")
    source = folder / "source"
    shutil.copytree(Path(claude_mod(), "hooks"), source)
    host = folder / "node_modules" / "claude-code" / "index.js"
    host.parent.mkdir(parents=True)
    host.write_text(HOST, encoding="utf-8")
    words = ["--outDir", str(folder), "--module", "commonjs", "--target", "es2022", "--noCheck", "--jsx", "react"]
    files = [str(source / name) for name in ("words.ts", "program.ts", "session.ts", "pane.tsx")]
    done = subprocess.run(
        [str(NODE), str(TYPE_CHECKER), *words, *files], capture_output=True, text=True, timeout=COMMAND_LIMIT_SEC
    )
    assert (folder / "session.js").is_file(), done.stdout
    return folder


@pytest.fixture
def run(compiled: Path) -> Run:
    def answer(script: str) -> Any:
        """Run a script, as the body of an async function, and return what it returned."""
        text = f"(async () => {{ {script} }})().then(value => process.stdout.write(JSON.stringify(value ?? null)))"
        done = subprocess.run(
            [str(NODE), "-"], input=text, cwd=compiled, capture_output=True, text=True, timeout=COMMAND_LIMIT_SEC
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return answer


START = "HooksError: bullswarm: $.process.run(bullswarm) "


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (START + 'failed to start: ENOENT: Executable not found in $PATH: "bullswarm"', 127),
        (START + "failed to start: ENOENT: no such file or directory, posix_spawn '/opt/timeout/bullswarm'", 127),
        (START + "failed to start: EACCES: permission denied, posix_spawn '/home/tim/aborted/runtime/bullswarm'", 127),
        (START + "failed to start: ENOEXEC: unknown error, posix_spawn 'bullswarm'", 127),
        (START + "failed to start: E2BIG: argument list too long, posix_spawn 'bullswarm'", 127),
        ("Error: spawn bullswarm ETXTBSY one time, then EAGAIN", 127),
        (START + "aborted: still running after 30000ms", 124),
        # Nothing says that it did not start: a second agent must not do the same work.
        (START + "aborted: the session is over", 124),
    ],
)
def test_only_an_error_that_tells_of_no_start_is_one(run: Run, error: str, code: int) -> None:
    found = run(f"return require('./program').failureOf({json.dumps(error)})")
    assert found == {"code": code, "isLate": code == 124}


def test_what_a_started_bullswarm_says_of_a_missing_file_is_its_own_trouble(run: Run) -> None:
    said = run(
        "return require('./program').troubleOf({code: 1, out: '', err: 'bullswarm: ENOENT: not found', isLate: false})"
    )
    assert said.startswith("bullswarm is broken: ENOENT: not found")
    said = run("return require('./program').troubleOf({code: 127, out: '', err: '', isLate: false})")
    assert "can't be started" in said


def test_no_unseen_mark_is_left_in_a_line(run: Run) -> None:
    unseen = [0x61C, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x206A), 0xFEFF]
    marks = "".join(f"a{chr(code)}b" for code in unseen)
    lines = "one\u2028two\u2029three\n\tfour\x1b[2J\u0085five"
    found = run(f"const {{ oneLine }} = require('./words'); return {json.dumps([marks, lines])}.map(oneLine)")
    assert found == ["ab" * len(unseen), "one two three four [2J five"]


def width(letter: str) -> int:
    """The cells of a letter by Unicode's East Asian Width; a mark takes none."""
    if unicodedata.category(letter) in {"Mn", "Me"} and ord(letter) >= 0x300:
        return 0
    return 2 if unicodedata.east_asian_width(letter) in {"W", "F"} else 1


# Unicode 16 made these wide, which terminals don't know yet.
SINCE_16 = {*range(0x2630, 0x2638), *range(0x268A, 0x2690), *range(0x4DC0, 0x4E00), *range(0x1D300, 0x1D377)}


def test_each_letter_counts_the_cells_that_unicode_gives_it(run: Run) -> None:
    found, marks = run(
        "const { cells } = require('./words'); const all = []; const marks = [];"
        "for (let code = 0; code < 0x110000; code++) {"
        " const letter = code >= 0xd800 && code < 0xe000 ? '' : String.fromCodePoint(code);"
        " all.push(cells(letter)); marks.push(/[\\p{Mn}\\p{Me}]/u.test(letter) ? 1 : 0) }"
        "return [all.join(''), marks.join('')]"
    )
    wrong: dict[str, str] = {}
    for code in sorted(set(range(sys.maxunicode + 1)) - SINCE_16):
        kind = unicodedata.category(chr(code))
        # A letter that the two Unicode versions take for another kind says nothing about the count.
        is_known = kind not in {"Cn", "Cs", "Co"} and (marks[code] == "1") == (kind in {"Mn", "Me"})
        if is_known and int(found[code]) != width(chr(code)):
            wrong[f"{code:x}"] = found[code]
    assert wrong == {}


SAMPLES = ["plain", "解析器を説明する", "a解b析c", "🚀🚀🚀 go", "e\u0301te\u0301", "한국어 label", "", "ｆｕｌｌ"]


def test_a_text_is_cut_and_padded_by_cells(run: Run) -> None:
    found = run(
        f"const {{ cells, clipped, fitted }} = require('./words'); const texts = {json.dumps(SAMPLES)};"
        "return texts.map(text => [...Array(20).keys()].map(most => [clipped(text, most), fitted(text, most)]))"
    )
    for text, cuts in zip(SAMPLES, found, strict=True):
        whole = sum(map(width, text))
        for most, (cut, padded) in enumerate(cuts):
            cells = sum(map(width, cut))
            if whole <= most:
                assert cut == text
            else:
                assert cut.endswith("…") and text.startswith(cut[:-1]) and max(most, 1) - 1 <= cells <= max(most, 1)
            assert padded == cut + " " * (most - cells)


@pytest.mark.parametrize("refused", ["env.set", "hookEnv", "register", "every", "stat", "now", "strip"])
def test_a_start_leaves_out_the_one_action_that_is_refused(run: Run, refused: str) -> None:
    awake, made = run(
        f"{FAKE} host.refused.add('{refused}'); const {{ newSession, wake }} = require('./session');"
        f"const session = newSession(); await wake(fake(['{refused}']), session, 'full'); return [session.isAwake, made]"
    )
    assert awake is True
    assert {"register", "every"} - {refused} <= set(made) and refused not in made


def test_nothing_begins_where_nobody_can_tell_whether_this_is_a_worker(run: Run) -> None:
    awake, made = run(
        f"{FAKE} const {{ newSession, wake }} = require('./session'); const session = newSession();"
        "await wake(fake(['env.get']), session, 'full'); return [session.isAwake, made]"
    )
    assert awake is False and made == []


CALL = "{ prompt: 'Explain it.', subagent_type: 'general-purpose' }"


def test_a_bullswarm_that_does_not_answer_holds_no_subagent_up_for_long(run: Run) -> None:
    """Twice at once: the second call doesn't wait for an answer of its own, and a call that is left alone waits for none."""
    script = (
        f"{FAKE} const {{ newSession, handedOver, ANSWER_MS }} = require('./session');"
        "const session = newSession(); session.isAwake = true; let asked = 0;"
        "const $ = fake([], { run: () => { asked++; return new Promise(() => undefined) } });"
        "$.clock.sleep = async ms => { slept.push(ms) }; const slept = []; let at = 1000; $.clock.now = async () => at;"
        "const alone = await handedOver($, session, { prompt: 'Explain it.', subagent_type: 'statusline-setup' });"
        f"const first = await handedOver($, session, {CALL}); at += 4000; const second = await handedOver($, session, {CALL});"
        f"at += 9000; await handedOver($, session, {CALL});"
        "return { alone: alone ?? null, first, second, slept, asked, most: ANSWER_MS }"
    )
    found = run(script)
    assert found["alone"] is None and found["asked"] == 1
    assert found["most"] == 5000 and found["slept"] == [5000, 1000, 0]
    for given in (found["first"], found["second"]):
        assert given["outcome"] == {"kind": "not started", "why": "bullswarm did not answer within 5 s"}


def test_a_quick_answer_is_taken_and_decides(run: Run) -> None:
    state = {"schemaVersion": "bullswarm.mod-state.v1", "delegation": False, "pools": [], "runs": [], "verdicts": []}
    text = json.dumps(json.dumps(state))
    found = run(
        f"{FAKE} const {{ newSession, handedOver }} = require('./session'); const session = newSession();"
        f"session.isAwake = true; const $ = fake([], {{ run: {{ exitCode: 0, stdout: {text}, stderr: '' }} }});"
        "$.clock.sleep = () => new Promise(() => undefined);"
        f"return [await handedOver($, session, {CALL}) ?? null, made.filter(name => name === 'run').length]"
    )
    assert found == [None, 1]


# Elements as plain tables, and the text that is in them.
DRAWN = """
globalThis.React = { createElement: (type, props, ...inside) => ({ inside }) }
const text = one => typeof one === 'string' ? one : Array.isArray(one) ? one.map(text).join('') : text(one?.inside ?? '')
"""
AT = 1_772_323_200  # 2026-03-01T00:00:00Z
POOL = {
    "pool": "work", "poolLabel": "work", "provider": "alpha", "enabled": True, "bucket": "full", "metered": True,
    "lastResort": False, "surplus": 30, "inflight": 0, "pacingWindow": "weekly", "fiveHour": None, "weekly": None,
    "backAt": "2026-03-01T03:20:00Z", "why": "the limit of work is reached", "windows": [],
}  # fmt: skip


@pytest.mark.parametrize(
    ("state", "back_at", "in_strip", "in_pane"),
    [
        ("quarantined", POOL["backAt"], "quarantined, back in 3h", "quarantined · back in 3h · "),
        ("quarantined", None, "quarantined", "quarantined · "),
        ("burst-gated", POOL["backAt"], "full, back in 3h", "burst-gated · back in 3h · "),
        ("ready", POOL["backAt"], "+30", "ready · "),
    ],
)
def test_a_pool_that_is_left_out_for_a_time_says_until_when(
    run: Run, state: str, back_at: str | None, in_strip: str, in_pane: str
) -> None:
    pool = {**POOL, "state": state, "backAt": back_at}
    given = {
        "state": {"pools": [pool], "runs": [], "verdicts": []},
        "view": {"page": "pools"},
        "columns": 100,
        "now": AT,
    }
    strip, pane = run(
        f"{DRAWN} const {{ poolRow }} = require('./strip'); const {{ paneBody }} = require('./pane');"
        f"return [poolRow({{}}, {json.dumps(pool)}, 100, {AT}, 8), paneBody({{}}, {json.dumps(given)})].map(text)"
    )
    assert strip.endswith(in_strip)
    assert f"work {in_pane}surplus 30 · the limit of work is reached" in pane
