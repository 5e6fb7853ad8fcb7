"""`bullswarm dashboard`: what needs you, what runs, the pools; on a whole terminal or in a browser, until you leave it."""

from __future__ import annotations

import argparse
import os
import sys

from bullswarm_core.errors import UsageError
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.help_format import Parser
from bullswarm_server.displays.terminal import can_redraw

_WATCH_SEC = 1.0
_SERVED = ":WebDriver"
# What textual-serve tells the program that it starts; the kernels that are started from there have nothing to do with it.
_OF_THE_PAGE = ("TEXTUAL", "TERM_PROGRAM", "COLUMNS", "ROWS")


def run(arguments: list[str], context: CommandContext) -> int:
    """Open the dashboard on the terminal, or serve it. Raises UsageError where there is none to draw on."""
    options = _parser().parse_args(arguments)
    if options.web:
        return _serve(options.port or 0, context)
    if options.port is not None:
        raise UsageError("--port is of the web form", hint="bullswarm dashboard --web --port N")
    # textual-serve names the driver to the program that it starts for a page; that one has no terminal.
    served = context.environ.get("TEXTUAL_DRIVER", "").endswith(_SERVED)
    if not served and not (can_redraw(context.out, context.environ) and sys.stdin.isatty()):
        raise UsageError(
            "the dashboard needs a terminal to draw on", hint="bullswarm pools and bullswarm runs list print lines"
        )
    from bullswarm_server.dashboard.app import Dashboard
    from bullswarm_server.dashboard.source import Source

    environ = {
        name: value for name, value in context.environ.items() if not served or not name.startswith(_OF_THE_PAGE)
    }
    from bullswarm_server.cli.main import dispatch

    dashboard = Dashboard(Source(context.home, environ), call=dispatch, served=served)
    if served:
        _end_with(os.getppid())
    dashboard.run()
    return dashboard.return_code or 0


def _end_with(server: int) -> None:
    """End this process when the one that shows it is gone, whatever state the drawing is in then."""
    import threading
    import time

    def watch() -> None:
        while os.getppid() == server:
            time.sleep(_WATCH_SEC)
        # The pipes to the server are broken: there is nothing to be put in order, and waiting for them may take for ever.
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _serve(port: int, context: CommandContext) -> int:
    try:
        from bullswarm_server.dashboard.web import serve
    except ImportError as error:
        raise UsageError(f"the web form needs the package {error.name}", hint="pip install 'bullswarm[web]'") from error

    def tell(url: str) -> None:
        context.print(url)
        context.out.flush()
        context.note("whoever has this address can do what you can · Ctrl-C ends it; what runs goes on")

    try:
        serve(port=port, tell=tell)
    except OSError as error:
        raise UsageError(
            f"cannot listen on port {port}: {error.strerror or error}", hint="give another, or leave --port out"
        ) from error
    return 0


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f'"{text}" is not a port, 1 to 65535')
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="bullswarm dashboard",
        description="What needs you, what runs, and the pools, on a whole terminal; ? lists the keys. After `bullswarm setup`"
        " bare `bullswarm` opens it.",
    )
    parser.add_argument(
        "--web", action="store_true", help="serve it to a browser of this machine, and print the address"
    )
    parser.add_argument("--port", type=_port, metavar="N", help="with --web: the port (default: a free one)")
    return parser
