"""The document that `bullswarm strategy configure` takes: the one that `strategy show --json` prints, whole or in part.

What a document names is decided as it says, ``null`` takes a decision back, and what it leaves out stays. Run as a program
this module writes the JSON Schema that ships beside it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from bullswarm_core.errors import UsageError
from bullswarm_server.displays.strategy import SCHEMA_VERSION

SCHEMA_FILE = Path(__file__).with_name("strategy.schema.json")
_LONGEST_SHOWN = 80
_MOST_PROBLEMS = 5

Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^\S(.*\S)?$")]
Tier = Literal["high", "medium", "low"]
Levels = dict[Tier, Name | None]


class _Part(BaseModel):
    # Strict: "off" for a switch or "3" for a number is a slip of the pen, not a decision.
    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel, populate_by_name=False)


class PoolPart(_Part):
    """What a pool and its workers may do."""

    enabled: bool | None = None
    sandbox: Literal["workspace", "network", "full"] | None = None
    worker_inherits_config: bool | None = None
    allow_billing: bool | None = Field(None, description="let work be billed beside the plan: an API key, or overage")


class RungPart(_Part):
    """What a pool runs on a tier; ``model`` null is the CLI's own default."""

    model: Name | None
    reasoning: Name | None = None
    free: bool | None = None


class AssignmentPart(_Part):
    """The pool (and model) that is preferred for a tier."""

    pool: Name
    model: Name | None = None


class SubscriptionPart(_Part):
    """What is declared about a plan."""

    quota_window: Literal["weekly", "monthly", "unknown"] | None = None
    resets_at: Name | None = Field(None, description="any one reset, ISO-8601, or unknown")
    plan: Name | None = None
    reserve_pct: Annotated[float, Field(ge=0, le=100)] | None = Field(
        None, description="the share of the pacing window that is kept for the person"
    )


class ReasoningPart(_Part):
    """Reasoning levels by tier: for every pool, for one pool, for one model of a pool."""

    tiers: Levels | None = None
    pools: dict[Name, Levels | None] | None = None
    models: dict[Name, dict[Name, Levels | None] | None] | None = None


class ConfigPart(_Part):
    """Limits, and what routing follows."""

    depth_limit: Annotated[int, Field(ge=0)] | None = None
    total_limit: Annotated[int, Field(ge=0)] | None = None
    inflight_penalty_pct: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    routing_policy: Name | None = None


class StrategyDocument(_Part):
    """Decisions of `bullswarm strategy`. Named ones are set, null takes one back, what is left out stays."""

    schema_version: Literal["bullswarm.strategy.v1"]
    configured: bool | None = Field(None, description="told by `strategy show`; read past here")
    pools: dict[Name, PoolPart | None] | None = None
    rungs: dict[Name, dict[Tier, RungPart | None] | None] | None = None
    assignments: dict[Tier, AssignmentPart | None] | None = None
    subscriptions: dict[Name, SubscriptionPart | None] | None = None
    reasoning: ReasoningPart | None = None
    recommended_reasoning: dict[Name, Levels | None] | None = None
    excluded_models: list[Name] | None = Field(None, description="the whole list")
    disabled_models: dict[Name, list[Name] | None] | None = Field(None, description="the whole list of a pool")
    models_not_in_plan: list[Any] | None = Field(None, description="told by `strategy show`; read past here")
    config: ConfigPart | None = None


def read_document(content: Any, *, source: str) -> dict[str, Any]:
    """Return the document as it was given, checked; raise UsageError with every place that is wrong, and what it holds."""
    if isinstance(content, dict) and "schemaVersion" not in content:
        raise UsageError(f"{source} has no schemaVersion", hint=f'begin it with "schemaVersion": "{SCHEMA_VERSION}"')
    try:
        StrategyDocument.model_validate(content)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False)
        told = [f"{_place(each['loc'])}: {each['msg']}, not {_shown(each['input'])}" for each in found[:_MOST_PROBLEMS]]
        more = f" … and {len(found) - _MOST_PROBLEMS} more" if len(found) > _MOST_PROBLEMS else ""
        raise UsageError(
            f"{source}: {'; '.join(told)}{more}", hint="nothing was changed; bullswarm strategy configure --schema"
        ) from None
    document: dict[str, Any] = content
    return document


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of the document."""
    schema = StrategyDocument.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _place(location: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in location) or "the document"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"


if __name__ == "__main__":
    import json

    SCHEMA_FILE.write_text(json.dumps(json_schema(), indent=2) + "\n", encoding="utf-8")
