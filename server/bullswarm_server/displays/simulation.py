"""A replay of the person's own history in words: what each policy would have done, what it rests on, what switching means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.routing.policies import POLICY_NAMES
from bullswarm_server.displays.moments import local_day
from bullswarm_server.displays.terminal import Terminal, cells
from bullswarm_server.displays.text import number, one_line
from bullswarm_simulation import Score
from bullswarm_simulation.recorded import MIN_DAYS, MIN_POOLS, MIN_TASKS, PlayedPool, PoolOut, Replay
from bullswarm_simulation.recorded_quota import WindowFate
from bullswarm_simulation.recorded_tasks import LeftOut

NOTICEABLE_SHARE = 0.01
"""Of the recorded work; what two policies differ by below it comes of the play's own rounding."""
ROUGH_WALLS = 3
"""By so many walls more or fewer than there really were the play of the policy in force may miss, before it is called rough."""

_TASKS_OUT: dict[LeftOut, str] = {
    "stopped": "stopped before they ended",
    "stalled": "stalled",
    "refused": "refused before any work",
    "wall": "ended by a wall for good",
    "unmeasured": "of unknown length",
    "before": "older than the first reading",
    "pool": "of a pool that can't be played",
}
_POOLS_OUT: dict[PoolOut, str] = {
    "no-readings": "no reading of it is kept",
    "no-rate": "what a minute of work burns of it is not known yet",
    "no-reset": "no reset of it is known",
    "no-lane": "it is turned off",
}
_WINDOWS_OUT: dict[WindowFate, str] = {
    "no-rate": "its rate is not known",
    "no-reset": "its reset is not known",
}
_HEADS = ("policy", "worked", "share", "lost", "walls", "expired", "given up", "you kept out")


@dataclass(frozen=True, slots=True)
class Played:
    """A replay with its scores, best first; ``labels`` are what pools are shown as. Without enough history, no scores."""

    replay: Replay
    scores: tuple[Score, ...]
    in_force: str
    labels: dict[str, str]
    skipped_lines: int = 0
    skipped_rows: int = 0
    asked_since: datetime | None = None

    def name(self, pool: str) -> str:
        """What the pool is shown as."""
        return one_line(self.labels.get(pool, pool))

    @property
    def best(self) -> float:
        """The most that any of the scores is worth, in worker-minutes."""
        return max((score.value for score in self.scores), default=0.0)

    def share(self, score: Score) -> float:
        """What a score is worth in percent of the best one; 100 where nothing could be worth anything."""
        return 100.0 if self.best <= 0 else 100.0 * score.value / self.best


def simulation_lines(played: Played, terminal: Terminal) -> list[str]:
    """The whole answer for people: the table, what it rests on, and what it means."""
    replay = played.replay
    if not replay.enough():
        return [terminal.spelled(line) for line in (too_little(replay), *notes(played))]
    heading = (
        f"{_counted(len(replay.log.played), 'recorded task')} of {_days(replay)}"
        f" ({local_day(replay.begins)} to {local_day(replay.until)}), {_minutes(replay.happened.minutes)} of work,"
        " played again with each policy"
    )
    lines = [heading, "", *_table(played), "", *notes(played), *conclusion(played)]
    return [terminal.spelled(line) for line in lines]


def too_little(replay: Replay) -> str:
    """Say what there is and what is needed."""
    return (
        f"too little history to compare policies: {_counted(len(replay.log.played), 'task')} of known length in"
        f" {_days(replay)} on {_counted(len(replay.pools), 'pool')}; needed are {MIN_TASKS} tasks in"
        f" {number(MIN_DAYS)} days on {MIN_POOLS} pools with readings and a learned rate"
    )


def conclusion(played: Played) -> list[str]:
    """Say what switching would have changed and how to switch, never more certain than the records are.

    More work done counts first; of what does as much, that which loses less at walls.
    """
    current = next(score for score in played.scores if score.policy == played.in_force)
    rests = f"on these {_counted(len(played.replay.log.played), 'task')} of {_days(played.replay)}"
    noticeable = NOTICEABLE_SHARE * current.offered
    lines = _roughness(current, played.replay)
    others = [score for score in played.scores if score.policy in POLICY_NAMES and score.policy != played.in_force]
    better = max(others, key=lambda score: score.value, default=None)
    as_good = [score for score in others if current.value - score.value < noticeable]
    calmer = min(as_good, key=lambda score: score.lost_at_walls, default=None)
    if not current.walls and current.offered - current.value < noticeable:
        lines.append(f"{played.in_force} would have done all of it without a wall: {rests}, no policy could do better.")
    elif better is None:
        lines.append(f"No other policy that can be chosen was played beside {played.in_force}.")
    elif better.value - current.value >= noticeable:
        lines.append(_told(current, better, f"about {_minutes(better.value - current.value)} more than", rests))
    elif calmer is not None and current.lost_at_walls - calmer.lost_at_walls >= noticeable:
        lines.append(_told(current, calmer, "as much as", rests))
    else:
        lines.append(
            f"Switching from {played.in_force} would have changed nothing worth speaking of {rests}: what {better.policy},"
            " the best of the others, gets done is less, or less than 1 % more."
        )
    return lines


