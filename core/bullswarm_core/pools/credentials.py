"""Which pools are several names for one credential (``credentialGroup`` of the connectors)."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable

from bullswarm_core.pools.connector import PoolProfile


def names_of_one_credential(profiles: Iterable[PoolProfile], pool_ids: Collection[str]) -> list[str]:
    """Return the pools that share a sign-in with one of those with these ids, which are among them if in a group."""
    found = tuple(profiles)
    refused = [each for each in found if each.id in pool_ids]
    return [each.id for each in found if any(_share_sign_in(each, one) for one in refused)]


def _share_sign_in(one: PoolProfile, other: PoolProfile) -> bool:
    """Tell whether two pools are of one credential group and not known to be two accounts.

    Accounts are told apart by their ids, else, within one provider, by the folders that hold their sign-ins.
    """
    group = one.connector.credential_group
    if group is None or group != other.connector.credential_group:
        return False
    if one.account and other.account:
        return one.account == other.account
    if one.provider_name == other.provider_name and one.config_dir and other.config_dir:
        return os.path.realpath(one.config_dir) == os.path.realpath(other.config_dir)
    return True
