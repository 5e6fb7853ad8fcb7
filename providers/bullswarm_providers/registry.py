"""Every pool of this machine: packaged providers, the person's own, and those that installed packages bring.

A provider that is broken is a problem of its own and stops nobody else: ``load`` never raises because of one.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bullswarm_core._dataclasses import dataclass, replace
from bullswarm_core.errors import ConnectorError, UnknownNameError
from bullswarm_core.pools.connector import Account, Meter, PoolProfile, SignInState, connector_from_json
from bullswarm_core.pools.labels import remember_pools
from bullswarm_core.store.home import Home, read_json
from bullswarm_providers.finding import Binary, find_binary
from bullswarm_providers.loaded import Loaded
from bullswarm_providers.sign_in import config_dir_of, file_sign_in

NO_PACKAGED = "BULLSWARM_NO_PACKAGED_PROVIDERS"
# In this order a name is taken: a shipped provider is never replaced by a folder of the same name.
PACKAGED = ("claude_code", "codex", "grok", "command_code", "opencode", "echo")
# Off until the person turns one on: whoever doesn't use them pays no time for them, not even to read their connectors.
OPTIONAL = ("gemini", "copilot", "qwen", "kimi", "glm")
# Its default account is always a pool, so that a person sees why it can't be used.
_ALWAYS_THERE = frozenset({"claude-code"})
_SUFFIX = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


@dataclass(frozen=True, slots=True)
class ProviderProblem:
    """One provider (or one account of it) that could not be used as it is, and why."""

    name: str
    where: str
    message: str


@dataclass(frozen=True, slots=True)
class Registry:
    """What exists on this machine. ``providers`` also holds those without a pool: no binary, or turned off.

    ``optional`` names the packaged providers that nobody turned on; they are not even loaded.
    """

    profiles: tuple[PoolProfile, ...] = ()
    problems: tuple[ProviderProblem, ...] = ()
    providers: tuple[Loaded, ...] = ()
    disabled: frozenset[str] = frozenset()
    optional: tuple[str, ...] = ()

    def profile(self, pool_id: str) -> PoolProfile:
        """Give the pool with this id; UnknownNameError names those that exist."""
        for profile in self.profiles:
            if profile.id == pool_id:
                return profile
        known = ", ".join(sorted(profile.id for profile in self.profiles)) or "none"
        raise UnknownNameError(f"there is no pool {pool_id!r}", hint=f"pools: {known}")

    def pool_ids(self) -> frozenset[str]:
        """Return the ids of every pool of this machine."""
        return frozenset(profile.id for profile in self.profiles)

    def why_no_pool(self, name: str) -> str | None:
        """Say why a provider that is known has no pool; None for a name of none, or of one that has pools.

        ``name`` is that of a provider or a pool id: what stands behind a colon names an account.
        """
        provider = name.partition(":")[0]
        loaded = next((each for each in self.providers if each.connector.name == provider), None)
        if loaded is None and provider in self.optional:
            return f"{provider} is turned off: bullswarm provider enable {provider}"
        if loaded is None or any(profile.connector.name == provider for profile in self.profiles):
            return None
        if provider in self.disabled:
            return f"{provider} is turned off: bullswarm provider enable {provider}"
        if problem := next((each.message for each in self.problems if each.name == provider), None):
            return problem
        return f"{loaded.connector.binary} was not found on PATH"


def load(home: Home, environ: Mapping[str, str], *, write_cache: bool = True) -> Registry:
    """Load every provider and find its accounts; ``write_cache`` False (a dry run) writes nothing anywhere.

    What a person decided is applied by routing, not here.
    """
    found: list[Loaded] = []
    problems: list[ProviderProblem] = []
    taken: set[str] = set()
    switches = _switches(home, problems)
    enabled = [name for name in OPTIONAL if name in switches.enabled]
    for loaded in _all_providers(home, environ, enabled, problems, write_cache):
        name = loaded.connector.name
        if name in taken:
            problems.append(
                ProviderProblem(name, loaded.connector.folder, f"the name {name} is taken: this one is skipped")
            )
            continue
        taken.add(name)
        found.append(loaded)
    disabled = switches.disabled
    profiles: list[PoolProfile] = []
    places = _Places()
    for loaded in found:
        if loaded.connector.name in disabled:
            continue
        try:
            profiles += _without_second_pools(_pools(loaded, environ, problems), profiles, places, problems)
        except Exception as error:  # the provider's own code: whatever it raises is reported on it
            problems.append(_problem(loaded.connector.name, loaded.connector.folder, error))
    optional = () if environ.get(NO_PACKAGED) else tuple(name for name in OPTIONAL if name not in taken)
    if write_cache:
        remember_pools(home, (profile.id for profile in profiles))
    return Registry(tuple(profiles), tuple(problems), tuple(found), disabled, optional)


def load_optional(name: str) -> Loaded:
    """Load a packaged provider that is off, to show it or to copy from it; it gets no pools by that."""
    return _packaged(Path(__file__).parent / name, name)


def load_folder(folder: Path, *, home: Home | None = None, write_cache: bool = False) -> Loaded:
    """Load one provider that isn't packaged; ConnectorError when its connector breaks the schema."""
    from bullswarm_providers.local import load_local

    return load_local(folder, home=home, write_cache=write_cache)


