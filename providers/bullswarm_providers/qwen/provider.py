"""Qwen Code: its settings name the way it signs in, and may hold the key themselves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bullswarm_core.pools.connector import Account, Connector, SignInState
from bullswarm_providers.sign_in import file_sign_in, first_set, read_object
from bullswarm_providers.vendor_asking import member


def sign_in(connector: Connector, account: Account, environ: Mapping[str, str]) -> SignInState:
    """Follow the way that the settings choose; a key of theirs, or in ~/.qwen/.env, is billed by whoever issued it."""
    chosen = member(read_object(Path(account.config_dir or "") / "settings.json"), "security", "auth", "selectedType")
    if not isinstance(chosen, str) or chosen == "qwen-oauth":
        return file_sign_in(connector, account, environ)
    name = first_set(connector.sign_in.api_keys, environ)
    return SignInState(True if name else None, f"{name} is set" if name else f"signs in by {chosen[:40]}", "api-key")
