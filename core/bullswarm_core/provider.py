"""The contract of a ``provider.py``: what it may add to a launch, and the functions that bullswarm calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from bullswarm_core._dataclasses import dataclass, field
from bullswarm_core.pools.model import Lane

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from bullswarm_core.pools.connector import Account, Connector, PoolProfile, SignInState
    from bullswarm_core.pools.model import Sandbox
    from bullswarm_core.pools.model_catalog import Asking, ModelEntry
    from bullswarm_core.quota.observation import MeterContext, Observation
    from bullswarm_core.streams.facts import Denial, ExitFacts, StreamFacts


@dataclass(frozen=True, slots=True)
class LaunchContext:
    """What a provider may look at when it adds to a launch. ``isolated`` False: the person wants their settings in.

    ``reasoning`` is the level that the CLI is started with, None where it is left to the CLI. ``project_allowed``: the
    person allowed the settings of this project; ``project_settings`` are the files that they did not, ``project_root`` the
    person's own repository. ``instructions_file`` will hold the project's instructions, None where there are none or the
    CLI reads them itself.
    """

    profile: PoolProfile
    lane: Lane
    sandbox: Sandbox
    cwd: str
    private_tmp: str
    isolated: bool
    environ: Mapping[str, str]
    reasoning: str | None = None
    project_allowed: bool = False
    project_settings: tuple[str, ...] = ()
    project_root: str = ""
    instructions_file: str | None = None


@dataclass(frozen=True, slots=True)
class LaunchAddition:
    """What a provider adds to a launch: arguments before the model flag, environment, and notes for the person.

    ``instructions_in_task``: the CLI takes the project's instructions only as a part of its task.
    """

    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    instructions_in_task: bool = False


class Provider(Protocol):
    """What a ``provider.py`` may offer beside its connector; each function is optional.

    None but ``live_reading`` and ``models`` touch the network.
    """

    def accounts(self, connector: Connector, environ: Mapping[str, str]) -> tuple[Account, ...]:
        """Find the accounts of this CLI; the first one is the default account."""
        ...

    def sign_in(self, connector: Connector, account: Account, environ: Mapping[str, str]) -> SignInState:
        """Say whether the account is signed in."""
        ...

    def has_meter(self, connector: Connector, account: Account, environ: Mapping[str, str]) -> bool:
        """Tell whether the account has a plan whose use can be read."""
        ...

    def models(self, profile: PoolProfile, asking: Asking) -> tuple[ModelEntry, ...]:
        """Ask the CLI which models it offers; raises BullswarmError."""
        ...

    def launch_addition(self, context: LaunchContext) -> LaunchAddition:
        """Add what depends on the person's own configuration files."""
        ...

    def more_denials(self, profile: PoolProfile, stream: StreamFacts, ended: ExitFacts) -> tuple[Denial, ...]:
        """Give the refused tool calls that the CLI's own records tell and its stream doesn't; never raises."""
        ...

    def passive_readings(self, context: MeterContext) -> tuple[Observation, ...]:
        """Give what lies about on this machine of the account's usage."""
        ...

    def live_reading(self, context: MeterContext) -> Observation:
        """Ask the CLI or the vendor, once, what the account has used; raises MeterError."""
        ...

    def attempt_reading(
        self, profile: PoolProfile, *, stream_file: Path, stream: StreamFacts, ended: ExitFacts, now: datetime
    ) -> Observation | None:
        """Give what an attempt's own output or records told of the account's usage, at the latest at ``now``."""
        ...
