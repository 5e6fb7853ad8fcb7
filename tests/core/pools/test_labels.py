"""Labels: the rules with their exact words, and text that people read."""

import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.errors import StateError, UnknownNameError, UsageError
from bullswarm_core.fast.text import one_line
from bullswarm_core.pools.labels import Labels, clear_label, remember_pools, set_label
from bullswarm_core.reports import commands
from bullswarm_core.routing.billing import grant_command
from bullswarm_core.store.home import Home, read_json, write_json

POOLS = ("claude-code", "claude-code:acme", "codex", "grok")
names = st.text(st.characters(whitelist_categories=("L", "N")), min_size=1, max_size=6)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def test_a_label_is_stored_found_and_cleared(home: Home) -> None:
    assert set_label(home, "claude-code:acme", "claude-code:a", POOLS) == "claude-code:acme"
    assert read_json(home.labels_file) == {"version": 1, "labels": {"claude-code:acme": "claude-code:a"}}
    labels = Labels.load(home)
    assert labels.resolve("claude-code:a", POOLS) == "claude-code:acme"
    assert labels.resolve("claude-code:acme", POOLS) == "claude-code:acme"
    assert labels.shown("claude-code:acme") == "claude-code:a"
    assert labels.shown("codex") == "codex"
    assert clear_label(home, "claude-code:a", POOLS) == ("claude-code:acme", "claude-code:a")
    assert clear_label(home, "codex", POOLS) == ("codex", None)
    assert Labels.load(home).items() == []


@pytest.mark.parametrize(
    ("name", "label", "message"),
    [
        ("nobody", "x", 'unknown pool "nobody" — bullswarm pools lists them'),
        ("codx", "x", 'unknown pool "codx" — bullswarm pools lists them · did you mean codex?'),
        (
            "claude-code:ac",
            "x",
            'unknown pool "claude-code:ac" — bullswarm pools lists them · did you mean claude-code:acme?',
        ),
        ("codex", "", "pool label must be non-empty and contain no spaces"),
        ("codex", "a b", "pool label must be non-empty and contain no spaces"),
        ("codex", "a\tb", "pool label must be non-empty and contain no spaces"),
        ("codex", "a\x1b[2J", "pool label must be non-empty and contain no spaces"),
        ("codex", "grok,opencode", 'pool label "grok,opencode" has a comma, which parts the names of a list'),
        ("codex", "grok", 'pool label "grok" is another pool\'s id'),
        ("codex", "g", 'pool label "g" is already used by grok'),
    ],
)
def test_a_refused_label_changes_nothing_and_says_why(home: Home, name: str, label: str, message: str) -> None:
    set_label(home, "grok", "g", POOLS)
    with pytest.raises(UsageError) as caught:
        set_label(home, name, label, POOLS)
    assert str(caught.value) == message
    assert caught.value.exit_code == 2
    assert Labels.load(home).items() == [("grok", "g")]


@pytest.mark.parametrize(
    "unseen",
    "\u200b\u200c\u200d\u200e\u202e\u2066\u2069\u061c\ufeff\u00ad\u2028\u2060\ufe0f\u3164\u034f\u2800\U000e0041",
)
def test_a_label_with_a_character_that_nobody_sees_is_refused(home: Home, unseen: str) -> None:
    for label in (f"gr{unseen}ok", unseen, f"{unseen}grok", f"grok{unseen}"):
        with pytest.raises(UsageError, match="nobody sees: U\\+"):
            set_label(home, "codex", label, POOLS)
    assert not home.labels_file.exists()


@pytest.mark.parametrize("label", ["Grok", "GROK", "ｇｒｏｋ", "ⓖrok", "night", "NIGHT", "ﬁne", "FINE"])
def test_a_label_that_looks_like_another_pools_name_is_refused(home: Home, label: str) -> None:
    set_label(home, "claude-code", "Night", POOLS)
    set_label(home, "claude-code:acme", "fine", POOLS)
    with pytest.raises(UsageError, match=r"looks like (grok|Night|fine), the name of another pool"):
        set_label(home, "codex", label, POOLS)
    assert Labels.load(home).of("codex") is None


def test_a_label_may_differ_from_its_own_pools_names_as_it_likes(home: Home) -> None:
    for label in ("Codex", "CODEX", "ｃodex", "codex", "Кодекс", "日本", "é"):
        set_label(home, "codex", label, POOLS)
        assert Labels.load(home).shown("codex") == label


def test_a_pool_may_be_given_its_label_again_or_a_new_one_by_label(home: Home) -> None:
    set_label(home, "grok", "g", POOLS)
    assert set_label(home, "grok", "g", POOLS) == "grok"
    assert set_label(home, "g", "g2", POOLS) == "grok"
    assert Labels.load(home).items() == [("grok", "g2")]


