"""The labels of pools: set and taken away, for every surface by the same names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bullswarm_core.pools import labels
from bullswarm_server.ops.context import Context

if TYPE_CHECKING:
    from bullswarm_providers.registry import Registry

SCHEMA_VERSION = "bullswarm.labels.v1"


def find_pool(ctx: Context, name: str) -> str:
    """Return the id of the pool with this id or label; one that is gone and has a label counts too.

    Raises UnknownNameError.
    """
    shown, kept = labels.Labels.load(ctx.home), dict(labels.Labels.kept(ctx.home).items())
    # Finding the pools of this machine costs as much as all the rest: a pool that has a label needs no such search.
    if name in kept or name in dict(shown.items()).values():
        return shown.resolve(name, kept)
    registry = _registry(ctx)
    return shown.resolve(name, {*registry.pool_ids(), *kept}, why_no_pool=registry.why_no_pool)


def set_label(ctx: Context, name: str, label: str) -> str:
    """Give the pool of this id or label another label, and return its id. Raises as ``core.labels.set_label`` does."""
    registry = _registry(ctx)
    return labels.set_label(ctx.home, name, label, registry.pool_ids(), why_no_pool=registry.why_no_pool)


def clear_label(ctx: Context, name: str) -> tuple[str, str | None]:
    """Take the label of a pool away; return its id and the label that it had. Raises UnknownNameError."""
    registry = _registry(ctx)
    return labels.clear_label(ctx.home, name, registry.pool_ids(), why_no_pool=registry.why_no_pool)


def _registry(ctx: Context) -> Registry:
    from bullswarm_providers.registry import load

    return load(ctx.home, ctx.environ)
