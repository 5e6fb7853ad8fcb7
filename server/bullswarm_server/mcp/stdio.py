"""The MCP server as a process: it takes the client's two streams, lets the front answer, and loads the SDK behind it.

Standard library alone, as the front, until the SDK is wanted.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import threading
import time
from typing import NoReturn

from bullswarm_server.mcp.front import Front, Wire, catalogue_file, leave
from bullswarm_server.mcp.malformed import PARSE_ERROR, error

# Loading at once would compete with the handshake for the processor; a client that stays silent loses nothing by this.
_LOAD_AFTER_SEC = 0.25
_PARENT_LOOKS_SEC = 0.5
# After the end of the input the SDK has this long to wind up; the whole exit takes less than a second.
_GRACE_SEC = 0.5
_CHUNK = 1 << 16
# The largest task is 8 MiB and at worst six bytes of JSON for one of text.
MOST_LINE_BYTES = 64 << 20


def serve() -> NoReturn:
    """Be the MCP server of the process that started us, until its end of the input, a signal, or its death."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda caught, _: leave(128 + caught))
    wire_in, wire_out = _claim_standard_streams()
    wire = Wire(wire_out)
    with open(catalogue_file(), encoding="utf-8") as file:
        front = Front(json.load(file), wire.say)
    ended = threading.Event()
    threading.Thread(target=_read, args=(wire_in, front, wire, ended, os.getppid()), daemon=True).start()
    front.wanted.wait(_LOAD_AFTER_SEC)
    try:
        from bullswarm_server.mcp.transport import refuse_foreign_home, run

        why = refuse_foreign_home()
    except BaseException as problem:
        why = f"bullswarm could not load its MCP server: {type(problem).__name__}: {problem} · run `bullswarm doctor`"
    if why is not None:
        sys.stderr.write(why + "\n")
        front.fail(why)
        ended.wait()
        leave(1)
    try:
        run(front, wire, ended)
    except BaseException:
        import traceback

        traceback.print_exc()
        leave(1)
    leave(0)


def _read(wire_in: int, front: Front, wire: Wire, ended: threading.Event, parent: int) -> None:
    """Take lines until the input ends; watch the parent, whose death a pipe that others hold too would not show."""
    pieces: list[bytes] = []
    size = 0
    while True:
        while not select.select([wire_in], [], [], _PARENT_LOOKS_SEC)[0]:
            if os.getppid() != parent:
                leave(0)
        try:
            chunk = os.read(wire_in, _CHUNK)
        except BlockingIOError:
            continue
        except OSError:
            chunk = b""
        if not chunk:
            break
        *whole, rest = chunk.split(b"\n")
        for part in whole:
            if size + len(part) <= MOST_LINE_BYTES:
                line = b"".join((*pieces, part)).strip()
                if line:
                    front.take(line)
            else:
                wire.say(error(None, PARSE_ERROR, f"a message of more than {MOST_LINE_BYTES} bytes was passed over"))
            pieces, size = [], 0
        size += len(rest)
        if size <= MOST_LINE_BYTES:
            pieces.append(rest)
        else:
            pieces = []
    ended.set()
    time.sleep(_GRACE_SEC)
    leave(0)


def _claim_standard_streams() -> tuple[int, int]:
    """Keep the client's two streams to ourselves: whatever prints from here on prints to standard error."""
    wire_in, wire_out = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return wire_in, wire_out
