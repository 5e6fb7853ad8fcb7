"""The arguments of each tool, one strict model apiece, and the schema and the errors that follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bullswarm_core.errors import UsageError
from bullswarm_core.pools import Effort, Lane

Model = TypeVar("Model", bound="Arguments")

Names = Annotated[list[str], Field(max_length=50)]
Seconds = Annotated[float, Field(ge=0, le=30 * 24 * 3600)]
_LONGEST_KEY = 200
_SHOWN_VALUE = 60
_SHOWN_PROBLEMS = 6


class Arguments(BaseModel):
    """Base of all: nothing unknown, nothing converted (a number as a string is a mistake that the agent can correct)."""

    model_config = ConfigDict(extra="forbid", strict=True)
    tool: ClassVar[str]


class TaskArguments(Arguments):
    """What `route` and `run` share: the task and what is demanded of the pool."""

    lane: Lane | None = Field(None, description="analyze reads only; build writes; chore is mechanical")
    prompt: str | None = Field(None, description="the whole task, self-contained")
    cwd: str | None = Field(None, description="absolute folder to work in")
    effort: Effort | None = None
    model: str | None = Field(None, description="only pools that run exactly this model")
    pool: str | None = Field(None, description="this pool (id or label) and no other; best left out")
    use_pools: Names = []
    avoid_pools: Names = []
    use_providers: Names = []
    avoid_providers: Names = []
    independent_of: Names = Field([], description="runs whose providers are avoided, for an unbiased review")
    capabilities: Names = Field([], description="only pools that declare these, such as strong-analysis")


class RouteArguments(TaskArguments):
    """A pick that is only shown: the task's words may be left out."""

    tool = "route"
    lane: Lane = Field(description="analyze reads only; build writes; chore is mechanical")


class RunArguments(TaskArguments):
    """A task to start, or, with ``run_id``, a run to wait for."""

    tool = "run"
    task_file: str | None = Field(None, description="absolute file that holds the task, instead of prompt")
    reasoning: str | None = None
    timeout_s: Annotated[float, Field(gt=0, le=30 * 24 * 3600)] | None = Field(
        None, description="stop the worker after this long"
    )
    shared_tree: bool = Field(False, description="allow a second writer in one working tree")
    answer_schema: dict[str, Any] | None = Field(
        None, description="JSON Schema: the answer is JSON that matches it, and comes as answer"
    )
    idempotency_key: Annotated[str, Field(min_length=1, max_length=_LONGEST_KEY)] | None = Field(
        None, description="the same key within a day returns the same run instead of starting another"
    )
    run_id: str | None = Field(None, description="wait on for this run (id, short id or last); then no task arguments")
    wait_s: Seconds | None = Field(None, description="how long to wait for the verdict; 0 returns at once")
    cursor: Annotated[int, Field(ge=0)] | None = Field(
        None, description="with run_id: where to read the output on from"
    )


class PoolsArguments(Arguments):
    """Which pools to show."""

    tool = "pools"
    pool: str | None = Field(None, description="only this pool, by id or label, with every detail")
    force: bool = Field(False, description="read the meters anew now (up to 20 s)")


class WorkflowGoalArguments(Arguments):
    """A program of dependent tasks."""

    tool = "workflow_goal"
    goal: str = Field(min_length=1, description="what the program is for, in one line")
    program: dict[str, Any] | str = Field(description="program.v3 object, or the absolute path of its JSON file")
    cwd: str = Field(description="absolute folder to work in")
    concurrency: Annotated[int, Field(ge=1, le=32)] | None = None
    retry_attempts: Annotated[int, Field(ge=0, le=3)] | None = Field(None, description="automatic retries per step")
    isolation: Literal["shared", "worktree"] | None = None
    shared_tree: bool = Field(False, description="allow other runs to write in this tree")
    again: bool = Field(False, description="start although the same goal is under way in cwd")
    wait_s: Seconds | None = None
    idempotency_key: Annotated[str, Field(min_length=1, max_length=_LONGEST_KEY)] | None = None


class LabelArguments(Arguments):
    """A pool's display label to show, set or clear; without a pool, all labels."""

    tool = "label"
    pool: str | None = None
    label: str | None = Field(None, description="new label: no spaces, used by no other pool")
    clear: bool = False


