"""The files that a CLI opens and runs, as strace tells them."""

import re
import shutil
from pathlib import Path

from tests.agents.install import BIN_FOLDER
from tests.agents.machine import Machine

_CALL = re.compile(r'^(open|openat|execve|readlink)\((?:AT_FDCWD, |\d+, )?"((?:[^"\\]|\\.)*)", ?(.*)$')
_FAILED = re.compile(r"= (?:-1 E\w+|\? )")
# A file that is only written, made by this very process, looked at, or a folder that is listed instructs nobody.
_NOT_READ = re.compile(r"O_WRONLY|O_EXCL|O_DIRECTORY|O_PATH")


def trace(machine: Machine) -> Path:
    """Have the machine's CLI start under strace from now on, and return the folder that strace fills."""
    strace = shutil.which("strace")
    assert strace, "strace is not installed: apt-get install strace"
    record = machine.root / "trace"
    record.mkdir()
    binary = machine.root / "bin" / machine.setup.binary
    binary.unlink()
    # One file for each process: in one for all of them, two calls at the same time are torn apart.
    binary.write_text(
        f"#!/bin/sh\nexec {strace} -ff -qq -s 4096 -e trace=open,openat,execve,readlink -e signal=none"
        f" -o '{record}/'\"$$\" '{BIN_FOLDER / machine.setup.binary}' \"$@\"\n",
        encoding="utf-8",
    )
    binary.chmod(0o755)
    return record


def read_or_run(record: Path, folders: tuple[str, ...]) -> set[str]:
    """Return the path of each file in ``folders`` (with a slash at the end) that was opened to be read, or executed."""
    found = set()
    for file in record.iterdir():
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            call = _CALL.search(line)
            if call is None or _FAILED.search(line):
                continue
            _name, path, rest = call.groups()
            if path.startswith(folders) and not _NOT_READ.search(rest) and not Path(path).is_dir():
                found.add(path)
    return found
