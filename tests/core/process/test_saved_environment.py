"""What a run keeps of its caller's environment: plain values, and of secrets only the names."""

import json

from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.process.saved_environment import SavedEnvironment, restore, save


def test_a_secret_is_never_stored_and_comes_from_the_next_shell() -> None:
    saved = save({"PATH": "/bin", "API_KEY": "s3cret-value", "CLAUDECODE": "1"}, leave_out=["CLAUDECODE"])
    assert "s3cret-value" not in json.dumps([dict(saved.values), saved.secret_names])
    assert saved == SavedEnvironment({"PATH": "/bin"}, ("API_KEY",))
    assert restore(saved, {"API_KEY": "again", "OTHER": "x"}) == ({"PATH": "/bin", "API_KEY": "again"}, ())
    assert restore(saved, {}) == ({"PATH": "/bin"}, ("API_KEY",))


names = st.text("ABCDEFGKEYTO_", min_size=1, max_size=12)


@given(st.dictionaries(names, st.text(max_size=20).filter(lambda text: "\x00" not in text)))
def test_the_same_shell_gives_the_same_environment_back(environ: dict[str, str]) -> None:
    storable = {n: v for n, v in environ.items() if v.isascii() or not any("\ud800" <= c <= "\udfff" for c in v)}
    assert restore(save(environ), environ) == (storable, ())
