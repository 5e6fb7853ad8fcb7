"""What bullswarm knows about one agent CLI, as data, and what one account of it looks like on this machine.

A connector is the content of a ``connector.json``. It is built here without any validation library: packaged connectors
are checked by the tests, a person's own by :mod:`bullswarm_core.pools.connector_schema` whenever they change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bullswarm_core._dataclasses import dataclass, field
from bullswarm_core.pools.model import DEFAULT_COST_RANK, EFFORTS, LANES, Billing, Effort, Lane, Rung

if TYPE_CHECKING:
    from bullswarm_core.pools.launch_rules import Launch


SCHEMA_VERSION = "bullswarm.connector.v1"
# Reasoning levels from the least to the most. A level outside of this list is a name of the CLI's own.
REASONING_LEVELS: tuple[str, ...] = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
# "default" is a person's way to say "pass no reasoning flag at all".
NO_REASONING = "default"


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
    """How usage becomes known. ``reader``: it is read; ``declared``: only its windows are known; ``none``: never.

    ``endpoints`` are the addresses that the reader asks, by name; ``min_interval_sec`` is the least time between two live
    readings of one account.
    """

    type: Literal["reader", "declared", "none"] = "none"
    windows: tuple[str, ...] = ()
    endpoints: Mapping[str, str] = field(default_factory=dict)
    min_interval_sec: float = 0.0


@dataclass(frozen=True, slots=True)
class Signatures:
    """Phrases of the provider's error channel, in lower case, that mean one kind of refusal."""

    auth: tuple[str, ...] = ()
    quota: tuple[str, ...] = ()
    throttle: tuple[str, ...] = ()
    model_not_in_plan: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """What is known about the models whose name matches the pattern ``match`` (searched, not anchored).

    ``tier`` is the effort tier that their vendor makes them for; None says nothing.
    """

    match: str
    free: bool = False
    tier: Effort | None = None


@dataclass(frozen=True, slots=True)
class Connector:
    """One agent CLI. ``folder`` holds its connector.json and, where there is one, its stream table.

    ``install`` is the command that installs it, for people to read; empty when none is known.
    """

    name: str
    display_name: str
    binary: str
    install: str = ""
    lanes: frozenset[Lane] = frozenset(LANES)
    capabilities: frozenset[str] = frozenset()
    cost_rank: int = DEFAULT_COST_RANK
    credential_group: str | None = None
    last_resort: bool = False
    meter: Meter = Meter()
    quota_window: Literal["weekly", "monthly"] | None = None
    sign_in: SignIn = SignIn()
    config_folder: ConfigFolder = ConfigFolder()
    signatures: Signatures = Signatures()
    tiers: Mapping[Effort, Rung] = field(default_factory=dict)
    model_profiles: tuple[ModelProfile, ...] = ()
    launch_data: Mapping[str, Any] = field(default_factory=dict, repr=False)
    folder: str = ""
    origin: Literal["packaged", "local", "installed"] = "packaged"

    @property
    def launch(self) -> Launch:
        """How the CLI is started; built when asked for, since most commands start nothing."""
        from bullswarm_core.pools.launch_rules import launch_from_json

        return launch_from_json(self.launch_data)

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
class Account:
    """One account of a CLI as found on this machine; ``suffix`` None is the default account.

    ``environment`` is what picks it, ``withheld`` are variables that would pick another one. ``other_folders`` are signed
    in to the same account: whoever works in one of them works for this account.
    """

    suffix: str | None = None
    config_dir: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    withheld: tuple[str, ...] = ()
    account: str | None = None
    other_folders: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SignInState:
    """Whether an account is signed in, as far as files and variable names tell. ``signed_in`` None is unknown.

    ``withheld`` are the variables that a worker must not get: they would be billed apart, or pick another account.
    """

    signed_in: bool | None = None
    why: str = ""
    billing: Billing = "unknown"
    withheld: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PoolProfile:
    """One pool as it exists on this machine.

    ``binary`` is an absolute path, None when it was not found; ``unavailable`` says why the pool can't be used at all.
    ``environment`` picks the account, and the variables in ``withheld`` are kept from its workers. ``signed_in`` None
    means that it isn't known; only False takes a pool out. ``other_folders`` are signed in to the same account.
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
    other_folders: tuple[str, ...] = ()

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


def made_for(connector: Connector, model: str) -> Effort | None:
    """Return the effort tier that a model is made for, as the first profile that matches its name says."""
    import re

    found = (p.tier for p in connector.model_profiles if p.tier is not None and re.search(p.match, model))
    return next(found, None)


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
        install=data.get("install", ""),
        lanes=frozenset(data.get("lanes", LANES)),
        capabilities=frozenset(data.get("capabilities", ())),
        cost_rank=data.get("costRank", DEFAULT_COST_RANK),
        credential_group=data.get("credentialGroup"),
        last_resort=data.get("lastResort", False),
        meter=Meter(
            meter.get("type", "none"),
            tuple(meter.get("windows", ())),
            meter.get("endpoints", {}),
            meter.get("minIntervalSec", 0.0),
        ),
        quota_window=subscription.get("quotaWindow"),
        launch_data=data["launch"],
        sign_in=_sign_in(data.get("signIn") or {}),
        config_folder=ConfigFolder(config.get("variable"), config.get("default")),
        signatures=Signatures(
            *(tuple(p.lower() for p in signatures.get(k, ())) for k in ("auth", "quota", "throttle", "modelNotInPlan"))
        ),
        tiers=_tiers(data.get("tiers")),
        model_profiles=tuple(ModelProfile(p["match"], p.get("free", False), p.get("tier")) for p in profiles),
        folder=folder,
        origin=origin,
    )


def _tiers(data: Mapping[str, Any] | None) -> dict[Effort, Rung]:
    """Build the rungs; with none given every tier runs the CLI's own default."""
    if data is None:
        return {effort: Rung() for effort in EFFORTS}
    known: Iterator[Effort] = (effort for effort in EFFORTS if effort in data)
    return {e: Rung(data[e].get("model"), data[e].get("reasoning"), data[e].get("free", False)) for e in known}


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
