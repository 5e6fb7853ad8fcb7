"""Codex: its sign-in depends on the model provider in config.toml; MCP servers are turned off one by one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bullswarm_core.pools.connector import Account, Connector, PoolProfile, SignInState
from bullswarm_providers.sign_in import first_set, read_object, read_toml

if TYPE_CHECKING:
    from datetime import datetime

    from bullswarm_core.pools.model_catalog import Asking, ModelEntry
    from bullswarm_core.provider import LaunchAddition, LaunchContext
    from bullswarm_core.quota.observation import MeterContext, Observation
    from bullswarm_core.streams.facts import Denial, ExitFacts, StreamFacts

# A provider with these ids is built in: Codex refuses to start when its settings are overridden.
_BUILT_IN = frozenset({"openai", "oss", "ollama", "lmstudio", "amazon-bedrock", "ollama-chat"})
# Codex's defaults make up to 30 requests of one failing call and wait 5 minutes for each silent one (measured).
_REQUEST_RETRIES = 2
_STREAM_RETRIES = 2


def sign_in(connector: Connector, account: Account, environ: Mapping[str, str]) -> SignInState:
    """Look at auth.json; a model provider of the person's own, or a keyring, can hold a sign-in that no file shows."""
    config = _config(account.config_dir)
    if config is None:
        return SignInState(None, "config.toml can't be read")
    provider = config.get("model_provider")
    if isinstance(provider, str) and provider not in _BUILT_IN:
        own = (config.get("model_providers") or {}).get(provider)
        billed = isinstance(own, dict) and bool(own.get("env_key") or own.get("experimental_bearer_token"))
        return SignInState(None, f"config.toml names the model provider {provider}", "api-key" if billed else "unknown")
    names = connector.sign_in
    auth = read_object(Path(account.config_dir or "") / "auth.json")
    tokens = auth.get("tokens")
    if isinstance(tokens, dict) and (tokens.get("access_token") or tokens.get("refresh_token")):
        return SignInState(True, "auth.json holds a ChatGPT sign-in", "subscription", names.api_keys)
    if auth.get("OPENAI_API_KEY"):
        return SignInState(True, "auth.json holds an API key", "api-key")
    if name := first_set(names.api_keys, environ):
        return SignInState(None, f"{name} is set", "api-key")
    if auth or "cli_auth_credentials_store" in config:
        return SignInState(None, "the sign-in is kept where no file shows it")
    return SignInState(False, f"not signed in · {names.hint}")


def launch_addition(context: LaunchContext) -> LaunchAddition:
    """Bound the retries of the person's own model provider, and leave each of their MCP servers and skills out."""
    from bullswarm_core.provider import LaunchAddition

    config = _config(context.profile.config_dir)
    if config is None:
        return LaunchAddition(notes=("config.toml of Codex can't be read: its MCP servers are not turned off",))
    arguments: list[str] = []
    provider = config.get("model_provider")
    if isinstance(provider, str) and provider not in _BUILT_IN and provider in (config.get("model_providers") or {}):
        bounds = f"{{request_max_retries={_REQUEST_RETRIES},stream_max_retries={_STREAM_RETRIES}}}"
        arguments += ["-c", f"model_providers={{{_key(provider)}={bounds}}}"]
    told_apart = bool(context.project_settings) and "projects" in config
    if told_apart or context.project_allowed:
        arguments += _trust(context, "trusted" if context.project_allowed else "untrusted")
    if context.isolated:
        arguments += _without_servers(
            config, *([] if told_apart else _project_configs(config, context))
        ) + _without_skills(context)
    return LaunchAddition(arguments=tuple(arguments), instructions_in_task=told_apart)


def more_denials(profile: PoolProfile, stream: StreamFacts, ended: ExitFacts) -> tuple[Denial, ...]:
    """Add the refusals that only the thread's rollout tells."""
    from bullswarm_providers.codex.rollout import denials_in_rollout

    if profile.config_dir is None:
        return ()
    return denials_in_rollout(profile.config_dir, stream.session_id, known=stream.denials, since=ended.started_at)