class RunsArguments(Arguments):
    """One operation on what was started."""

    tool = "runs"
    op: Literal[
        "list",
        "show",
        "result",
        "wait",
        "stop",
        "rerun",
        "restart",
        "accept",
        "continue",
        "pause",
        "resume",
        "steer",
        "add",
    ]
    run_id: str | None = Field(None, description="id, short id or last; for every op but list")
    node: str | None = Field(None, description="step, gate or loop of a workflow")
    avoid: Names = Field([], description="rerun: pools to keep it from")
    pool: str | None = Field(None, description="restart: pool to use")
    reason: str | None = Field(None, description="accept: why it is good enough")
    rounds: int | None = Field(None, description="continue a loop: more rounds; without, it is left unmet")
    at_once: bool = Field(False, description="pause: stop workers too")
    message: str | None = Field(None, description="steer: for whoever watches")
    steps: dict[str, Any] | None = Field(None, description="add: {steps, gates?, loops?, blocks?}")
    cursor: Annotated[int, Field(ge=0)] = Field(0, description="result: the byte to read on from")
    wait_s: Seconds | None = Field(None, description="wait: how long")
    limit: Annotated[int, Field(ge=1, le=100)] = Field(10, description="list: at most so many")


def read(model: type[Model], given: Mapping[str, Any] | None) -> Model:
    """Check a call's arguments. Raises UsageError that names each wrong one, its value and what is allowed."""
    # Strict function calling sends every argument that the model knows, null for those it leaves out.
    meant = {
        name: value for name, value in (given or {}).items() if value is not None or name not in model.model_fields
    }
    try:
        return model.model_validate(meant)
    except ValidationError as error:
        problems = list(dict.fromkeys(_problem(model, detail) for detail in error.errors(include_url=False)))
        shown = "; ".join(problems[:_SHOWN_PROBLEMS])
        more = f"; and {len(problems) - _SHOWN_PROBLEMS} more" if len(problems) > _SHOWN_PROBLEMS else ""
        raise UsageError(
            f"{model.tool}: {shown}{more}", hint=f"it takes {', '.join(model.model_fields)}; nothing was started"
        ) from error


def _problem(model: type[Arguments], detail: Any) -> str:
    # An alternative of a union adds its own type's name to the place; the argument and an index in a list are enough.
    place = [str(part) for part in detail["loc"] if isinstance(part, int) or part in model.model_fields]
    name = ".".join(place) or ".".join(str(part) for part in detail["loc"])
    kind = detail["type"]
    if kind == "extra_forbidden":
        return f'unknown argument "{name[:_SHOWN_VALUE]}"'
    if kind == "missing":
        return f"{name} is missing"
    what = str(detail["msg"])
    return f"{name} is {_shown(detail['input'])}: {what[0].lower()}{what[1:]}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_VALUE else text[: _SHOWN_VALUE - 1] + "…"


def schema(model: type[Arguments]) -> dict[str, Any]:
    """Return the model's JSON schema in few bytes: no titles, no null alternatives, no empty defaults.

    Every caller pays for these bytes in its context.
    """
    document = model.model_json_schema()
    document.pop("description", None)
    compact = _compact(document)
    assert isinstance(compact, dict)
    return compact


def _compact(node: Any) -> Any:
    if isinstance(node, list):
        return [_compact(item) for item in node]
    if not isinstance(node, dict):
        return node
    alternatives = [item for item in node.get("anyOf", ()) if item != {"type": "null"}]
    if len(alternatives) == 1:
        node = {**{key: value for key, value in node.items() if key != "anyOf"}, **alternatives[0]}
    kept: dict[str, Any] = {}
    for key, value in node.items():
        if key == "properties":
            kept[key] = {name: _compact(item) for name, item in value.items()}
        elif not _is_filler(key, value):
            kept[key] = _compact(value)
    return kept


def _is_filler(key: str, value: Any) -> bool:
    if key == "default":
        return value in (None, False, [], 0)
    return key in ("title", "maxItems") or (key == "additionalProperties" and value is True)
