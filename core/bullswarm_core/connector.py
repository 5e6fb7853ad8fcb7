"""What bullswarm knows about one agent CLI, as data, and what one account of it looks like on this machine.

A connector is the content of a ``connector.json``. It is built here without any validation library: packaged connectors
are checked by the tests, a person's own by :mod:`bullswarm_core.connector_schema` whenever they change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from bullswarm_core.pools import DEFAULT_COST_RANK, EFFORTS, LANES, Effort, Lane, Rung

SCHEMA_VERSION = "bullswarm.connector.v1"

Sandbox = Literal["workspace", "network", "full"]
SANDBOXES: tuple[Sandbox, ...] = ("workspace", "network", "full")
ConfinementKind = Literal["cli", "bullswarm", "none"]
Billing = Literal["subscription", "api-key", "unknown", "none"]
PromptWay = Literal["stdin", "file"]
# Reasoning levels from the least to the most. A level outside of this list is a name of the CLI's own.
REASONING_LEVELS: tuple[str, ...] = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
# "default" is a person's way to say "pass no reasoning flag at all".
NO_REASONING = "default"


@dataclass(frozen=True, slots=True)
class Mode:
    """How one lane is started under one sandbox choice, and who holds the worker inside its bounds.

    ``unconfined`` stands in for it where bullswarm was to confine the worker and this machine can't do it.
    """

    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    confinement: ConfinementKind = "none"
    unconfined: Mode | None = None


@dataclass(frozen=True, slots=True)
class Clocks:
    """Default supervision clocks of a worker in seconds; None leaves the program's own default."""

    startup_sec: float | None = None
    silence_sec: float | None = None
    terminal_grace_sec: float | None = None


@dataclass(frozen=True, slots=True)
class Reasoning:
    """How a reasoning level is passed. ``levels`` () accepts none, None accepts any name (the CLI's own variants)."""

    arguments: tuple[str, ...] = ()
    levels: tuple[str, ...] | None = ()
    skip_models: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Launch:
    """How the CLI is started. Text may hold ``{cwd} {promptFile} {privateTmp} {reasoning} {folder} {python} {lane}``.

    ``isolation`` are the arguments that keep the person's hooks, plug-ins and MCP servers out of a worker;
    ``state_folders`` are the CLI's own files and folders (with a slash at the end), which it must be able to write when
    bullswarm confines it; ``terminal`` says by which line of its stream the keeper knows the CLI's last word.
    """

    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    isolation: tuple[str, ...] = ()
    isolation_environment: Mapping[str, str] = field(default_factory=dict)
    model_flag: str | None = None
    reasoning: Reasoning = Reasoning()
    prompt: PromptWay = "stdin"
    prompt_arguments: tuple[str, ...] = ()
    modes: Mapping[Lane, Mapping[Sandbox, Mode]] = field(default_factory=dict)
    state_folders: tuple[str, ...] = ()
    terminal: tuple[Mapping[str, Any], ...] = ()
    clocks: Clocks = Clocks()

    def mode(self, lane: Lane, sandbox: Sandbox) -> Mode:
        """Give the way to start ``lane``: a chore like a build, and a missing choice like workspace."""
        choices = self.modes.get(lane) or (self.modes.get("build") if lane == "chore" else None) or {}
        return choices.get(sandbox) or choices.get("workspace") or Mode()


@dataclass(frozen=True, slots=True)
class SignIn:
    """Where a CLI's sign-in can be seen without starting it, and which variables carry keys that are billed apart.

    ``api_keys`` are taken out of a child that is signed in by subscription (a stray key would be billed); ``tokens``
    carry a subscription sign-in; with any of ``elsewhere`` set files don't tell the sign-in. ``required`` False:
    the CLI also works without one. ``file_billing`` is how work is billed when one of ``files`` is there.
    """

    files: tuple[str, ...] = ()
    api_keys: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    required: bool = True
    file_billing: Billing = "subscription"
    hint: str = ""


@dataclass(frozen=True, slots=True)
class ConfigFolder:
    """The folder in which the CLI keeps its settings: ``variable`` moves it away from ``default``."""

    variable: str | None = None
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Meter:
    """How usage becomes known. ``reader``: it is read; ``declared``: only its windows are known; ``none``: never."""

    type: Literal["reader", "declared", "none"] = "none"
    windows: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Signatures:
    """Phrases of the provider's error channel, in lower case, that mean one kind of refusal."""

    auth: tuple[str, ...] = ()
    quota: tuple[str, ...] = ()
    throttle: tuple[str, ...] = ()
    model_not_in_plan: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """What is known about the models whose name matches the pattern ``match`` (searched, not anchored)."""

    match: str
    free: bool = False


