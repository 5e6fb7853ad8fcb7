"""How a worker is started: the exact command, its environment, who confines it, and how that is shown to a person.

A plan starts nothing and writes nothing; the same plan serves a dry run and the real start.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bullswarm_core._dataclasses import dataclass, field, replace
from bullswarm_core.errors import UsageError
from bullswarm_core.launch.dot_env import emptied, names_like, names_set_in
from bullswarm_core.launch.project import ProjectGrant, look_at_project
from bullswarm_core.launch.state_folders import StateFolders
from bullswarm_core.pools.connector import NO_REASONING, REASONING_LEVELS, PoolProfile
from bullswarm_core.pools.launch_rules import Clocks, ConfinementKind, Mode, Reasoning, StructuredOutput
from bullswarm_core.pools.model import SANDBOXES, Billing, Lane, Rung, Sandbox, is_model_name
from bullswarm_core.pools.reasoning import clamped
from bullswarm_core.process.environment import CALLER_VARIABLE, DEPTH_VARIABLE, child_environment, expand_path
from bullswarm_core.process.secrets import is_secret
from bullswarm_core.provider import LaunchAddition, LaunchContext

if TYPE_CHECKING:
    from bullswarm_core.launch.structured_output import AnswerSchema

_HIDDEN = "…"
# A value shorter than this may stand in a command by chance; replacing it would hide plain words, not a secret.
_SHORTEST_SECRET = 8
# Without it no semaphore can be made (shm_open), so that Python's multiprocessing, and many a test run with it, fails.
SHARED_MEMORY = "/dev/shm"
_NOT_SHOWN = frozenset({"PWD", "TMPDIR", "TMP", "TEMP", DEPTH_VARIABLE, CALLER_VARIABLE})


@dataclass(frozen=True, slots=True)
class Confinement:
    """What the keeper must hold the worker to: it may write under ``writable`` (absolute paths) and nowhere else."""

    writable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReasoningChoice:
    """Which reasoning level was asked for and which one is passed; ``applied`` None passes nothing."""

    requested: str | None = None
    applied: str | None = None
    source: str = "cli-default"
    clamped: bool = False


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """Everything that a start needs. ``added`` are the variables that the plan itself sets, for showing the command.

    ``structured``: the CLI is given the schema of a typed answer. ``instructions`` is the text that belongs in the file
    of that name before the start, or above the task if ``instructions_in_task``; None without any.
    """

    argv: tuple[str, ...]
    environment: dict[str, str]
    cwd: str
    stdin_file: str | None = None
    confinement: Confinement | None = None
    confinement_kind: ConfinementKind = "none"
    billing: Billing = "unknown"
    notes: tuple[str, ...] = ()
    stream: dict[str, Any] = field(default_factory=dict)
    terminal: tuple[Mapping[str, Any], ...] = ()
    model: str | None = None
    reasoning: ReasoningChoice = field(default_factory=ReasoningChoice)
    clocks: Clocks = field(default_factory=Clocks)
    first_start: str | None = None
    guarded: tuple[str, ...] = ()
    state: StateFolders = StateFolders()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    structured: bool = False
    instructions: str | None = None
    instructions_in_task: bool = False


def plan_launch(
    profile: PoolProfile,
    *,
    rung: Rung,
    lane: Lane,
    cwd: str,
    prompt_file: str,
    private_tmp: str,
    environ: Mapping[str, str],
    sandbox: Sandbox = "workspace",
    inherit_config: bool = False,
    can_confine: bool = True,
    answer: AnswerSchema | None = None,
    instructions_file: str | None = None,
    grant: ProjectGrant | None = None,
) -> LaunchPlan:
    """Plan how ``profile`` runs one task in ``cwd`` (a real absolute path).

    ``can_confine`` False: this machine has nothing with which the keeper could confine a worker. ``answer`` is what a typed
    answer is checked against; it is passed on where the CLI's own structured output takes it. ``instructions_file`` is where
    the project's instructions will be; without it none are handed over. ``grant`` says which settings of the project the
    person allowed. Raises UsageError for a sandbox or reasoning level that doesn't exist, and for a pool whose binary isn't
    there; WorkerStartError where the CLI can't be kept from settings of the project.
    """
    connector, launch = profile.connector, profile.connector.launch
    if profile.binary is None:
        raise UsageError(f"{profile.id}: {profile.unavailable or connector.binary + ' was not found on PATH'}")
    if sandbox not in SANDBOXES:
        raise UsageError(f"sandbox {sandbox!r} is none of {', '.join(SANDBOXES)}")
    mode = launch.mode(lane, sandbox)
    reasoning = choose_reasoning(launch.reasoning, rung)
    isolated = not inherit_config
    project = look_at_project(profile, cwd, grant)
    handed = instructions_file if project.instructions else None
    context = LaunchContext(
        profile, lane, sandbox, cwd, private_tmp, isolated, environ, reasoning.applied,
        project.allowed, project.settings, project.root, handed,
    )  # fmt: skip
    addition = _addition(context)
    words = _Words(context, prompt_file=prompt_file, reasoning=reasoning.applied or "", answer=answer)

    confined = mode.confinement == "bullswarm" and can_confine
    held = mode.confinement == "cli" or confined
    if mode.confinement == "bullswarm" and not confined and mode.unconfined is not None:
        mode = replace(mode, arguments=mode.unconfined.arguments, environment=mode.unconfined.environment)
    isolation = () if inherit_config else launch.isolation
    kept_out = () if project.allowed else launch.project.arguments
    handed_over = launch.project.instruction_arguments if handed else ()
    argv = [*launch.arguments, *mode.arguments, *isolation, *kept_out, *handed_over]
    argv = [profile.binary, *words.all(argv), *addition.arguments]
    if rung.model is not None and launch.model_flag:
        # Whoever names the model may be an agent that was misled: some CLIs read a value with a dash as an option.
        if not is_model_name(rung.model):
            raise UsageError(f"{profile.id}: {rung.model!r} is no name of a model")
        argv = with_option(argv, launch.model_flag, rung.model)
    if reasoning.applied is not None:
        argv = _with_reasoning(argv, words.all(launch.reasoning.arguments))
    unstructured = _why_unstructured(launch.structured_output, answer)
    structured = launch.structured_output if answer is not None and unstructured is None else None
    argv += words.all(structured.arguments) if structured else ()
    argv += words.all(launch.prompt_arguments)

    removed = tuple(name for name in profile.withheld if name in environ)
    added = {**launch.environment, **mode.environment}
    if not inherit_config:
        added |= launch.isolation_environment
    if not project.allowed:
        added |= launch.project.environment
    added = {name: words.one(value) for name, value in added.items()}
    added |= {**profile.environment, **addition.environment}
    named = names_like(cwd, "" if project.allowed else launch.dot_env_pattern)
    added = emptied((*launch.dot_env, *named), environ, removed) | added
    stream = connector.stream_table()
    return LaunchPlan(
        argv=tuple(argv),
        environment=child_environment(
            environ, cwd=cwd, private_tmp=private_tmp, pool_id=profile.id, remove=removed, add=added
        ),
        cwd=cwd,
        stdin_file=prompt_file if launch.prompt == "stdin" else None,
        confinement=_confinement(words, lane) if confined else None,
        confinement_kind=mode.confinement if held else "none",
        billing=profile.billing,
        notes=(
            *_notes(profile, rung, reasoning, mode, confined, removed),
            *_notes_of_dot_env(cwd, added),
            *([f"the schema is not given to {connector.name}: {unstructured}"] if unstructured else ()),
            *addition.notes,
            *project.notes,
        ),
        stream=stream,
        terminal=launch.terminal,
        model=rung.model,
        reasoning=reasoning,
        clocks=launch.clocks,
        first_start=words.path(launch.first_start) if launch.first_start else None,
        guarded=words.paths(launch.guarded),
        state=StateFolders(
            words.paths(launch.state_folders),
            words.paths(launch.volatile),
            words.path(launch.first_start) if launch.first_start else None,
            words.paths(launch.written_once),
        ),
        added=tuple(sorted(added)),
        removed=removed,
        structured=structured is not None,
        instructions=project.instructions if handed else None,
        instructions_in_task=addition.instructions_in_task,
    )


def choose_reasoning(reasoning: Reasoning, rung: Rung) -> ReasoningChoice:
    """Fit the rung's level to what the CLI accepts: the nearest lower one, or its lowest where none is lower.

    Raises UsageError for a level that no CLI knows where the connector lists its levels.
    """
    asked, levels = rung.reasoning, reasoning.levels
    choice = ReasoningChoice(requested=asked, source=rung.level_source)
    if asked is None or asked == NO_REASONING or levels == () or not reasoning.arguments:
        return choice
    if rung.model is not None and any(re.search(pattern, rung.model) for pattern in reasoning.skip_models):
        return choice
    if levels is None or asked in levels:
        return replace(choice, applied=asked)
    if asked not in REASONING_LEVELS:
        raise UsageError(
            f"reasoning level {asked!r} is none of {', '.join(levels)}", hint=f"or {NO_REASONING!r} to pass none"
        )
    applied = clamped(asked, levels)
    if applied is None:
        raise UsageError(f"reasoning level {asked!r} is none of {', '.join(levels)}")
    return replace(choice, applied=applied, clamped=True)


def with_option(argv: Sequence[str], flag: str, value: str) -> list[str]:
    """Give ``argv`` with ``flag value``: in place where the flag stands (also as ``flag=value``), else at the end."""
    words = list(argv)
    for index, word in enumerate(words):
        if word == flag and index + 1 < len(words):
            words[index + 1] = value
            return words
        if word.startswith(f"{flag}="):
            words[index] = f"{flag}={value}"
            return words
    return [*words, flag, value]


def shown_command(plan: LaunchPlan) -> str:
    """Write the command as a person could type it: quoted, with the variables that bullswarm sets, never a secret."""
    import shlex

    secrets = {v for n, v in plan.environment.items() if is_secret(n, v) and len(v) >= _SHORTEST_SECRET}
    words = [f"env -u {shlex.quote(name)}" for name in plan.removed]
    for name in plan.added:
        if name in _NOT_SHOWN:
            continue
        value = plan.environment[name]
        value = _HIDDEN if value and is_secret(name, value) else _without(value, secrets)
        words.append(f"{name}={shlex.quote(value)}" if value != _HIDDEN else f"{name}={_HIDDEN}")
    words += [shlex.quote(_without(word, secrets)) for word in plan.argv]
    if plan.stdin_file is not None:
        words.append(f"< {shlex.quote(plan.stdin_file)}")
    return " ".join(words)


def state_paths(profile: PoolProfile, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the absolute paths of the CLI's own folders and files, which its workers may write."""
    texts = (
        text.replace("{configFolder}", profile.config_dir or "") for text in profile.connector.launch.state_folders
    )
    return tuple(path for text in texts if (path := expand_path(text, environ)) is not None)