def passive_readings(context: MeterContext) -> tuple[Observation, ...]:
    """Return what the rollouts on this machine tell of the account's usage."""
    from bullswarm_providers.codex.rollout_limits import rollout_readings

    folder = context.profile.config_dir
    return rollout_readings(folder, now=context.now) if folder and context.profile.billing != "api-key" else ()


def live_reading(context: MeterContext) -> Observation:
    """Ask Codex's app-server, else the vendor's usage endpoint. Raises MeterError."""
    from bullswarm_providers.codex import meter

    return meter.live_reading(context)


def attempt_reading(
    profile: PoolProfile, *, stream_file: Path, stream: StreamFacts, ended: ExitFacts, now: datetime
) -> Observation | None:
    """Return what the rollout of an attempt told of the account's windows."""
    from bullswarm_providers.codex.rollout import rollout_of
    from bullswarm_providers.codex.rollout_limits import readings_of
    from bullswarm_providers.codex.usage import ACCOUNT_LIMIT

    path = rollout_of(profile.config_dir, stream.session_id) if profile.config_dir else None
    if path is None or profile.billing == "api-key":
        return None
    return readings_of(path, now=now).get(ACCOUNT_LIMIT)


def models(profile: PoolProfile, asking: Asking) -> tuple[ModelEntry, ...]:
    """Ask Codex's app-server which models it offers. Raises BullswarmError."""
    from bullswarm_providers.codex.models import list_models

    return list_models(profile, asking)


def _trust(context: LaunchContext, level: str) -> list[str]:
    """Say, for this start, whether the project is trusted, whatever the person said in Codex's own screen.

    That would hold for whatever the project's settings say by now. Codex asks for the folder, the repository around it and
    the repository that a linked work tree belongs to; of a project without trust it doesn't read AGENTS.md either.
    """
    from bullswarm_core.launch.project_settings import repository_root

    folders = dict.fromkeys([context.cwd, repository_root(context.cwd), context.project_root])
    entries = ",".join(f"{_key(folder)}={{trust_level={_key(level)}}}" for folder in folders)
    return ["-c", f"projects={{{entries}}}"]


def _project_configs(config: dict[str, Any], context: LaunchContext) -> list[dict[str, Any]]:
    """Read the settings of a project that the person trusts; Codex passes over those of any other."""
    cwd = context.cwd
    projects = config.get("projects")
    entries = projects.items() if isinstance(projects, dict) else ()
    trusted = {path for path, entry in entries if isinstance(entry, dict) and entry.get("trust_level") == "trusted"}
    if context.project_allowed:
        trusted.add(context.project_root)
    folders = [Path(cwd), *Path(cwd).parents]
    depth = next((number for number, folder in enumerate(folders) if str(folder) in trusted), None)
    if depth is None:
        return []
    found = (read_toml(folder / ".codex" / "config.toml") for folder in folders[: depth + 1])
    return [settings for settings in found if settings]


def _without_servers(*configs: dict[str, Any]) -> list[str]:
    """Turn each configured MCP server off.

    An inline table is merged into the configuration, while an empty one removes nothing, a dotted path can't name a
    server with a dot or a space, and naming an unknown server ends the run (all measured).
    """
    tables = [servers for config in configs if isinstance(servers := config.get("mcp_servers"), dict)]
    names = sorted({name for servers in tables for name in servers})
    entries = ",".join(f"{_key(name)}={{enabled=false}}" for name in names)
    return ["-c", f"mcp_servers={{{entries}}}"] if names else []


def _without_skills(context: LaunchContext) -> list[str]:
    """Turn each skill of the person off; those of the project stay."""
    home = context.environ.get("HOME", "")
    folders = [Path(context.profile.config_dir or "") / "skills", Path(home) / ".agents" / "skills"]
    files = sorted(str(file) for folder in folders if folder.is_absolute() for file in folder.glob("*/SKILL.md"))
    entries = ",".join(f"{{path={_key(file)},enabled=false}}" for file in files)
    return ["-c", f"skills.config=[{entries}]"] if files else []


def _config(folder: str | None) -> dict[str, Any] | None:
    return read_toml(Path(folder) / "config.toml") if folder else {}


def _key(text: str) -> str:
    """Write ``text`` as a TOML string; JSON's escapes are a part of TOML's."""
    return json.dumps(text, ensure_ascii=False)