@dataclass(frozen=True, slots=True)
class Connector:
    """One agent CLI. ``folder`` holds its connector.json and, where there is one, its stream table."""

    name: str
    display_name: str
    binary: str
    lanes: frozenset[Lane] = frozenset(LANES)
    capabilities: frozenset[str] = frozenset()
    cost_rank: int = DEFAULT_COST_RANK
    credential_group: str | None = None
    last_resort: bool = False
    meter: Meter = Meter()
    quota_window: Literal["weekly", "monthly"] | None = None
    launch: Launch = Launch()
    sign_in: SignIn = SignIn()
    config_folder: ConfigFolder = ConfigFolder()
    signatures: Signatures = Signatures()
    tiers: Mapping[Effort, Rung] = field(default_factory=dict)
    model_profiles: tuple[ModelProfile, ...] = ()
    folder: str = ""
    origin: Literal["packaged", "local", "installed"] = "packaged"

    @property
    def stream_file(self) -> Path:
        """Where the stream table of this CLI is kept; the file need not exist."""
        return Path(self.folder) / "stream.json"

    def stream_table(self) -> dict[str, Any]:
        """Read the stream table; an empty one means that stdout is plain text and is the answer."""
        if not self.folder:
            return {}
        import json

        try:
            table: dict[str, Any] = json.loads(self.stream_file.read_bytes())
        except FileNotFoundError:
            return {}
        return table


@dataclass(frozen=True, slots=True)
class LaunchContext:
    """What a provider may look at when it adds to a launch. ``isolated`` False: the person wants their settings in."""

    profile: PoolProfile
    lane: Lane
    sandbox: Sandbox
    cwd: str
    private_tmp: str
    isolated: bool
    environ: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class LaunchAddition:
    """What a provider adds to a launch: arguments before the model flag, environment, and notes for the person."""

    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Account:
    """One account of a CLI as found on this machine; ``suffix`` None is the default account.

    ``environment`` is what picks it, ``withheld`` are variables that would pick another one.
    """

    suffix: str | None = None
    config_dir: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    withheld: tuple[str, ...] = ()
    account: str | None = None


@dataclass(frozen=True, slots=True)
class SignInState:
    """Whether an account is signed in, as far as files and variable names tell. ``signed_in`` None is unknown.

    ``withheld`` are the variables that a worker must not get: they would be billed apart, or pick another account.
    """

    signed_in: bool | None = None
    why: str = ""
    billing: Billing = "unknown"
    withheld: tuple[str, ...] = ()


class Provider(Protocol):
    """What a ``provider.py`` may offer beside its connector; each function is optional and none touches the network."""

    def accounts(self, connector: Connector, environ: Mapping[str, str]) -> tuple[Account, ...]:
        """Find the accounts of this CLI; the first one is the default account."""
        ...

    def sign_in(self, connector: Connector, account: Account, environ: Mapping[str, str]) -> SignInState:
        """Say whether the account is signed in."""
        ...

    def launch_addition(self, context: LaunchContext) -> LaunchAddition:
        """Add what depends on the person's own configuration files."""
        ...


@dataclass(frozen=True, slots=True)
class PoolProfile:
    """One pool as it exists on this machine.

    ``binary`` is an absolute path, None when it was not found; ``unavailable`` says why the pool can't be used at all.
    ``environment`` picks the account, and the variables in ``withheld`` are kept from its workers. ``signed_in`` None
    means that it isn't known; only False takes a pool out (D16).
    """

    id: str
    connector: Connector
    binary: str | None
    environment: Mapping[str, str] = field(default_factory=dict)
    config_dir: str | None = None
    account: str | None = None
    signed_in: bool | None = None
    signed_in_why: str = ""
    billing: Billing = "unknown"
    withheld: tuple[str, ...] = ()
    unavailable: str | None = None
    provider: Any = None

    @property
    def provider_name(self) -> str:
        """The name of the provider: the pool id up to the colon."""
        return self.connector.name

    def why_not(self) -> str | None:
        """Say why this pool can't take work, or None."""
        if self.unavailable:
            return self.unavailable
        return self.signed_in_why if self.signed_in is False else None


