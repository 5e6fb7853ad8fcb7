"""`bullswarm provider`: which agent CLIs are known, a check of a connector, a start for a new one, and a real try."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bullswarm_core.errors import BullswarmError, ConnectorError, UnknownNameError, UsageError
from bullswarm_core.launch.plan import plan_launch
from bullswarm_core.pools import LANES, Rung
from bullswarm_core.pools.connector import Connector, PoolProfile
from bullswarm_core.pools.labels import Labels
from bullswarm_core.store.home import file_lock, make_folder, read_json, write_json
from bullswarm_providers.loaded import Loaded
from bullswarm_providers.registry import OPTIONAL, Registry, load, load_folder, load_optional
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.help_format import Parser
from bullswarm_server.displays.text import one_line

LIST_SCHEMA = "bullswarm.providers.v1"
VALIDATION_SCHEMA = "bullswarm.providerValidation.v1"
DEFAULT_PROBE_SEC = 300.0

Options = argparse.Namespace


def run(arguments: list[str], context: CommandContext) -> int:
    """List, check, start, try, or turn providers on and off."""
    options = _parser().parse_args(arguments)
    action: Callable[[Options, CommandContext], int] = options.action
    return action(options, context)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="bullswarm provider", description=__doc__)
    verbs = parser.add_subparsers(required=True, metavar="list|validate|scaffold|probe|enable|disable")

    def verb(name: str, action: Callable[[Options, CommandContext], int], text: str) -> argparse.ArgumentParser:
        made = verbs.add_parser(name, help=text, description=text)
        made.set_defaults(action=action)
        return made

    verb("list", _list, "every provider, its pools and its problems").add_argument("--json", action="store_true")
    check = verb("validate", _validate, "check a provider's folder or connector.json; exit 2 when it is wrong")
    check.add_argument("provider", help="a folder, a connector.json, or the name of a provider")
    check.add_argument("--json", action="store_true")
    start = verb("scaffold", _scaffold, "make a folder with a connector.json to begin from")
    start.add_argument("name")
    start.add_argument("--from", dest="source", default="claude-code", help="the provider to copy from")
    start.add_argument("--dir", help="where to make it (default: the home's providers folder)")
    probe = verb("probe", _probe, "run the CLI once with a tiny task; this uses its quota")
    probe.add_argument("pool", help="a pool, by id or label")
    probe.add_argument("--timeout", type=_seconds, default=DEFAULT_PROBE_SEC, metavar="SECONDS")
    probe.add_argument("--json", action="store_true")
    verb("enable", _enable, "load a provider (again)").add_argument("name")
    verb("disable", _disable, "don't load a provider: its pools disappear").add_argument("name")
    return parser


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 86400:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds between 0 and 86400")
    return value


def _list(options: Options, context: CommandContext) -> int:
    registry = load(context.home, context.environ)
    if options.json:
        context.print_json(
            {
                "schemaVersion": LIST_SCHEMA,
                "providers": [_entry(loaded, registry) for loaded in _all(registry)],
                "problems": [{"provider": p.name, "where": p.where, "message": p.message} for p in registry.problems],
            }
        )
        return 0
    labels = Labels.load(context.home)
    providers = _all(registry)
    width = max((len(loaded.connector.name) for loaded in providers), default=0)
    for loaded in providers:
        connector = loaded.connector
        context.print(f"{connector.name.ljust(width)}  {connector.origin:9}  {_state(connector, registry, labels)}")
    context.print(*(f"{p.name}: {one_line(p.message)} ({p.where})" for p in registry.problems))
    return 0


def _all(registry: Registry) -> list[Loaded]:
    """Every provider: those that are loaded, then the packaged ones that nobody turned on."""
    return [*registry.providers, *(load_optional(name) for name in registry.optional)]


def _is_on(name: str, registry: Registry) -> bool:
    return name not in registry.disabled and name not in registry.optional


def _state(connector: Connector, registry: Registry, labels: Labels) -> str:
    if connector.name in registry.disabled:
        return "disabled"
    if connector.name in registry.optional:
        return f"off · bullswarm provider enable {connector.name}"
    pools = _profiles_of(connector.name, registry)
    if found := [labels.shown(profile.id) for profile in pools if profile.binary is not None]:
        return ", ".join(found)
    skipped = any(problem.name == connector.name for problem in registry.problems)
    return "no pool: see below" if skipped and not pools else f"no {connector.binary} on PATH"


def _entry(loaded: Loaded, registry: Registry) -> dict[str, Any]:
    connector = loaded.connector
    return {
        "name": connector.name,
        "displayName": connector.display_name,
        "origin": connector.origin,
        "folder": connector.folder,
        "binary": connector.binary,
        "enabled": _is_on(connector.name, registry),
        "pools": [profile.id for profile in _profiles_of(connector.name, registry)],
    }


def _profiles_of(name: str, registry: Registry) -> list[PoolProfile]:
    return [profile for profile in registry.profiles if profile.connector.name == name]


def _validate(options: Options, context: CommandContext) -> int:
    folder = _folder_of(options.provider, context)
    try:
        loaded = load_folder(folder)
        _check_launches(loaded.connector, loaded)
        problems: list[str] = []
    except BullswarmError as error:
        problems = str(error).splitlines()
    except Exception as error:  # the provider's own code: whatever it raises is what is wrong with it
        problems = [f"{folder / 'provider.py'}: {type(error).__name__}: {error}"]
    if options.json:
        context.print_json(
            {"schemaVersion": VALIDATION_SCHEMA, "folder": str(folder), "ok": not problems, "problems": problems}
        )
    elif problems:
        context.note(*problems)
    else:
        out = _takes_no_work(folder, context)
        context.print(f"{folder}: good" + (f", and takes no work yet: {one_line(out)}" if out else ""))
    return UsageError.exit_code if problems else 0


def _takes_no_work(folder: Path, context: CommandContext) -> str | None:
    """Say why no pool of a person's own provider can take work now; None for one that is loaded from elsewhere."""
    if not folder.is_relative_to(context.home.providers_dir.absolute()):
        return None
    registry = load(context.home, context.environ)
    name = next((each.connector.name for each in registry.providers if each.connector.folder == str(folder)), None)
    if name is None:
        return next((problem.message for problem in registry.problems if problem.where == str(folder)), None)
    pools = _profiles_of(name, registry)
    reasons = [profile.why_not() for profile in pools]
    return registry.why_no_pool(name) if not pools else reasons[0] if all(reasons) else None


