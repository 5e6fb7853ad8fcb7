"""Codex: its sign-in depends on the model provider in config.toml; MCP servers are turned off one by one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bullswarm_core.connector import Account, Connector, LaunchAddition, LaunchContext, SignInState
from bullswarm_providers.sign_in import first_set, read_object, read_toml

# A provider with these ids is built in: Codex refuses to start when its settings are overridden.
_BUILT_IN = frozenset({"openai", "oss", "ollama", "lmstudio", "amazon-bedrock", "ollama-chat"})
# Codex's defaults make up to 30 requests of one failing call and wait 5 minutes for each silent one (measured).
_REQUEST_RETRIES = 2
_STREAM_RETRIES = 2
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


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
    """Bound the retries of the person's own model provider, and leave each of their MCP servers out of the worker."""
    config = _config(context.profile.config_dir)
    if config is None:
        return LaunchAddition(notes=("config.toml of Codex can't be read: its MCP servers are not turned off",))
    arguments: list[str] = []
    provider = config.get("model_provider")
    if isinstance(provider, str) and provider not in _BUILT_IN and provider in (config.get("model_providers") or {}):
        prefix = f"model_providers.{_key(provider)}"
        arguments += ["-c", f"{prefix}.request_max_retries={_REQUEST_RETRIES}"]
        arguments += ["-c", f"{prefix}.stream_max_retries={_STREAM_RETRIES}"]
    if context.isolated:
        # `mcp_servers={}` is merged and removes nothing, and naming an unknown server ends the run (measured).
        servers = config.get("mcp_servers")
        for name in sorted(servers) if isinstance(servers, dict) else ():
            arguments += ["-c", f"mcp_servers.{_key(name)}.enabled=false"]
    return LaunchAddition(arguments=tuple(arguments))


def _config(folder: str | None) -> dict[str, Any] | None:
    return read_toml(Path(folder) / "config.toml") if folder else {}


def _key(name: str) -> str:
    """Write a TOML key; one that is not bare is quoted."""
    return name if _BARE_KEY.fullmatch(name) else '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