def test_the_label_of_a_pool_that_is_gone_can_be_cleared(home: Home) -> None:
    set_label(home, "grok", "g", POOLS)
    assert clear_label(home, "grok", ("codex",)) == ("grok", "g")
    with pytest.raises(UnknownNameError):
        clear_label(home, "grok", ("codex",))


def test_an_id_wins_over_a_label_that_came_first(home: Home) -> None:
    set_label(home, "codex", "newcomer", POOLS)
    labels = Labels.load(home)
    assert labels.resolve("newcomer", (*POOLS, "newcomer")) == "newcomer"
    assert labels.among((*POOLS, "newcomer")).of("codex") is None
    assert labels.among(POOLS).of("codex") == "newcomer"


def test_other_keys_of_the_file_are_kept(home: Home) -> None:
    write_json(home.labels_file, {"version": 1, "labels": {"grok": "g"}, "colours": {"grok": "red"}})
    set_label(home, "codex", "c", POOLS)
    assert read_json(home.labels_file) == {
        "version": 1,
        "labels": {"codex": "c", "grok": "g"},
        "colours": {"grok": "red"},
    }


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ([], "not a JSON object"),
        ({"version": 2, "labels": {}}, "version 2"),
        ({"labels": []}, "field labels"),
        ({"labels": {"grok": 3}}, "field labels.grok: 3"),
    ],
)
def test_a_file_that_cannot_be_understood_is_refused_and_kept(home: Home, content: object, place: str) -> None:
    write_json(home.labels_file, content)
    with pytest.raises(StateError, match=place):
        Labels.load(home)
    with pytest.raises(StateError, match=place):
        set_label(home, "codex", "c", POOLS)
    assert read_json(home.labels_file) == content


def test_text_for_people_shows_labels_longest_id_first() -> None:
    labels = Labels({"claude-code": "a", "claude-code:acme": "b"})
    assert labels.in_text("claude-code:acme beats claude-code, not codex.") == "b beats a, not codex."


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("claude-code:acme 88.1% of 5h", "claude-code:acme 88.1% of 5h"),
        ("picked [claude-code]: fine", "picked [cc]: fine"),
        ("last was claude-code.", "last was cc."),
        ("~/.claude-code/x and /opt/claude-code", "~/.claude-code/x and /opt/claude-code"),
        ("claude-code-mini", "claude-code-mini"),
        ("my-claude-code", "my-claude-code"),
    ],
)
def test_only_an_id_that_stands_alone_becomes_its_label(text: str, shown: str) -> None:
    assert Labels({"claude-code": "cc"}).in_text(text, POOLS) == shown


ODD = (
    "my box",
    "it's",
    'say "hi"',
    "$(id)",
    "a;b",
    "*",
    "back`tick",
    "-x",
    "--yes",
    "a,b",
    " edge",
    "two  spaces",
    "#x",
    "~",
    "é",
    "\u202ex",
)


@given(
    st.dictionaries(st.sampled_from(POOLS), st.sampled_from(ODD) | st.text(min_size=1, max_size=9), max_size=4),
    st.lists(st.sampled_from(POOLS), min_size=1, max_size=4, unique=True),
)
def test_a_command_in_a_text_parses_back_to_the_pools_that_it_is_about(by_id: dict[str, str], pools: list[str]) -> None:
    labels = Labels(by_id).among(POOLS)
    texts = [
        commands.rerun("abcdef", "mend", avoid=pools),
        f"    rerun elsewhere  {commands.rerun('a', 'b', avoid=pools)}",
    ]
    texts += [f"after 12:00: {texts[0]}"]
    for text in texts:
        words = shlex.split(labels.in_text(text).partition("bullswarm ")[2])
        assert words[:3] == ["workflow", "step", "rerun"] and words[-2] == "--avoid"
        named = [labels.resolve(name.strip(), POOLS) for name in words[-1].split(",")]
        if len(set(by_id.values())) == len(by_id):
            assert named == pools
    for pool in pools:
        text = f"{pool} is held (to allow it: {grant_command(pool)}) and waits"
        shown = labels.in_text(text)
        command = (
            shown.partition("(to allow it: ")[2].rpartition(") and waits")[0] if ")" not in labels.shown(pool) else None
        )
        if command is not None:
            words = shlex.split(command)
            assert words == ["bullswarm", "strategy", "set-provider", labels.typed(pool), "--allow-billing", "on"]


