"""A typed answer from the command line to its verdict: how it is asked for, where it is found, what is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.server.site import ANSWER, SAY, Site, tree

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"passed": {"type": "boolean"}, "findings": {"type": "array", "items": {"type": "string"}}},
    "required": ["passed"],
    "additionalProperties": False,
}
TYPED = ("--answer-schema", json.dumps(SCHEMA))
GOOD = '{"passed": true, "findings": ["a"]}'
# The place of the answer file stands in the task; a worker of these tests finds it as a model does.
TASK_TO_FILE = """task=$(cat)
file=$(printf '%s' "$task" | sed -n 's/.*into the file \\([^,]*\\), and nothing.*/\\1/p')
"""


def replies(text: str) -> str:
    return f"cat > /dev/null\ncat <<'END_OF_REPLY'\n{text}\nEND_OF_REPLY"


@pytest.mark.parametrize("reply", [GOOD, f"```json\n{GOOD}\n```", f"Here it is.\n\n```\n{GOOD}\n```\nThat is all."])
def test_a_reply_that_matches_is_the_answer(site: Site, reply: str) -> None:
    site.worker("alpha", replies(reply))
    said = site.run(*TYPED)
    verdict = said.document
    assert (said.code, verdict["ok"], verdict["why"]) == (0, True, "answer checked (final reply)"), verdict
    assert verdict["answer"] == json.loads(GOOD)
    check = verdict["answerCheck"]
    assert (check["ok"], check["source"], check["problems"], check["checked"]) == (True, "final-reply", [], True)
    assert json.loads(Path(check["file"]).read_text()) == verdict["answer"]
    assert Path(check["file"]) == site.run_folder() / "answer-run-attempt-1.json"
    assert Path(check["file"]).stat().st_mode & 0o777 == 0o600
    assert json.loads((site.run_folder() / "answer-run-attempt-1.schema.json").read_text()) == SCHEMA


def test_the_task_says_how_the_answer_is_given(site: Site) -> None:
    site.worker("alpha", replies(GOOD))
    (site.project / "x.txt").touch()
    read_only = Path(site.run(*TYPED).document["taskFile"]).read_text()
    writing = Path(site.run(*TYPED, lane="build").document["taskFile"]).read_text()
    for text in (read_only, writing):
        assert text.startswith("Explain the parser.\n") and json.dumps(SCHEMA, separators=(",", ":")) in text
    assert "into the file" not in read_only and "Your final reply is the answer" in read_only
    assert "/tmp-run-attempt-1/answer.json, and nothing else into it" in writing
    assert "matches the schema" not in Path(site.run().document["taskFile"]).read_text()


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ('{"passed": "yes"}', "the answer does not match its schema: #/passed: 'yes' is not of type 'boolean' · final reply"),
        ("{}", "the answer does not match its schema: 'passed' is a required property · final reply"),
        ('{"passed": 1, "x": 1}', "(and 1 more) · final reply"),
        ('{"passed": true', "it is not JSON"),
        (ANSWER, "it is not JSON"),
        ('{"passed": true, "passed": false}', 'the key "passed" stands twice in one object'),
        ('{"passed": NaN}', "NaN is no JSON number"),
        (f"```json\n{GOOD}\n```\n```json\n{GOOD}\n```", "it has 2 code fences"),
        ('{"a": ' * 100 + "1" + "}" * 100, "it is nested deeper than 64 levels"),
    ],
)  # fmt: skip
def test_a_reply_that_does_not_match_is_a_failure(site: Site, reply: str, why: str) -> None:
    site.worker("alpha", replies(reply))
    said = site.run(*TYPED)
    verdict = said.document
    assert (said.code, verdict["ok"], verdict["failureKind"], verdict["answer"]) == (1, False, "schema", None), verdict
    assert why in verdict["why"] and "\n" not in verdict["why"]
    assert verdict["answerCheck"]["ok"] is False and verdict["answerCheck"]["problems"]
    assert Path(verdict["outFile"]).read_text().strip() == reply


def test_no_answer_at_all_is_a_failure_of_the_schema_kind(site: Site) -> None:
    site.worker("alpha", "cat > /dev/null")
    verdict = site.run(*TYPED).document
    assert (verdict["failureKind"], verdict["answerCheck"]["source"]) == ("schema", None)
    assert "none was given" in verdict["why"]


def test_a_question_back_is_told_as_one(site: Site) -> None:
    site.worker("alpha", replies("Which of the two parsers do you mean?"))
    assert site.run(*TYPED).document["failureKind"] == "needs-input"


def test_a_short_or_error_shaped_value_is_an_answer(site: Site) -> None:
    site.worker("alpha", replies('{"error": "none"}'))
    verdict = site.run("--answer-schema", '{"type": "object"}').document
    assert (verdict["ok"], verdict["answer"], verdict["notes"]) == (True, {"error": "none"}, [])
    site.worker("alpha", replies("null"))
    verdict = site.run("--answer-schema", '{"type": "null"}').document
    assert (verdict["ok"], verdict["answer"], verdict["answerCheck"]["ok"]) == (True, None, True)


def test_a_worker_that_writes_gives_the_answer_as_a_file(site: Site) -> None:
    site.worker(
        "alpha",
        f"{TASK_TO_FILE}printf '\\357\\273\\277%s' '{GOOD}' > \"$file\"\necho made > made.txt\necho 'I made it.'",
    )
    verdict = site.run(*TYPED, lane="build").document
    assert (verdict["ok"], verdict["why"]) == (True, "1 file changed, answer checked (answer file)"), verdict
    assert (verdict["answer"], verdict["answerCheck"]["source"]) == (json.loads(GOOD), "answer-file")
    assert verdict["changedFiles"] == ["made.txt"]
    assert not (site.run_folder() / "tmp-run-attempt-1").exists()
    assert json.loads(Path(verdict["answerCheck"]["file"]).read_text()) == verdict["answer"]


def test_without_a_file_the_reply_of_a_writer_counts(site: Site) -> None:
    site.worker("alpha", f"{replies(GOOD)}\necho made > made.txt")
    verdict = site.run(*TYPED, lane="build").document
    assert (verdict["ok"], verdict["answerCheck"]["source"]) == (True, "final-reply")


def test_an_answer_does_not_stand_for_the_work(site: Site) -> None:
    site.worker("alpha", replies(GOOD))
    verdict = site.run(*TYPED, lane="build").document
    assert (verdict["ok"], verdict["failureKind"], verdict["answerCheck"]["ok"]) == (False, "not-produced", True)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        ('ln -s "$PWD/real.json" "$file"', "answer.json is a symbolic link"),
        ('mkfifo "$file"', "answer.json is a FIFO"),
        ('mkdir "$file"', "answer.json is a folder"),
        ('ln -s /dev/zero "$file"', "answer.json is a symbolic link"),
        ('truncate -s 1T "$file"', "it has 1099511627776 bytes and may have 262144"),
        ('printf "\\377\\376{\\000" > "$file"', "it is not UTF-8 (byte 0)"),
        (': > "$file"', "it is empty"),
        ("""printf '{"passed": "no"}' > "$file\"""", "'no' is not of type 'boolean'"),
    ],
)
def test_a_wrong_file_is_not_made_good_by_the_reply(site: Site, make: str, why: str) -> None:
    (site.project / "real.json").write_text(GOOD)
    site.worker("alpha", f"{TASK_TO_FILE}{make}\necho made > made.txt\necho '{GOOD}'")
    verdict = site.run(*TYPED, lane="build").document
    assert (verdict["ok"], verdict["failureKind"], verdict["answer"]) == (False, "schema", None), verdict
    assert why in verdict["why"] and verdict["answerCheck"]["source"] == "answer-file"
    kept = verdict["answerCheck"]["file"]
    assert kept is None or (Path(kept).is_file() and not Path(kept).is_symlink())


