"""Plans of other vendors that are used by Claude Code: a folder of settings of its own names their address and key.

The vendors document this as `env` in settings.json. The address is handed over on the command line once more, which
outranks a project's settings: no project can have the key sent anywhere else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from bullswarm_core.errors import MeterError
from bullswarm_core.pools.connector import Account, Connector, SignInState
from bullswarm_providers.sign_in import config_dir_of, first_set, read_object
from bullswarm_providers.vendor_asking import no_sign_in, usable_token

if TYPE_CHECKING:
    from bullswarm_core.provider import LaunchAddition, LaunchContext
    from bullswarm_core.quota.observation import MeterContext

ADDRESS = "ANTHROPIC_BASE_URL"
KEYS = ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY")
FOLDER = "CLAUDE_CONFIG_DIR"
# Whatever picks another account or another address than the folder's settings do.
WITHHELD = (ADDRESS, *KEYS, "CLAUDE_CODE_OAUTH_TOKEN")


def accounts(connector: Connector, environ: Mapping[str, str]) -> tuple[Account, ...]:
    """Give the one account: Claude Code in a folder of its own."""
    folder = config_dir_of(connector, environ)
    return (Account(None, folder, {FOLDER: folder} if folder else {}, WITHHELD),)


def sign_in(connector: Connector, account: Account, environ: Mapping[str, str]) -> SignInState:
    """Say whether the folder's settings name an address and a key; what the environment holds is not looked at."""
    own = own_environment(account.config_dir)
    name = first_set(KEYS, own)
    if own.get(ADDRESS) and name:
        return SignInState(True, f"{name} is set in settings.json", "subscription", WITHHELD)
    file = Path(account.config_dir or "") / "settings.json"
    return SignInState(False, f"not signed in · {connector.sign_in.hint} {file}", withheld=WITHHELD)


def launch_addition(context: LaunchContext) -> LaunchAddition:
    """Do what Claude Code's own provider does, and hand the address over where no project's settings can change it."""
    from bullswarm_core.provider import LaunchAddition
    from bullswarm_providers.claude_code.provider import launch_addition as of_claude_code

    addition = of_claude_code(context)
    words = list(addition.arguments)
    settings: dict[str, Any] = {}
    if "--settings" in words:
        place = words.index("--settings")
        settings = json.loads(words[place + 1])
        del words[place : place + 2]
    address = own_environment(context.profile.config_dir).get(ADDRESS)
    if address:
        settings["env"] = {**settings.get("env", {}), ADDRESS: address}
    words += ["--settings", json.dumps(settings, separators=(",", ":"))] if settings else []
    return LaunchAddition(tuple(words), addition.environment, addition.notes)


def own_environment(folder: str | None) -> dict[str, str]:
    """Read the variables that the folder's settings set for Claude Code."""
    block = read_object(Path(folder) / "settings.json").get("env") if folder else None
    return {name: value for name, value in block.items() if isinstance(value, str)} if isinstance(block, dict) else {}


def vendor_key(context: MeterContext, *, name: str, hosts: tuple[str, ...]) -> tuple[str, str]:
    """Return the key and the host that it is for; MeterError where the key isn't for one of the vendor's ``hosts``."""
    own = own_environment(context.profile.config_dir)
    key = next((found for variable in KEYS if (found := usable_token(own.get(variable)))), None)
    if key is None:
        raise no_sign_in(name, context.profile.connector.sign_in.hint)
    try:
        host = urlsplit(own.get(ADDRESS, "")).hostname or ""
    except ValueError:
        host = ""
    if not any(host == known or host.endswith(f".{known}") for known in hosts):
        raise MeterError(
            f"{name}'s key is for another address than {hosts[0]}: it is not sent there", kind="unsupported"
        )
    return key, host