class _Words:
    """Fills the placeholders that a connector may use; every other brace is left as it is (an argument may be JSON)."""

    def __init__(
        self, context: LaunchContext, *, prompt_file: str, reasoning: str, answer: AnswerSchema | None
    ) -> None:
        self._context = context
        self._values = {
            "{cwd}": context.cwd,
            "{promptFile}": prompt_file,
            "{privateTmp}": context.private_tmp,
            "{reasoning}": reasoning,
            "{folder}": context.profile.connector.folder,
            "{python}": sys.executable,
            "{lane}": context.lane,
            "{configFolder}": context.profile.config_dir or "",
            "{instructionsFile}": context.instructions_file or "",
        }
        if answer is not None:
            self._values |= {"{answerSchema}": answer.text, "{answerSchemaFile}": answer.file}

    def one(self, text: str) -> str:
        return re.sub(r"\{[A-Za-z]+\}", lambda match: self._values.get(match[0], match[0]), text)

    def all(self, words: Iterable[str]) -> list[str]:
        return [self.one(word) for word in words]

    def path(self, text: str) -> str | None:
        """Expand ``{configFolder}``, ``~`` and ``${NAME:-default}``; None when the path stays relative."""
        return expand_path(self.one(text), self._context.environ)

    def paths(self, texts: Iterable[str]) -> tuple[str, ...]:
        return tuple(path for text in texts if (path := self.path(text)) is not None)

    def state_folders(self) -> tuple[str, ...]:
        return self.paths(self._context.profile.connector.launch.state_folders)

    @property
    def target(self) -> tuple[str, ...]:
        return (self._context.cwd, self._context.private_tmp)


