"""The schema of connector.json, with errors that name the file, the field, its value and what is allowed.

Loaded only to check a connector: the packaged ones in the tests, a person's own when it changed.
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from bullswarm_core.answers.schema import KEYWORDS
from bullswarm_core.errors import ConnectorError

_PLACEHOLDERS = ("cwd", "promptFile", "privateTmp", "reasoning", "folder", "python", "lane", "configFolder")
_ANSWER_PLACEHOLDERS = ("answerSchema", "answerSchemaFile")
_LONGEST_SHOWN = 80


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"a regular expression ({error})") from error
    return text


def _template(text: str, *, allowed: tuple[str, ...] = _PLACEHOLDERS) -> str:
    for name in re.findall(r"\{([A-Za-z]+)\}", text):
        if name not in allowed:
            raise ValueError(f"text whose placeholders are {', '.join('{' + p + '}' for p in allowed)}")
    return text


def _instructions_template(text: str) -> str:
    return _template(text, allowed=(*_PLACEHOLDERS, "instructionsFile"))


def _answer_template(text: str) -> str:
    return _template(text, allowed=(*_PLACEHOLDERS, *_ANSWER_PLACEHOLDERS))


def _project_path(text: str) -> str:
    parts = text.removesuffix("/").split("/")
    if "" in parts or ".." in parts or "~" in parts or any("*" in part for part in parts[:-1]):
        raise ValueError("a path below the repository, with a star in its last part at most")
    return text


def _keyword(text: str) -> str:
    if text not in KEYWORDS:
        raise ValueError(f"a keyword of JSON Schema: {', '.join(KEYWORDS)}")
    return text


Pattern = Annotated[str, AfterValidator(_pattern)]
Template = Annotated[str, AfterValidator(_template)]
AnswerTemplate = Annotated[str, AfterValidator(_answer_template)]
InstructionsTemplate = Annotated[str, AfterValidator(_instructions_template)]
ProjectPath = Annotated[str, AfterValidator(_project_path)]
Keyword = Annotated[str, AfterValidator(_keyword)]
# A token goes there: the wire is encrypted, or never leaves this machine.
Address = Annotated[str, Field(pattern=r"^(https://|http://(127\.0\.0\.1|localhost)[:/])[^\s@]+$")]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,40}$")]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Phrase = Annotated[str, Field(min_length=4)]
LaneName = Literal["analyze", "build", "chore"]
TierName = Literal["high", "medium", "low"]
Seconds = Annotated[float, Field(gt=0, le=86400)]
Words = tuple[Template, ...]
Environment = dict[Variable, Template]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, alias_generator=to_camel)


class MeterPart(_Part):
    type: Literal["reader", "declared", "none"]
    windows: tuple[Literal["5h", "daily", "weekly", "monthly"], ...] = ()
    endpoints: dict[Annotated[str, Field(pattern=r"^[a-z][A-Za-z]*$")], Address] = {}
    min_interval_sec: Annotated[float, Field(ge=0, le=86400)] = 0.0


class SubscriptionPart(_Part):
    quota_window: Literal["weekly", "monthly"] | None = None


class ConfigFolderPart(_Part):
    variable: Variable | None = None
    default: str | None = None


class IsolationPart(_Part):
    arguments: Words = ()
    environment: Environment = {}


class ReasoningPart(_Part):
    arguments: Annotated[Words, Field(min_length=1)]
    levels: tuple[str, ...] | None
    skip_models: tuple[Pattern, ...] = ()


class PromptPart(_Part):
    way: Literal["stdin", "file"]
    arguments: Words = ()
    attaches_files: bool = False


class UnconfinedPart(_Part):
    arguments: Words = ()
    environment: Environment = {}


class ModePart(_Part):
    arguments: Words = ()
    environment: Environment = {}
    confinement: Literal["cli", "bullswarm", "none"]
    unconfined: UnconfinedPart | None = None


class ClocksPart(_Part):
    startup_sec: Seconds | None = None
    silence_sec: Seconds | None = None
    terminal_grace_sec: Seconds | None = None


class TerminalPart(_Part):
    path: Annotated[str, Field(min_length=1)]
    equals: Annotated[tuple[str | int | bool, ...], Field(min_length=1)]


class StructuredOutputPart(_Part):
    arguments: Annotated[tuple[AnswerTemplate, ...], Field(min_length=1)]
    answer: Literal["event", "reply"] = "event"
    keywords: tuple[Keyword, ...] | None = None
    root_without: tuple[Keyword, ...] = ()
    closed_objects: bool = False
    largest_bytes: Annotated[int, Field(gt=0)] | None = None
    gave_up: tuple[str, ...] = ()


class ProjectPart(_Part):
    files: tuple[ProjectPath, ...] = ()
    refused: tuple[ProjectPath, ...] = ()
    refused_if: tuple[ProjectPath, ...] = ()
    refused_text: Pattern = ""
    arguments: Words = ()
    environment: Environment = {}
    instructions: tuple[tuple[ProjectPath, ...], ...] = ()
    above_repository: bool = False
    instruction_arguments: tuple[InstructionsTemplate, ...] = ()
    read_by_itself: tuple[ProjectPath, ...] = ()
    imports_anything: bool = False


class LaunchPart(_Part):
    arguments: Words = ()
    environment: Environment = {}
    isolation: IsolationPart = IsolationPart()
    model_flag: str | None = None
    reasoning: ReasoningPart | None = None
    prompt: PromptPart
    lanes: Annotated[dict[LaneName, dict[Literal["workspace", "network", "full"], ModePart]], Field(min_length=1)]
    state_folders: tuple[str, ...] = ()
    terminal: tuple[TerminalPart, ...] = ()
    first_start: str | None = None
    guarded: tuple[str, ...] = ()
    volatile: tuple[str, ...] = ()
    written_once: tuple[str, ...] = ()
    dot_env: tuple[Variable, ...] = ()
    dot_env_pattern: Pattern = ""
    structured_output: StructuredOutputPart | None = None
    project: ProjectPart = ProjectPart()
    clocks: ClocksPart = ClocksPart()


class SignInPart(_Part):
    files: tuple[str, ...] = ()
    api_keys: tuple[Variable, ...] = ()
    tokens: tuple[Variable, ...] = ()
    elsewhere: tuple[Variable, ...] = ()
    required: bool = True
    file_billing: Literal["subscription", "api-key", "unknown", "none"] = "subscription"
    hint: str = ""


class SignaturesPart(_Part):
    auth: tuple[Phrase, ...] = ()
    quota: tuple[Phrase, ...] = ()
    throttle: tuple[Phrase, ...] = ()
    model_not_in_plan: tuple[Phrase, ...] = ()


class TierPart(_Part):
    model: str | None = None
    reasoning: str | None = None
    free: bool = False


class ModelProfilePart(_Part):
    match: Pattern
    free: bool = False
    tier: TierName | None = None


class ConnectorPart(_Part):
    """The whole of a connector.json."""

    schema_version: Literal["bullswarm.connector.v1"]
    name: Name
    display_name: str | None = None
    binary: Annotated[str, Field(min_length=1)]
    install: str = ""
    lanes: Annotated[tuple[LaneName, ...], Field(min_length=1)] = ("analyze", "build", "chore")
    capabilities: tuple[Name, ...] = ()
    cost_rank: Annotated[int, Field(ge=0, le=100)] = 5
    credential_group: Name | None = None
    last_resort: bool = False
    meter: MeterPart | None = None
    subscription: SubscriptionPart | None = None
    config_folder: ConfigFolderPart | None = None
    launch: LaunchPart
    sign_in: SignInPart | None = None
    signatures: SignaturesPart | None = None
    tiers: dict[TierName, TierPart] | None = None
    model_profiles: tuple[ModelProfilePart, ...] = ()


def validate_connector(data: Any, *, file: str) -> dict[str, Any]:
    """Return ``data`` unchanged when it is a valid connector.

    Raises ConnectorError with one line per fault: ``<file>: <field>: <value> is not allowed: <what is>``.
    """
    try:
        # As JSON text, so that a list is taken for a list and a number in quotes is not taken for a number.
        checked = ConnectorPart.model_validate_json(json.dumps(data))
    except (TypeError, RecursionError) as error:
        raise ConnectorError(f"{file}: {error}: use what JSON can hold") from None
    except ValidationError as error:
        raise ConnectorError("\n".join(_lines(file, error.errors(include_url=False)))) from None
    _check_together(checked, file)
    result: dict[str, Any] = data
    return result


def json_schema() -> dict[str, Any]:
    """Give the JSON schema of connector.json, for editors."""
    return ConnectorPart.model_json_schema(by_alias=True)


def _check_together(checked: ConnectorPart, file: str) -> None:
    """Refuse what is valid field by field and makes no sense together."""
    launch = checked.launch
    lanes_started = set(launch.lanes) | ({"chore"} if "build" in launch.lanes else set())
    for lane in checked.lanes:
        if lane not in lanes_started:
            raise ConnectorError(f"{file}: launch.lanes: {lane!r} is missing: lanes says that this CLI takes it")
    for lane, choices in launch.lanes.items():
        if "workspace" not in choices:
            raise ConnectorError(f"{file}: launch.lanes.{lane}: {sorted(choices)} lacks workspace, the default sandbox")
    answer = launch.structured_output
    if answer is not None and not any("{answerSchema" in word for word in answer.arguments):
        raise ConnectorError(
            f"{file}: launch.structuredOutput.arguments: {list(answer.arguments)} must name"
            " {answerSchema} or {answerSchemaFile}"
        )
    prompt = launch.prompt
    if prompt.way == "file" and not any("{promptFile}" in word for word in (*launch.arguments, *prompt.arguments)):
        raise ConnectorError(f"{file}: launch.prompt.arguments: {list(prompt.arguments)} must name {{promptFile}} once")


def _lines(file: str, faults: list[ErrorDetails]) -> list[str]:
    """Write one line per fault; a list that is too short only because an entry of it is wrong is not a second fault."""
    places = [fault["loc"] for fault in faults]

    def repeats(fault: ErrorDetails) -> bool:
        place = fault["loc"]
        return fault["type"] == "too_short" and any(len(p) > len(place) and p[: len(place)] == place for p in places)

    return list(dict.fromkeys(_line(file, fault) for fault in faults if not repeats(fault)))


def _line(file: str, details: ErrorDetails) -> str:
    field = ".".join(str(part) for part in details["loc"] if part != "[key]") or "(the whole file)"
    kind, context = details["type"], details.get("ctx", {})
    if kind == "missing":
        return f"{file}: {field}: is missing: it is required"
    value = _shown(details["input"])
    if kind == "extra_forbidden":
        return f"{file}: {field}: {value} is not allowed: there is no field of this name"
    if kind == "literal_error":
        return f"{file}: {field}: {value} is not allowed: use {context.get('expected')}"
    if kind == "value_error":
        return f"{file}: {field}: {value} is not allowed: use {context.get('error')}"
    message = details["msg"]
    return f"{file}: {field}: {value} is not allowed: {message[:1].lower()}{message[1:]}"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…"