@given(st.sampled_from(POOLS), st.sampled_from(ODD) | st.text(min_size=1))
def test_a_name_that_is_typed_means_the_pool_alone_and_in_a_list(pool: str, label: str) -> None:
    labels = Labels({pool: label}).among(POOLS)
    name = labels.typed(pool)
    assert labels.resolve(name, POOLS) == pool
    assert [labels.resolve(each.strip(), POOLS) for each in name.split(",")] == [pool]
    assert one_line(name) == name and not name.startswith("-")


def test_outside_a_command_a_label_stands_as_it_is() -> None:
    labels = Labels({"codex": "my box"})
    text = "codex failed · bullswarm strategy set-provider codex on · codex waits"
    assert labels.in_text(text) == "my box failed · bullswarm strategy set-provider 'my box' on · my box waits"


@given(st.dictionaries(names, names, max_size=5), st.text(max_size=60))
def test_a_replaced_text_is_never_replaced_again(by_id: dict[str, str], text: str) -> None:
    labels = Labels(by_id)
    words = text.split(" ")
    for pool_id in by_id:
        assert labels.in_text(pool_id) == by_id[pool_id]
    assert labels.in_text(" ".join([*by_id, *words])).startswith(" ".join(by_id.values()))


@given(st.lists(st.tuples(st.sampled_from(POOLS), names | st.sampled_from(POOLS)), max_size=12))
def test_labels_stay_unique_and_resolve_back(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[str, str]]
) -> None:
    home = Home(tmp_path_factory.mktemp("labels"))
    for pool_id, label in changes:
        before = Labels.load(home).items()
        try:
            set_label(home, pool_id, label, POOLS)
        except UsageError:
            assert Labels.load(home).items() == before
    labels = Labels.load(home)
    shown = [labels.shown(pool_id) for pool_id in POOLS]
    assert len(set(shown)) == len(POOLS)
    assert [labels.resolve(name, POOLS) for name in shown] == list(POOLS)


def test_a_label_that_is_the_id_of_a_known_pool_is_shown_nowhere(home: Home) -> None:
    set_label(home, "codex", "newcomer", POOLS)
    remember_pools(home, POOLS)
    assert Labels.load(home).items() == [("codex", "newcomer")]
    remember_pools(home, (*POOLS, "newcomer"))
    labels = Labels.load(home)
    assert labels.shown("codex") == "codex" and labels.in_text("codex waits") == "codex waits"
    assert Labels.kept(home).items() == [("codex", "newcomer")]
    remember_pools(home, POOLS)
    assert Labels.load(home).shown("codex") == "newcomer"


@given(st.dictionaries(names, names, max_size=5), st.sets(names, max_size=8))
def test_loaded_labels_are_those_among_the_pools_of_the_machine(
    tmp_path_factory: pytest.TempPathFactory, by_id: dict[str, str], pools: set[str]
) -> None:
    home = Home(tmp_path_factory.mktemp("labels"))
    write_json(home.labels_file, {"version": 1, "labels": by_id})
    remember_pools(home, pools)
    loaded = Labels.load(home)
    assert loaded.items() == Labels(by_id).among(pools).items()
    for pool in pools:
        assert loaded.resolve(loaded.shown(pool), pools) == pool or list(by_id.values()).count(by_id[pool]) > 1


def test_a_home_without_labels_remembers_no_pools(home: Home) -> None:
    remember_pools(home, POOLS)
    assert not home.root.exists()


@pytest.mark.parametrize("damage", [{"pools": []}, [3], "codex", None])
def test_a_damaged_memory_of_pools_hides_no_label(home: Home, damage: object) -> None:
    set_label(home, "codex", "newcomer", POOLS)
    write_json(home.cache_dir / "pools.json", damage)
    assert Labels.load(home).shown("codex") == "newcomer"
    (home.cache_dir / "pools.json").write_text("{")
    assert Labels.load(home).shown("codex") == "newcomer"
    remember_pools(home, ("newcomer",))
    assert Labels.load(home).shown("codex") == "codex"


def test_pools_that_stay_the_same_are_written_once(home: Home) -> None:
    set_label(home, "codex", "c", POOLS)
    remember_pools(home, POOLS)
    written = (home.cache_dir / "pools.json").stat().st_ino
    remember_pools(home, reversed(POOLS))
    assert (home.cache_dir / "pools.json").stat().st_ino == written


def test_a_label_is_no_longer_than_a_line_can_hold() -> None:
    with pytest.raises(UsageError, match="has 81 characters and may have 80"):
        set_label(Home(), "codex", "a" * 81, ["codex"])
    assert set_label(Home(), "codex", "a" * 80, ["codex"]) == "codex"