def _why_unstructured(rule: StructuredOutput | None, answer: AnswerSchema | None) -> str | None:
    """Say why a CLI that takes schemas is not given this one."""
    if rule is None or answer is None:
        return None
    from bullswarm_core.launch.structured_output import why_not_passed

    return why_not_passed(answer.schema, rule)


def _addition(context: LaunchContext) -> LaunchAddition:
    make = getattr(context.profile.provider, "launch_addition", None)
    if make is None:
        return LaunchAddition()
    addition: LaunchAddition = make(context)
    return addition


def _with_reasoning(argv: list[str], arguments: list[str]) -> list[str]:
    if len(arguments) != 2:
        return argv + arguments
    flag, value = arguments
    # `-c key=value` may stand many times; its own key is what must not stand twice.
    if "=" not in value:
        return with_option(argv, flag, value)
    key = value.partition("=")[0] + "="
    for index, word in enumerate(argv[:-1]):
        if word == flag and argv[index + 1].startswith(key):
            return [*argv[: index + 1], value, *argv[index + 2 :]]
    return [*argv, flag, value]


def _confinement(words: _Words, lane: Lane) -> Confinement:
    cwd, private_tmp = words.target
    target = [] if lane == "analyze" else [cwd, SHARED_MEMORY]
    return Confinement(tuple(dict.fromkeys([*target, private_tmp, *words.state_folders()])))