def _check_launches(connector: Connector, loaded: Loaded) -> None:
    """Plan a launch for each lane and tier, as a run would; whatever can't be planned is a fault of the connector."""
    profile = PoolProfile(
        connector.name, connector, f"/{connector.binary}", provider=loaded.module, config_dir="/nowhere"
    )
    for lane in LANES:
        for rung in connector.tiers.values() if lane in connector.lanes else ():
            plan_launch(
                profile, rung=Rung(rung.model, rung.reasoning), lane=lane, cwd="/nowhere", prompt_file="/nowhere/task.md",
                private_tmp="/nowhere/tmp", environ={"HOME": "/nowhere"},
            )  # fmt: skip


def _folder_of(text: str, context: CommandContext) -> Path:
    path = Path(text).expanduser().absolute()
    if path.is_dir():
        return path
    if path.is_file():
        return path.parent
    local = context.home.providers_dir / text
    if local.is_dir():
        return local
    for loaded in _all(load(context.home, context.environ)):
        if loaded.connector.name == text:
            return Path(loaded.connector.folder)
    raise UnknownNameError(f"{text!r} is no folder, file or provider", hint="bullswarm provider list")


def _scaffold(options: Options, context: CommandContext) -> int:
    registry = load(context.home, context.environ)
    source = next((p.connector for p in _all(registry) if p.connector.name == options.source), None)
    if source is None:
        raise UnknownNameError(f"--from {options.source!r}: there is no such provider", hint="bullswarm provider list")
    if any(loaded.connector.name == options.name for loaded in _all(registry)):
        raise UsageError(f"the name {options.name!r} is taken", hint="choose another one")
    folder = (Path(options.dir).expanduser().absolute() if options.dir else context.home.providers_dir) / options.name
    file = folder / "connector.json"
    if file.exists():
        raise UsageError(f"{file} is there already", hint=f"bullswarm provider validate {shlex.quote(str(folder))}")
    data = _beginning(json.loads((Path(source.folder) / "connector.json").read_bytes()), options.name)
    _refuse_bad(data, file)
    make_folder(folder)
    write_json(file, data)
    if source.stream_file.is_file():
        write_json(folder / "stream.json", source.stream_table())
    context.print(
        str(file),
        f"A start, copied from {source.name}. It takes no work until you say how {options.name} is run and signed in to:",
        f"edit binary, launch, configFolder and signIn, then: bullswarm provider validate {shlex.quote(options.name)}",
    )
    return 0


