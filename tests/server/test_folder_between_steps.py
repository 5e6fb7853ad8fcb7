"""A folder that is gone between two steps ends the second: it never works in another one instead (bug report B78)."""

from __future__ import annotations

from pathlib import Path

from tests.core.runs.journals import document
from tests.server.site import ANSWER, Site
from tests.server.workflows import begin, ended, statuses

# The first task takes the folder away, and whatever it left behind would be found by the second in its place.
SCRIPT = f"""case "$(cat)" in
  *"TAKE AWAY"*) mv "$PWD" "$PWD-moved";;
  *) pwd -P >> "$HOME/where.txt";;
esac
echo '{ANSWER}'"""


def test_the_next_step_fails_by_name_and_works_nowhere_else(site: Site) -> None:
    site.worker("one", SCRIPT)
    program = document({"id": "a", "prompt": "TAKE AWAY"}, {"id": "b", "dependsOn": ["a"], "prompt": "Look."})
    before = set(site.project.rglob("*"))
    state = ended(site, begin(site, program, retryAttempts=0))
    assert statuses(state) == {"a": "succeeded", "b": "failed"}
    last = state.steps["b"].attempts[-1].finished
    assert last is not None and last.failure_kind == "process"
    assert f"cannot work in {site.project}: No such file or directory" in last.why
    assert not (Path(site.environ["HOME"]) / "where.txt").exists()
    assert {Path(str(path).replace("-moved", "", 1)) for path in Path(f"{site.project}-moved").rglob("*")} == before