def is_free(connector: Connector, model: str | None) -> bool:
    """Tell whether ``model`` costs no quota; a model that isn't named is never taken to be free."""
    import re

    return model is not None and any(p.free and re.search(p.match, model) for p in connector.model_profiles)


def connector_from_json(data: Mapping[str, Any], *, folder: str = "", origin: Any = "packaged") -> Connector:
    """Build a connector from the content of a valid connector.json; KeyError or TypeError when it is not valid."""
    subscription = data.get("subscription") or {}
    meter = data.get("meter") or {}
    signatures = data.get("signatures") or {}
    config = data.get("configFolder") or {}
    profiles = data.get("modelProfiles") or ()
    return Connector(
        name=data["name"],
        display_name=data.get("displayName") or data["name"],
        binary=data["binary"],
        lanes=frozenset(data.get("lanes", LANES)),
        capabilities=frozenset(data.get("capabilities", ())),
        cost_rank=data.get("costRank", DEFAULT_COST_RANK),
        credential_group=data.get("credentialGroup"),
        last_resort=data.get("lastResort", False),
        meter=Meter(meter.get("type", "none"), tuple(meter.get("windows", ()))),
        quota_window=subscription.get("quotaWindow"),
        launch=_launch(data["launch"]),
        sign_in=_sign_in(data.get("signIn") or {}),
        config_folder=ConfigFolder(config.get("variable"), config.get("default")),
        signatures=Signatures(
            *(tuple(p.lower() for p in signatures.get(k, ())) for k in ("auth", "quota", "throttle", "modelNotInPlan"))
        ),
        tiers=_tiers(data.get("tiers")),
        model_profiles=tuple(ModelProfile(p["match"], p.get("free", False)) for p in profiles),
        folder=folder,
        origin=origin,
    )


def _tiers(data: Mapping[str, Any] | None) -> dict[Effort, Rung]:
    """Build the rungs; with none given every tier runs the CLI's own default (D16)."""
    if data is None:
        return {effort: Rung() for effort in EFFORTS}
    known: Iterator[Effort] = (effort for effort in EFFORTS if effort in data)
    return {e: Rung(data[e].get("model"), data[e].get("reasoning"), data[e].get("free", False)) for e in known}


def _launch(data: Mapping[str, Any]) -> Launch:
    reasoning = data.get("reasoning") or {}
    isolation = data.get("isolation") or {}
    clocks = data.get("clocks") or {}
    prompt = data.get("prompt") or {}
    levels = reasoning.get("levels", ())
    return Launch(
        arguments=tuple(data.get("arguments", ())),
        environment=dict(data.get("environment", {})),
        isolation=tuple(isolation.get("arguments", ())),
        isolation_environment=dict(isolation.get("environment", {})),
        model_flag=data.get("modelFlag"),
        reasoning=Reasoning(
            tuple(reasoning.get("arguments", ())),
            None if levels is None else tuple(levels),
            tuple(reasoning.get("skipModels", ())),
        ),
        prompt=prompt.get("way", "stdin"),
        prompt_arguments=tuple(prompt.get("arguments", ())),
        modes={lane: {name: _mode(mode) for name, mode in choices.items()} for lane, choices in data["lanes"].items()},
        state_folders=tuple(data.get("stateFolders", ())),
        terminal=tuple(data.get("terminal", ())),
        clocks=Clocks(clocks.get("startupSec"), clocks.get("silenceSec"), clocks.get("terminalGraceSec")),
    )


def _mode(data: Mapping[str, Any]) -> Mode:
    unconfined = data.get("unconfined")
    return Mode(
        tuple(data.get("arguments", ())),
        dict(data.get("environment", {})),
        data.get("confinement", "none"),
        None if unconfined is None else _mode(unconfined),
    )


def _sign_in(data: Mapping[str, Any]) -> SignIn:
    return SignIn(
        tuple(data.get("files", ())),
        tuple(data.get("apiKeys", ())),
        tuple(data.get("tokens", ())),
        tuple(data.get("elsewhere", ())),
        data.get("required", True),
        data.get("fileBilling", "subscription"),
        data.get("hint", ""),
    )
