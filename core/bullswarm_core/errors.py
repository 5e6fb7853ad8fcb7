"""Every error that bullswarm raises on purpose, as one tree.

BullswarmError                  exit 1   something that was asked for did not work
├── UsageError                  exit 2   the call was wrong and nothing happened
│   ├── UnknownNameError        exit 2   a pool, provider, run or label that does not exist
│   ├── ConnectorError          exit 2   a connector.json that breaks the schema, with file and field
│   └── StateError              exit 2   a file or database of the home that cannot be read or is too new
│       └── DamagedRunError     exit 2   a run whose journal cannot be read; carries the run and the event
├── NoPoolError                 exit 1   no pool can take the task; carries each pool's reason
├── StorageError                exit 1   the disk refused a write (full, read-only); what was there is unchanged
├── LockTimeoutError            exit 1   another process held a lock for too long
├── MeterError                  exit 1   a usage reading that could not be had
├── ModelListError              exit 1   an agent CLI that gave no list of its models
├── RunConflictError            exit 1   another run works in the same tree, or drives the same run
├── NothingToRetryError         exit 1   a finished run of which no step can be tried again
└── WorkerStartError            exit 1   an agent CLI that could not be started

A message names what was wrong, the value, and what to do next.
"""

from __future__ import annotations


class BullswarmError(Exception):
    """Base of every error a person or an agent is meant to read."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} · {self.hint}" if self.hint else self.message


class UsageError(BullswarmError):
    """The call itself was wrong; nothing was changed and nothing was started."""

    exit_code = 2


class UnknownNameError(UsageError):
    """A name that stands for nothing here."""


class ConnectorError(UsageError):
    """A connector that breaks the schema; the message names the file, the field and the value."""


class StateError(UsageError):
    """State of the home that cannot be read, is damaged, or was written by a newer program."""


class DamagedRunError(StateError):
    """A run whose journal cannot be read.

    ``run`` is its id and ``event`` the number of the damaged event; None where the reader of a part does not know it, or
    where every event has its form and they contradict each other.
    """

    def __init__(
        self, message: str, *, run: str | None = None, event: int | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.run = run
        self.event = event


class NoPoolError(BullswarmError):
    """No pool can take the task."""


class StorageError(BullswarmError):
    """A write that the disk refused; what was there before is unchanged."""


class LockTimeoutError(BullswarmError):
    """A lock that another process held for longer than the caller could wait."""


class MeterError(BullswarmError):
    """A usage reading that could not be had.

    ``kind`` is ``sign-in`` (no usable token: open the CLI), ``refused`` (the vendor said no), ``limited`` (asked too
    often), ``unreachable``, ``unreadable`` (an answer that makes no sense) or ``unsupported``. ``retry_after_sec`` is how
    long the vendor asked us to wait; None where it named no time.
    """

    def __init__(
        self, message: str, *, kind: str = "unreadable", retry_after_sec: float | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.kind = kind
        self.retry_after_sec = retry_after_sec


class ModelListError(BullswarmError):
    """An agent CLI that gave no list of its models."""


class RunConflictError(BullswarmError):
    """Work that would collide with work already in flight."""


class NothingToRetryError(BullswarmError):
    """A finished run of which no step can be tried again."""


class WorkerStartError(BullswarmError):
    """An agent CLI that could not be started."""
