"""How an agent CLI is started, as its connector says it, and what its provider.py may add.

Apart from :mod:`bullswarm_core.pools.connector`, because most commands only look at pools and start nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from bullswarm_core._dataclasses import dataclass, field
from bullswarm_core.pools.model import Lane

if TYPE_CHECKING:
    from bullswarm_core.pools.model import Sandbox


ConfinementKind = Literal["cli", "bullswarm", "none"]
PromptWay = Literal["stdin", "file"]


@dataclass(frozen=True, slots=True)
class Mode:
    """How one lane is started under one sandbox choice, and who holds the worker inside its bounds.

    ``unconfined`` stands in for it where bullswarm was to confine the worker and this machine can't do it.
    """

    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    confinement: ConfinementKind = "none"
    unconfined: Mode | None = None


@dataclass(frozen=True, slots=True)
class Clocks:
    """Default supervision clocks of a worker in seconds; None leaves the program's own default."""

    startup_sec: float | None = None
    silence_sec: float | None = None
    terminal_grace_sec: float | None = None


@dataclass(frozen=True, slots=True)
class Reasoning:
    """How a reasoning level is passed. ``levels`` () accepts none, None accepts any name (the CLI's own variants)."""

    arguments: tuple[str, ...] = ()
    levels: tuple[str, ...] | None = ()
    skip_models: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StructuredOutput:
    """How the CLI is given the schema of a typed answer, and which schemas its vendor takes.

    ``arguments`` may hold ``{answerSchema}`` (the JSON itself) and ``{answerSchemaFile}``. ``reply`` True: the answer is the
    final reply; else the stream's last word carries it. ``keywords`` None takes every keyword, ``closed_objects`` only
    objects that allow no further property and require each of theirs, ``largest_bytes`` no larger schema.
    ``gave_up`` are the error codes that say that the worker gave no answer that fits.
    """

    arguments: tuple[str, ...]
    reply: bool = False
    keywords: frozenset[str] | None = None
    root_without: frozenset[str] = frozenset()
    closed_objects: bool = False
    largest_bytes: int | None = None
    gave_up: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ProjectPart:
    """How the CLI is kept from the settings that a repository brings along; ``files`` are the patterns of those files.

    A pattern is looked for in the folder of work and in each folder around it up to the repository's root (``refused`` and
    ``refused_if`` further, up to the home folder or the file system's root); with a slash at
    its end it is a whole folder. ``arguments`` and ``environment`` make the CLI pass the files over. ``refused`` are those
    that it has no way to pass over: it isn't started where there is one; ``refused_if`` are those that it passes over but for
    what the pattern ``refused_text`` finds in them. ``instructions`` are groups of the instruction
    files that the CLI then doesn't read by itself either: the first group that has any counts, ``folder/`` is each ``.md`` in
    it, ``above_repository`` adds those around the repository. ``instruction_arguments`` hand them over, where the provider
    doesn't. ``read_by_itself`` are instruction files that the CLI reads whatever is said to it, so that it isn't started where
    one is a link out of the repository; ``imports_anything``: nor where one imports a file from elsewhere.
    """

    files: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    refused_if: tuple[str, ...] = ()
    refused_text: str = ""
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    instructions: tuple[tuple[str, ...], ...] = ()
    above_repository: bool = False
    instruction_arguments: tuple[str, ...] = ()
    read_by_itself: tuple[str, ...] = ()
    imports_anything: bool = False


