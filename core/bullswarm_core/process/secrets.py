"""Which environment variables hold a secret: one rule for what is stored and for what is shown."""

from __future__ import annotations

import re

# Words by which the world names its secrets. A false alarm only means that a value isn't shown, and must be there again at a
# resume. What ASKPASS names is a program that asks, AUTHOR and XAUTHORITY are a person and a file.
_NAME = re.compile(
    r"KEY|TOKEN|SECRET|(?<!ASK)PASS|PWD|CREDENTIAL|CREDS|COOKIE|PRIVATE|BEARER|JWT|WEBHOOK|DSN|AUTH(?!OR)|AUTHORIZATION"
    r"|CONNECTION_?STRING|CONFIG_CONTENT|HEADERS?($|_)|MNEMONIC|SEED_PHRASE"
    r"|(^|_)(PAT|PW|SAS|OTP)($|_)",
    re.IGNORECASE,
)
# What these name is where a secret or its agent lives, not the secret (SSH_AUTH_SOCK, KEY_FILE).
_PLACE = re.compile(r"_(SOCK|SOCKET|FILE|PATH|DIR|HOME)$", re.IGNORECASE)
# Every shell keeps the folder it is in, and the one before, under these names.
_FOLDERS = frozenset({"PWD", "OLDPWD"})
_VALUES = (
    # An address with a password in it; the user may be empty, and a password may hold a slash (REDIS, DATABASE_URL).
    re.compile(r"://[^/\s:@]*:[^\s@]+@"),
    # An address with a token for a user; who logs in by ssh gives only the name.
    re.compile(r"(?<!ssh)://[^/\s?#:@]+@"),
    # An address that needs no more than itself to be used.
    re.compile(r"://hooks\.|://\S*webhook", re.IGNORECASE),
    # A secret among other settings (a JDBC or libpq address, a list of options).
    re.compile(r"(password|token|secret|api[-_]?key|accountkey|[?&]sig(nature)?)=[^\s;&]", re.IGNORECASE),
    # A header that signs in, as git's settings (http.extraHeader) and exporters of traces take it.
    re.compile(r"authorization\s*[:=]|\b(bearer|basic)\s+[\w+/.~=-]{6}", re.IGNORECASE),
    # Keys that their vendors marked, so that they are known wherever they stand.
    re.compile(
        r"(?<![A-Za-z0-9])(sk-[\w-]{16}|[rs]k_(live|test)_\w{10}|(gh[pousr]|github_pat|hf|npm)_\w{16}|(glpat|pypi)-[\w-]{16}"
        r"|xox[a-z]-[\w-]{10}|A(KIA|SIA)[A-Z0-9]{16}|AIza[\w-]{30}|eyJ[\w-]{8,}\.eyJ[\w-]{4,}\.)"
    ),
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY"),
)


def is_secret(name: str, value: str = "") -> bool:
    """Tell whether a variable's value must neither be stored nor shown."""
    if name not in _FOLDERS and _NAME.search(name) and not _PLACE.search(name):
        return True
    return any(pattern.search(value) for pattern in _VALUES)