def _all_providers(
    home: Home, environ: Mapping[str, str], enabled: Sequence[str], problems: list[ProviderProblem], write_cache: bool
) -> Iterator[Loaded]:
    if not environ.get(NO_PACKAGED):
        for folder_name in (*PACKAGED, *enabled):
            folder = Path(__file__).parent / folder_name
            try:
                yield _packaged(folder, folder_name)
            except Exception as error:
                problems.append(_problem(folder_name.replace("_", "-"), str(folder), error))
    for folder in _local_folders(home):
        try:
            yield load_folder(folder, home=home, write_cache=write_cache)
        except Exception as error:
            problems.append(_problem(folder.name, str(folder), error))
    yield from _installed(home, problems, write_cache)


def _packaged(folder: Path, folder_name: str) -> Loaded:
    connector = connector_from_json(json.loads((folder / "connector.json").read_bytes()), folder=str(folder))
    if not (folder / "provider.py").is_file():
        return Loaded(connector)
    import importlib

    return Loaded(connector, importlib.import_module(f"bullswarm_providers.{folder_name}.provider"))


def _local_folders(home: Home) -> list[Path]:
    try:
        entries = sorted(home.providers_dir.iterdir())
    except OSError:
        return []
    return [entry for entry in entries if not entry.name.startswith(".") and entry.is_dir()]


def _installed(home: Home, problems: list[ProviderProblem], write_cache: bool) -> Iterator[Loaded]:
    from bullswarm_providers.installed import entry_points, load_entry_point

    for name, value in entry_points(home, write_cache=write_cache):
        try:
            yield load_entry_point(value, home=home, write_cache=write_cache)
        except Exception as error:
            problems.append(_problem(name, f"entry point {value}", error))


@dataclass(frozen=True, slots=True)
class _Switches:
    """Which providers the person turned off, and which of those turned on that are off by themselves."""

    disabled: frozenset[str] = frozenset()
    enabled: frozenset[str] = frozenset()


def _switches(home: Home, problems: list[ProviderProblem]) -> _Switches:
    """Read what the person turned off and on; a damaged file is reported, and then it says neither."""
    try:
        document = read_json(home.providers_file, default={})
        listed = (document.get(key, []) for key in ("disabled", "enabled"))
        return _Switches(*(frozenset(name for name in names if isinstance(name, str)) for names in listed))
    except Exception as error:
        problems.append(_problem("providers.json", str(home.providers_file), error))
        return _Switches()