def test_a_reader_that_wrote_a_file_all_the_same_is_heard_by_its_reply(site: Site) -> None:
    site.worker("alpha", f"echo 'not json' > \"$TMPDIR/answer.json\"\n{replies(GOOD)}")
    assert site.run(*TYPED).document["answerCheck"]["source"] == "final-reply"


def test_a_check_without_an_end_is_no_verdict_on_the_answer(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.worker("alpha", replies('"' + "a" * 40 + '!"'))
    sitecustomize = site.root / "custom"
    sitecustomize.mkdir()
    (sitecustomize / "sitecustomize.py").write_text(
        "import bullswarm_core.answers.answer as answer\nanswer.validator.__kwdefaults__['timeout_sec'] = 1.0\n"
    )
    path = f"{sitecustomize}{os.pathsep}{site.environ['PYTHONPATH']}"
    verdict = site.run("--answer-schema", '{"pattern": "^(a+)+$"}', environ={"PYTHONPATH": path}).document
    assert (verdict["failureKind"], verdict["answerCheck"]["checked"]) == ("runtime", False), verdict
    assert "took more than 1 s" in verdict["why"]


def test_an_exit_that_is_not_0_counts_before_a_valid_answer(site: Site) -> None:
    site.worker("alpha", f"{replies(GOOD)}\nexit 3")
    verdict = site.run(*TYPED).document
    assert (verdict["failureKind"], verdict["contentUsableDespiteExit"], verdict["answerCheck"]["ok"]) == (
        "process",
        True,
        True,
    )


# --- the schema as an argument


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ('{"patternProperties": {}}', '--answer-schema: unsupported keyword "patternProperties" at #'),
        (
            '{"properties": {"a": {"type": "strng"}}}',
            '--answer-schema: "type" at #/properties/a is "strng": it must be',
        ),
        ('{"$ref": "https://x.test/a"}', '"$ref" at # is "https://x.test/a": only a place in this schema'),
        ('{"type": "null", "type": "string"}', 'the key "type" stands twice'),
        ("{nonsense", "--answer-schema: it is not JSON"),
        ("nowhere.json", "cannot read the answer schema nowhere.json: No such file or directory"),
        ("/dev/zero", "the answer schema /dev/zero is no regular file"),
        ('{"properties": ' * 100 + "{}" + "}" * 100, "--answer-schema: it is nested deeper than 64 levels"),
        ('{"description": "' + "x" * 100_000 * 11 + '"}', "--answer-schema: is too large (limit 1 MiB)"),
    ],
    ids=lambda text: text[:20],
)
def test_a_schema_that_is_refused_starts_nothing(site: Site, schema: str, words: str) -> None:
    site.worker("alpha", SAY)
    before = tree(site.root)
    said = site.run("--answer-schema", schema)
    assert (said.code, said.out) == (2, "") and words in said.err, said.err[:300]
    assert tree(site.root) == before


