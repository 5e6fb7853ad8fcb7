"""Each recording is complete and holds nothing of the machine that it was made on."""

import json
from pathlib import Path

import pytest
from tests.agents.setups import SETUPS
from tests.recordings.cleaning import clean
from tests.recordings.record import CASES

FOLDER = Path(__file__).resolve().parent
EVERY_CASE = [(agent, case.name) for agent in SETUPS for case in CASES]


@pytest.mark.parametrize(("agent", "case"), EVERY_CASE)
def test_a_recording_is_complete(agent: str, case: str) -> None:
    report = json.loads((FOLDER / agent / f"{case}.json").read_text(encoding="utf-8"))
    assert {"exitCode", "seconds", "argv", "stdin", "note", "requests", "leftBehind"} <= report.keys()
    assert report["requests"] >= 1
    assert report["leftBehind"] == (["hello.txt"] if case == "tool" else [])
    for line in (FOLDER / agent / f"{case}.jsonl").read_text(encoding="utf-8").splitlines():
        assert isinstance(json.loads(line), dict)


@pytest.mark.parametrize(
    "path",
    sorted(path for path in FOLDER.glob("*/*") if path.parent.name not in ("__pycache__", "homes")),
    ids=lambda path: f"{path.parent.name}/{path.name}",
)
def test_a_recording_names_no_place_of_its_machine(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text) < 20_000
    for place in ("/var/tmp", "-var-tmp", "%2Fvar%2Ftmp", "/root", "/work", "node_modules"):
        assert place not in text


def test_cleaning_keeps_a_line_that_needs_no_change_to_the_byte() -> None:
    line = '{"id": "a",  "id": "b"}\n'
    assert clean(line + "no json /tmp/x/home\n", {"/tmp/x/home": "/home/user"}) == line + "no json /home/user\n"


def test_cleaning_shortens_lists_and_hides_the_socket() -> None:
    event = {"messaging_socket_path": "/tmp/cc-socks/77.sock", "tools": ["tool"] * 2_000}
    cleaned = json.loads(clean(json.dumps(event), {}))
    assert cleaned == {"messaging_socket_path": "/tmp/cc-socks/1.sock", "tools": ["tool"] * 6}