@dataclass(frozen=True, slots=True)
class Launch:
    """How the CLI is started. Text may hold ``{cwd} {promptFile} {privateTmp} {reasoning} {folder} {python} {lane}``.

    ``isolation`` are the arguments that keep the person's hooks, plug-ins and MCP servers out of a worker;
    ``state_folders`` are the CLI's own files and folders (with a slash at the end), which it must be able to write when
    bullswarm confines it; ``terminal`` says by which line of its stream the keeper knows the CLI's last word.
    ``volatile`` are patterns of what the CLI keeps writing in there; all else in them is compared before and after a worker.
    ``written_once`` are patterns of what comes and goes with each session and stays as it is in between.
    ``guarded`` are the person's own settings, also those within a volatile file, with which no worker has any business.
    ``first_start`` is a file that the CLI's first start makes; until it is there, starts of it don't overlap. ``dot_env``
    are the variables that the CLI would take out of a ``.env`` in the folder of work, and that a project must not decide;
    ``dot_env_pattern`` finds more of them in that file, for CLIs that take any. ``structured_output`` None: the CLI takes no
    schema. ``project`` keeps a repository's settings out. ``attaches_files``: the CLI attaches the file that an at sign in its
    task names.
    """

    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    isolation: tuple[str, ...] = ()
    isolation_environment: Mapping[str, str] = field(default_factory=dict)
    model_flag: str | None = None
    reasoning: Reasoning = Reasoning()
    prompt: PromptWay = "stdin"
    prompt_arguments: tuple[str, ...] = ()
    attaches_files: bool = False
    modes: Mapping[Lane, Mapping[Sandbox, Mode]] = field(default_factory=dict)
    state_folders: tuple[str, ...] = ()
    terminal: tuple[Mapping[str, Any], ...] = ()
    clocks: Clocks = Clocks()
    first_start: str | None = None
    guarded: tuple[str, ...] = ()
    volatile: tuple[str, ...] = ()
    written_once: tuple[str, ...] = ()
    dot_env: tuple[str, ...] = ()
    dot_env_pattern: str = ""
    structured_output: StructuredOutput | None = None
    project: ProjectPart = ProjectPart()

    def mode(self, lane: Lane, sandbox: Sandbox) -> Mode:
        """Give the way to start ``lane``: a chore like a build, and a missing choice like workspace."""
        choices = self.modes.get(lane) or (self.modes.get("build") if lane == "chore" else None) or {}
        return choices.get(sandbox) or choices.get("workspace") or Mode()


def launch_from_json(data: Mapping[str, Any]) -> Launch:
    """Build the launch part of a valid connector.json."""
    reasoning = data.get("reasoning") or {}
    isolation = data.get("isolation") or {}
    clocks = data.get("clocks") or {}
    prompt = data.get("prompt") or {}
    levels = reasoning.get("levels", ())
    return Launch(
        arguments=tuple(data.get("arguments", ())),
        environment=dict(data.get("environment", {})),
        isolation=tuple(isolation.get("arguments", ())),
        isolation_environment=dict(isolation.get("environment", {})),
        model_flag=data.get("modelFlag"),
        reasoning=Reasoning(
            tuple(reasoning.get("arguments", ())),
            None if levels is None else tuple(levels),
            tuple(reasoning.get("skipModels", ())),
        ),
        prompt=prompt.get("way", "stdin"),
        attaches_files=prompt.get("attachesFiles", False),
        prompt_arguments=tuple(prompt.get("arguments", ())),
        modes={
            lane: {name: _mode(mode) for name, mode in choices.items()}
            for lane, choices in data.get("lanes", {}).items()
        },
        state_folders=tuple(data.get("stateFolders", ())),
        terminal=tuple(data.get("terminal", ())),
        clocks=Clocks(clocks.get("startupSec"), clocks.get("silenceSec"), clocks.get("terminalGraceSec")),
        first_start=data.get("firstStart"),
        guarded=tuple(data.get("guarded", ())),
        volatile=tuple(data.get("volatile", ())),
        written_once=tuple(data.get("writtenOnce", ())),
        dot_env=tuple(data.get("dotEnv", ())),
        dot_env_pattern=data.get("dotEnvPattern", ""),
        structured_output=_structured_output(data.get("structuredOutput")),
        project=_project(data.get("project") or {}),
    )


def _project(data: Mapping[str, Any]) -> ProjectPart:
    return ProjectPart(
        files=tuple(data.get("files", ())),
        refused=tuple(data.get("refused", ())),
        refused_if=tuple(data.get("refusedIf", ())),
        refused_text=data.get("refusedText", ""),
        arguments=tuple(data.get("arguments", ())),
        environment=dict(data.get("environment", {})),
        instructions=tuple(tuple(group) for group in data.get("instructions", ())),
        above_repository=data.get("aboveRepository", False),
        instruction_arguments=tuple(data.get("instructionArguments", ())),
        read_by_itself=tuple(data.get("readByItself", ())),
        imports_anything=data.get("importsAnything", False),
    )


def _structured_output(data: Mapping[str, Any] | None) -> StructuredOutput | None:
    if data is None:
        return None
    keywords = data.get("keywords")
    return StructuredOutput(
        arguments=tuple(data["arguments"]),
        reply=data.get("answer") == "reply",
        keywords=None if keywords is None else frozenset(keywords),
        root_without=frozenset(data.get("rootWithout", ())),
        closed_objects=data.get("closedObjects", False),
        largest_bytes=data.get("largestBytes"),
        gave_up=frozenset(data.get("gaveUp", ())),
    )


def _mode(data: Mapping[str, Any]) -> Mode:
    unconfined = data.get("unconfined")
    return Mode(
        tuple(data.get("arguments", ())),
        dict(data.get("environment", {})),
        data.get("confinement", "none"),
        None if unconfined is None else _mode(unconfined),
    )