def test_a_schema_is_read_from_a_file(site: Site) -> None:
    site.worker("alpha", replies(GOOD))
    file = site.root / "schema.json"
    file.write_text("\ufeff" + json.dumps(SCHEMA), encoding="utf-8")
    assert site.run("--answer-schema", str(file)).document["ok"]
    file.write_text("[]")
    said = site.run("--answer-schema", str(file))
    assert said.code == 2 and f"the answer schema {file}: must be a JSON schema object, not []" in said.err


# --- reading it


def test_people_see_the_answer_or_what_is_wrong_with_it(site: Site) -> None:
    site.worker("alpha", replies(GOOD))
    site.run(*TYPED)
    said = site.say("runs", "show", "last")
    assert f"answer: {GOOD}" in said.out and "answer checked: final reply, 35 bytes · /" in said.out
    result = site.say("runs", "result", "last", "--json").document
    assert result["answer"] == json.loads(GOOD) and result["answerCheck"]["ok"]
    site.worker("alpha", replies('{"passed": "\\u001b[31m", "x\\u001b": 1}'))
    site.run(*TYPED)
    said = site.say("runs", "show", "last")
    assert "answer: #/passed: " in said.out and "answer refused: final reply" in said.out and "\x1b" not in said.out


def test_a_run_without_a_schema_says_nothing_of_answers(site: Site) -> None:
    site.worker("alpha", SAY)
    verdict = site.run().document
    assert (verdict["answer"], verdict["answerCheck"]) == (None, None)
    assert "answer" not in site.say("runs", "show", "last").out.replace("answered", "")


def test_the_schema_lies_with_the_task_in_the_journal(site: Site) -> None:
    site.worker("alpha", replies(GOOD))
    run_id = site.run(*TYPED).document["runId"]
    (step,) = site.state_of(run_id).created.program["steps"]
    assert step["answer"] == SCHEMA


def test_a_dry_run_writes_nothing_and_shows_the_command(site: Site) -> None:
    site.worker("alpha", SAY)
    before = tree(site.root)
    said = site.run(*TYPED, "--dry-run")
    assert said.code == 0 and tree(site.root) == before
