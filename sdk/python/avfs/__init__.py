"""Versioned workspaces for coding agents: a client of the program avfs.

``Avfs`` is for threads, ``AsyncAvfs`` for asyncio; both have the same methods.
"""

from ._async import AsyncApprovals, AsyncAudit, AsyncAvfs, AsyncCheckpoints, AsyncFork, AsyncStream, AsyncVault
from ._errors import (
    ApprovalRequired,
    AvfsError,
    BinaryNotFound,
    CallTimeout,
    CommandFailed,
    Conflict,
    Damaged,
    Denied,
    ExecError,
    FailedToStart,
    Interrupted,
    Locked,
    NoSpace,
    NotFound,
    NotStore,
    ProtocolError,
    TimedOut,
    Usage,
)
from ._result import ExecResult, output_bytes, path_bytes
from ._sync import Approvals, Audit, Avfs, Checkpoints, Fork, Stream, Vault
from . import _types as types

__version__ = "0.1.0"

__all__ = [
    "ApprovalRequired",
    "Approvals",
    "AsyncApprovals",
    "AsyncAudit",
    "AsyncAvfs",
    "AsyncCheckpoints",
    "AsyncFork",
    "AsyncStream",
    "AsyncVault",
    "Audit",
    "Avfs",
    "AvfsError",
    "BinaryNotFound",
    "CallTimeout",
    "Checkpoints",
    "CommandFailed",
    "Conflict",
    "Damaged",
    "Denied",
    "ExecError",
    "ExecResult",
    "FailedToStart",
    "Fork",
    "Interrupted",
    "Locked",
    "NoSpace",
    "NotFound",
    "NotStore",
    "ProtocolError",
    "Stream",
    "TimedOut",
    "Usage",
    "Vault",
    "output_bytes",
    "path_bytes",
    "types",
]