def _beginning(data: dict[str, Any], name: str) -> dict[str, Any]:
    """Make a connector of ``name`` from another's: nothing of it names that CLI's executable, folders or sign-in.

    Its sign-in is required and found nowhere, so that the flags of one CLI are never run by accident on another.
    """
    for key in ("credentialGroup", "subscription", "install", "lastResort", "signatures"):
        data.pop(key, None)
    data["launch"]["stateFolders"] = ["{configFolder}/"]
    return data | {
        "name": name,
        "displayName": name,
        "binary": name,
        "meter": {"type": "none"},
        "configFolder": {"default": f"~/.{name}"},
        "signIn": {"required": True, "files": [], "hint": "say in signIn of its connector.json where its sign-in is"},
    }


def _refuse_bad(data: dict[str, Any], file: Path) -> None:
    from bullswarm_core.pools.connector_schema import validate_connector

    try:
        validate_connector(data, file=str(file))
    except ConnectorError as error:
        raise UsageError(error.message, hint="nothing was written") from None


def _probe(options: Options, context: CommandContext) -> int:
    from bullswarm_server.cli.provider_probe import probe

    registry = load(context.home, context.environ)
    labels = Labels.load(context.home)
    pool_id = labels.resolve(options.pool, registry.pool_ids(), why_no_pool=registry.why_no_pool)
    return probe(registry.profile(pool_id), timeout_sec=options.timeout, as_json=options.json, context=context)


def _enable(options: Options, context: CommandContext) -> int:
    _switch(options.name, on=True, context=context)
    context.print(f"{options.name} is loaded from now on")
    return 0


def _disable(options: Options, context: CommandContext) -> int:
    _switch(options.name, on=False, context=context)
    context.print(
        f"{options.name} is not loaded any more · bullswarm provider enable {shlex.quote(options.name)} undoes it"
    )
    return 0


def _switch(name: str, *, on: bool, context: CommandContext) -> None:
    registry = load(context.home, context.environ)
    loaded = [each.connector for each in registry.providers]
    known = sorted([*(connector.name for connector in loaded), *registry.optional])
    if name not in known:
        raise UnknownNameError(f"there is no provider {name!r}", hint=f"providers: {', '.join(known)}")
    # One that is off by itself is turned on by its name in `enabled`; any other is turned off by its name in `disabled`.
    optional = name in OPTIONAL and all(each.name != name or each.origin == "packaged" for each in loaded)
    home = context.home.ensure()
    with file_lock(home.root / "providers.lock"):
        document = read_json(home.providers_file, default={})
        if not isinstance(document, dict):
            raise UsageError(f"{home.providers_file} holds no JSON object", hint="repair it or move it away")
        disabled, enabled = _names(document, "disabled") - {name}, _names(document, "enabled") - {name}
        if on and optional:
            enabled |= {name}
        elif not on and not optional:
            disabled |= {name}
        document |= {"disabled": sorted(disabled)} | ({"enabled": sorted(enabled)} if optional else {})
        write_json(home.providers_file, document)


def _names(document: dict[str, Any], key: str) -> set[str]:
    listed = document.get(key)
    return {name for name in listed if isinstance(name, str)} if isinstance(listed, list) else set()
