"""A worker finds itself in the real folder of its task, by its working directory and by $PWD alike."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.core.runs.journals import document
from tests.server.site import ANSWER, Site
from tests.server.workflow_site import goal

WHERE = f"""cat > /dev/null
python3 -c 'import os, json; print(json.dumps([os.environ["PWD"], os.getcwd()]))' > "$PWD/where.json"
echo '{ANSWER}'"""


@pytest.mark.parametrize("named", ["link", "./link", "link/../link"])
def test_a_link_as_the_folder_is_worked_in_by_its_real_name(site: Site, named: str) -> None:
    site.worker("alpha", WHERE)
    link = site.root / "link"
    link.symlink_to(site.project)
    words = ("run", "--lane", "build", "--json", "--add-dir", str(site.root / named), "Write it.")
    said = site.say(*words, environ={"PWD": "/somewhere/else"})
    assert said.document["changedFiles"] == ["where.json"], said.out
    real = str(Path(site.project).resolve())
    assert json.loads((site.project / "where.json").read_text()) == [real, real]


def test_so_is_the_folder_of_a_workflow(site: Site) -> None:
    site.worker("alpha", WHERE)
    link = site.root / "link"
    link.symlink_to(site.project)
    program = document({"id": "a", "lane": "build", "prompt": "Write it.", "files": ["where.json"]})
    assert goal(site, program, "--foreground", cwd=link).code == 0
    real = str(Path(site.project).resolve())
    assert json.loads((site.project / "where.json").read_text()) == [real, real]
