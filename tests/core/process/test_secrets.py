"""One rule says which variables hold a secret, for the journal and for what a person is shown."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.process.saved_environment import save
from bullswarm_core.process.secrets import is_secret

SECRET_WORDS = ("PASS", "PASSWORD", "PWD", "TOKEN", "SECRET", "WEBHOOK", "DSN", "API_KEY", "CREDENTIALS")


@pytest.mark.parametrize(
    "name",
    [
        "SSHPASS", "MYSQL_PWD", "DB_PASS", "MYPASS", "SENTRY_DSN", "SLACK_WEBHOOK", "SLACK_WEBHOOK_URL", "PGPASSWORD",
        "ANTHROPIC_API_KEY", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "MY_PAT", "SESSION_COOKIE", "X_AUTH", "NPM_OAUTH",
        "HTTP_AUTHORIZATION", "AZURE_STORAGE_CONNECTION_STRING", "OPENCODE_CONFIG_CONTENT", "db_pass",
        "ANTHROPIC_CUSTOM_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS", "DB_CREDS", "DB_PW", "AZURE_STORAGE_SAS", "MNEMONIC",
    ],
)  # fmt: skip
def test_secrets_are_known_by_their_names(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "PATH", "PWD", "OLDPWD", "HOME", "LANG", "EDITOR", "AUTHOR", "GIT_AUTHOR_NAME", "XAUTHORITY", "PATTERN",
        "SSH_AUTH_SOCK", "TLS_KEY_FILE", "GIT_ASKPASS", "SSH_ASKPASS", "PYTHONPATH", "INIT_CWD", "TERM",
        "HEADERS_PATH", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_FILE", "PWM", "LESS_TERMCAP_so",
    ],
)  # fmt: skip
def test_plain_names_are_no_secrets(name: str) -> None:
    assert not is_secret(name, "/home/me")


@pytest.mark.parametrize(
    "value",
    [
        "http://me:hidden@127.0.0.1:3128", "redis://:pw@h", "https://tok@host", "https://tok@host/4?x=1",
        "postgres://u:p/w@host/db", "https://hooks.example.com/services/T0/B0", "https://example.com/api/webhooks/1/x",
        "jdbc:sqlserver://h;user=me;password=hidden", "--verbose --token=hidden", "-----BEGIN RSA PRIVATE KEY-----",
        "AUTHORIZATION: basic eHg6eXk=", "'http.extraheader=Authorization: x'", "x-a=1,api-key=hidden", "Bearer hidden.hidden",
        "https://me.blob.example.com/c?sv=2020&sig=hidden", "sk-ant-api03-0123456789abcdef", "ghp_0123456789abcdef0123",
        "AKIAIOSFODNN7EXAMPLE", "glpat-0123456789abcdef0123", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.hidden",
    ],
)  # fmt: skip
def test_secrets_are_known_by_their_values(value: str) -> None:
    assert is_secret("REDIS", value)


@pytest.mark.parametrize(
    "value",
    [
        "http://127.0.0.1:3128",
        "https://host/a?b=c",
        "ssh://git@host/project.git",
        "me@example.com",
        "/a/b",
        "a:b@c",
        "basic",
        "risk-0123456789abcdef0123",
        "sk-learn",
        "",
    ],
)
def test_plain_values_are_no_secrets(value: str) -> None:
    assert not is_secret("REDIS", value)


parts = st.text("ABCXYZ019", max_size=6)


@given(before=parts, word=st.sampled_from(SECRET_WORDS), joint=st.sampled_from(["", "_"]), lower=st.booleans())
def test_no_value_under_a_name_that_says_secret_is_stored(before: str, word: str, joint: str, lower: bool) -> None:
    name = f"{before}_{word}" if joint else f"A{before}{word}"
    name = name.lower() if lower else name
    saved = save({name: "hidden-value", "PWD": "/here"})
    assert "hidden-value" not in json.dumps(dict(saved.values))
    assert saved.secret_names == (name,)
    assert saved.values == {"PWD": "/here"}


names = st.text("abcdefgh019", max_size=8)


@given(user=names, secret=st.text("abcXYZ019-_%~", min_size=1, max_size=20), with_user=st.booleans())
def test_no_address_that_lets_in_is_stored(user: str, secret: str, with_user: bool) -> None:
    value = f"amqp://{user}:{secret}@host/x" if with_user else f"https://{secret}@host/x"
    assert save({"SERVICE": value}).secret_names == ("SERVICE",)
