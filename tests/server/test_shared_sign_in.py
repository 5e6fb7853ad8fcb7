"""A retry after a refused sign-in: past every name of the same credential, and never past another account."""

from typing import Any

import pytest
from tests.core.runs.journals import document
from tests.server.site import ANSWER, Site
from tests.server.workflows import begin, ended

REFUSED = "cat > /dev/null\necho 'Error: 401 Invalid API key provided' >&2\nexit 1"
GROUP: dict[str, Any] = {"credentialGroup": "relay"}
# Two accounts of one CLI, each in a folder of its own; which of them is at work is told by a variable.
ACCOUNTS = """from bullswarm_core.pools.connector import Account
def accounts(connector, environ):
    return tuple(
        Account(name, environ["HOME"] + "/." + name, {"WHO": name}, account=identity)
        for name, identity in (("a", IDENTITIES[0]), ("b", IDENTITIES[1]))
    )
"""


def tries(site: Site) -> list[str]:
    state = ended(site, begin(site, document({"id": "s", "prompt": "Explain it."})))
    return [attempt.picked.pool for attempt in state.steps["s"].attempts]


def test_names_of_one_dead_credential_are_all_passed_over(site: Site) -> None:
    for name in ("first", "second", "third"):
        site.worker(name, REFUSED, **GROUP)
    # It costs most, so that it would come after all the others.
    site.worker("other", f"cat > /dev/null\necho '{ANSWER}'", costRank=9)
    assert tries(site) == ["first", "other"]


@pytest.mark.parametrize("identities", [("one", "two"), (None, None), ("one", None)])
def test_another_account_is_another_credential(site: Site, identities: tuple[str | None, str | None]) -> None:
    works = f'if [ "$WHO" = a ]; then {REFUSED.splitlines()[1]}; exit 1; fi'
    site.worker("cli", f"cat > /dev/null\n{works}\necho '{ANSWER}'", **GROUP)
    (site.home.providers_dir / "cli" / "provider.py").write_text(f"IDENTITIES = {identities!r}\n{ACCOUNTS}")
    assert tries(site) == ["cli:a", "cli:b"]


def test_providers_that_are_known_to_hold_two_accounts_share_nothing(site: Site) -> None:
    for name, script in (("first", REFUSED), ("second", f"cat > /dev/null\necho '{ANSWER}'")):
        site.worker(name, script, **GROUP)
        code = f"from bullswarm_core.pools.connector import Account\ndef accounts(*_): return (Account(account={name!r}),)\n"
        (site.home.providers_dir / name / "provider.py").write_text(code)
    assert tries(site) == ["first", "second"]