def _notes(
    profile: PoolProfile,
    rung: Rung,
    reasoning: ReasoningChoice,
    mode: Mode,
    confined: bool,
    removed: tuple[str, ...],
) -> tuple[str, ...]:
    notes = []
    if profile.connector.last_resort:
        notes.append(f"{profile.id} is the embedded worker: no model reads this task and no work is done")
    if removed:
        notes.append(f"{', '.join(removed)} kept from the worker: it would be billed apart or pick another account")
    if reasoning.clamped:
        notes.append(
            f"reasoning {reasoning.requested} is not accepted by {profile.connector.name}: {reasoning.applied} instead"
        )
    if rung.model is not None and not profile.connector.launch.model_flag:
        notes.append(f"{profile.connector.name} takes no model: {rung.model} is not passed")
    if mode.confinement == "bullswarm" and not confined:
        notes.append("this machine offers no way to confine a worker: the CLI's own permissions are all that holds it")
    return tuple(notes)


def _notes_of_dot_env(cwd: str, added: Mapping[str, str]) -> tuple[str, ...]:
    kept = names_set_in(cwd, [name for name, value in added.items() if value == ""])
    if not kept:
        return ()
    return (
        f"{', '.join(kept)} of the .env in {cwd} kept from the worker's CLI: a project decides no account or address",
    )


def _without(text: str, secrets: Iterable[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, _HIDDEN)
    return text