def _pools(loaded: Loaded, environ: Mapping[str, str], problems: list[ProviderProblem]) -> list[PoolProfile]:
    connector = loaded.connector
    binary = find_binary(connector.binary, environ)
    if binary.path is None and connector.name not in _ALWAYS_THERE:
        return []
    profiles: list[PoolProfile] = []
    for account in _accounts(loaded, environ):
        suffix = account.suffix
        if suffix is not None and not _SUFFIX.fullmatch(suffix):
            problems.append(
                ProviderProblem(connector.name, connector.folder, f"the account name {suffix!r} is no pool name")
            )
        elif suffix is not None and binary.path is None:
            continue
        else:
            profiles.append(_profile(loaded, account, binary, environ))
    return profiles


class _Places(dict[str, str]):
    """Where paths really lead, each asked once: every two pools are compared, and to follow a path takes 20 to 50 us."""

    def __missing__(self, path: str) -> str:
        self[path] = real = os.path.realpath(path)
        return real


def _without_second_pools(
    found: Sequence[PoolProfile], earlier: Sequence[PoolProfile], places: _Places, problems: list[ProviderProblem]
) -> list[PoolProfile]:
    """Leave out the pools of a provider whose account and quota another provider's pool already stands for."""
    kept = []
    for profile in found:
        first = next((other for other in earlier if _one_account(profile, other, places)), None)
        if first is None:
            kept.append(profile)
            continue
        place = f"account in {profile.config_dir}" if profile.config_dir else "default account"
        message = (
            f"{profile.id} is skipped: it would run {profile.binary} with the {place}, which is the pool {first.id}"
            f" · give it a binary or a configFolder of its own, or bullswarm provider disable {first.connector.name}"
        )
        problems.append(ProviderProblem(profile.connector.name, profile.connector.folder, message))
    return kept


def _one_account(one: PoolProfile, other: PoolProfile, places: _Places) -> bool:
    """Tell whether two pools are the same CLI with the same account.

    One that names no folder runs in the CLI's default one. Where neither does, the executable may be an interpreter that
    runs two different programs, and they stay two.
    """
    if one.binary is None or other.binary is None or places[one.binary] != places[other.binary]:
        return False
    if one.account is not None and one.account == other.account:
        return True
    if one.config_dir and other.config_dir:
        return places[one.config_dir] == places[other.config_dir]
    naming = one if one.config_dir else other
    return naming.config_dir is not None and naming.id == naming.connector.name


def _accounts(loaded: Loaded, environ: Mapping[str, str]) -> tuple[Account, ...]:
    find = getattr(loaded.module, "accounts", None)
    if find is None:
        return (Account(config_dir=config_dir_of(loaded.connector, environ)),)
    accounts: tuple[Account, ...] = tuple(find(loaded.connector, environ))
    return accounts


def _profile(loaded: Loaded, account: Account, binary: Binary, environ: Mapping[str, str]) -> PoolProfile:
    connector = loaded.connector
    has_meter = getattr(loaded.module, "has_meter", None)
    if has_meter is not None and not has_meter(connector, account, environ):
        connector = replace(connector, meter=Meter())
    look = getattr(loaded.module, "sign_in", None) or file_sign_in
    state = look(connector, account, environ)
    if connector.sign_in.file_billing == "none":
        state = SignInState(True, "needs no sign-in", "none")
    unavailable = binary.problem
    if binary.path is None:
        unavailable = f"{connector.binary} was not found on PATH · install {connector.display_name}"
    return PoolProfile(
        id=connector.name if account.suffix is None else f"{connector.name}:{account.suffix}",
        connector=connector,
        binary=binary.path,
        environment=dict(account.environment),
        config_dir=account.config_dir,
        account=account.account,
        signed_in=state.signed_in,
        signed_in_why=state.why,
        billing=state.billing,
        withheld=tuple(dict.fromkeys((*account.withheld, *state.withheld))),
        unavailable=unavailable,
        provider=loaded.module,
        other_folders=account.other_folders,
    )


def _problem(name: str, where: str, error: Exception) -> ProviderProblem:
    message = str(error) if isinstance(error, ConnectorError) else f"{type(error).__name__}: {error}"
    return ProviderProblem(name, where, message)