def _told(current: Score, better: Score, compared: str, rests: str) -> str:
    lost = current.lost_at_walls - better.lost_at_walls
    walls = f", and lost {_minutes(abs(lost))} {'less' if lost > 0 else 'more'} at walls" if abs(lost) >= 1 else ""
    return (
        f"{better.policy} would have done {compared} {current.policy}{walls}, {rests}. That is one history and no promise."
        f" To switch: bullswarm strategy set-policy {better.policy}"
    )


def _roughness(current: Score, replay: Replay) -> list[str]:
    """Warn where the play of the policy in force is far from what was: then only differences between policies tell."""
    really = replay.happened.walls
    if abs(current.walls - really) <= max(ROUGH_WALLS, really / 2):
        return []
    return [
        f"The play is rough: with {current.policy} it meets {_counted(current.walls, 'wall')}, and there really"
        f" {'was' if really == 1 else 'were'} {really}. Compare the policies with each other, not with what happened."
    ]


def notes(played: Played) -> list[str]:
    """What was left out, and what the play supposes."""
    replay = played.replay
    lines: list[str] = []
    if replay.older_than_cap:
        lines.append(
            f"only the newest {len(replay.log.played)} tasks are played, {replay.older_than_cap} older ones are not"
        )
    elif played.asked_since is not None and played.asked_since < replay.begins and replay.pools:
        lines.append(f"it begins on {local_day(replay.begins)}, with the first reading that is kept")
    if replay.log.left_out:
        told = ", ".join(f"{count} {_TASKS_OUT[why]}" for why, count in sorted(replay.log.left_out.items()))
        lines.append(f"tasks left out: {told}")
    lines += [_pool_note(played, item) for item in replay.pools]
    lines += [f"{played.name(pool)} is left out: {_POOLS_OUT[why]}" for pool, why in sorted(replay.pools_out.items())]
    damaged = [
        f"{count} {what}"
        for count, what in (
            (played.skipped_lines, "lines of the readings' history"),
            (played.skipped_rows, "rows of the database"),
        )
        if count
    ]
    return [*lines, f"skipped as damaged: {' and '.join(damaged)}"] if damaged else lines


def _pool_note(played: Played, item: PlayedPool) -> str:
    told = [f"your own use {_minutes(item.own_minutes)}"]
    for record in item.windows:
        source = f" (by its {record.compared_with} one)" if record.compared_with else ""
        told.append(f"{record.kind} {record.burn:.3g}%/min{source}")
    told += [f"{kind} not played: {_WINDOWS_OUT[why]}" for kind, why in item.fates.items() if why in _WINDOWS_OUT]
    if item.beyond_tiers:
        told.append(
            f"played as if it had a model on every tier ({_counted(item.beyond_tiers, 'task')} of one that it lacks)"
        )
    if item.first_reading > played.replay.begins:
        told.append(f"read since {local_day(item.first_reading)}")
    return f"{played.name(item.pool)}: {', '.join(told)}"


def _table(played: Played) -> list[str]:
    rows = [_HEADS, *(_row(played, score) for score in played.scores), _recorded_row(played.replay)]
    kept_out = any(score.own_use_refused >= 1 for score in played.scores)
    rows = rows if kept_out else [row[:-1] for row in rows]
    widths = [max(cells(row[place]) for row in rows) for place in range(len(rows[0]))]
    return [_aligned(row, widths) for row in rows]


def _row(played: Played, score: Score) -> tuple[str, ...]:
    name = f"{score.policy} (in force)" if score.policy == played.in_force else score.policy
    done = len(score.completed_tasks)
    return (
        name,
        _minutes(score.completed),
        f"{played.share(score):.1f}%",
        _minutes(score.lost_at_walls),
        str(score.walls),
        f"{score.expired_pct:.0f}%" if has_ended(score) else "-",
        str(len(played.replay.month.tasks) - done),
        _minutes(score.own_use_refused),
    )


def _recorded_row(replay: Replay) -> tuple[str, ...]:
    happened = replay.happened
    expired = "-" if happened.expired_pct is None else f"{happened.expired_pct:.0f}%"
    return (
        "what happened", _minutes(happened.minutes), "", _minutes(happened.lost), str(happened.walls), expired,
        str(happened.given_up), "",
    )  # fmt: skip


def has_ended(score: Score) -> bool:
    """Whether a week or month ended in the play, so that something could expire."""
    longest = {use.pool: use.kind for use in score.windows}  # the longest window of a pool stands last
    return any(use.ended and longest[use.pool] == use.kind for use in score.windows)


def _aligned(row: Sequence[str], widths: Iterable[int]) -> str:
    first, *rest = [(text, " " * (width - cells(text))) for text, width in zip(row, widths, strict=True)]
    return "  ".join([first[0] + first[1], *(space + text for text, space in rest)]).rstrip()


def _minutes(minutes: float) -> str:
    """Worker-minutes as hours and minutes: two workers make more than 24 hours of a day, so that days would mislead."""
    hours, rest = divmod(round(minutes), 60)
    return f"{hours}h{rest:02d}m" if hours else f"{rest}m"


def _days(replay: Replay) -> str:
    days = number(replay.days)
    return f"{days} day{'' if days == '1' else 's'}"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
