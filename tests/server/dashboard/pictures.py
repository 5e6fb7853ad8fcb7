"""Draws the pictures of the README: `python -m tests.server.dashboard.pictures docs`."""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
from pathlib import Path

from tests.server.dashboard.world import Runs, World, furnished

from bullswarm_server.cli.main import dispatch
from bullswarm_server.dashboard.app import Dashboard
from bullswarm_server.dashboard.rows import Place
from bullswarm_server.dashboard.source import Source

SIZE = (100, 28)
# Fonts would be fetched from elsewhere; every system has some letters of one width.
_FONTS = re.compile(r"@font-face \{.*?\}|<!--.*?-->", re.DOTALL)
_ID = re.compile(r"terminal-\d+")


async def draw(folder: Path, world: World, runs: Runs) -> list[Path]:
    """Write a picture of Home, of a run, and of a pool."""
    places = {"home": None, "run": Place("run", runs.running), "pools": Place("pool", name="beta")}
    found = []
    for name, place in places.items():
        app = Dashboard(Source(world.home, world.environ), call=dispatch, read_sec=None)
        async with app.run_test(size=SIZE) as pilot:
            await app.read_now()
            if place is not None:
                app.open(place)
                await pilot.pause()
                await app.read_now()
                await app.read_now()
            await pilot.pause()
            picture = folder / f"dashboard-{name}.svg"
            picture.write_text(of_its_own(app.export_screenshot(title="bullswarm"), name), encoding="utf-8")
            found.append(picture)
    return found


def of_its_own(svg: str, name: str) -> str:
    """Return a picture that fetches nothing, with the same ids each time."""
    return _ID.sub(f"bullswarm-{name}", _FONTS.sub("", svg)).replace("Fira Code", "monospace")


def main() -> None:
    """Draw into the folder that is named."""
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as root:
        world = World(Path(root), said="")
        asyncio.run(draw(folder, world, furnished(world)))
        world.close()


if __name__ == "__main__":
    main()
