"""What an execution gave."""

from __future__ import annotations

import base64
from typing import Any, Mapping

from ._errors import ApprovalRequired, AvfsError, CommandFailed, Denied, ExecError, FailedToStart, Interrupted, TimedOut, error_of
from ._types import Envelope, ExecEvent, FileChange

_BY_STATUS: dict[str, type[AvfsError]] = {
    "denied": Denied,
    "approval_required": ApprovalRequired,
    "timed_out": TimedOut,
    "failed_to_start": FailedToStart,
    "interrupted": Interrupted,
}

_KINDS = {"denied": "Denied", "approval_required": "ApprovalRequired", "timed_out": "TimedOut", "interrupted": "Interrupted"}


class ExecResult:
    """How a command went: its envelope, with the fields that matter most at hand."""

    def __init__(self, envelope: Envelope) -> None:
        self.envelope = envelope

    def __repr__(self) -> str:
        return f"<ExecResult {self.id} {self.status} exit_code={self.exit_code} changed={self.changed_total}>"

    @property
    def id(self) -> str:
        """The id of the execution, for ``output``, ``undo`` and the audit."""
        return self.envelope["id"]

    @property
    def status(self) -> str:
        """One of completed, timed_out, interrupted, running, denied, approval_required, failed_to_start and others to come."""
        return self.envelope["status"]

    @property
    def exit_code(self) -> int | None:
        return self.envelope["exit_code"]

    @property
    def ok(self) -> bool:
        """The command ran and ended with 0, or is a service that runs, or was only judged and may run."""
        if self.envelope.get("dry_run") or self.status == "running":
            return self.status in ("completed", "running")
        return self.status == "completed" and self.exit_code == 0

    @property
    def stdout(self) -> str:
        """The beginning and the end of what it printed; ``output`` gives all of it."""
        return self.envelope["stdout"]

    @property
    def stderr(self) -> str:
        return self.envelope["stderr"]

    @property
    def stdout_data(self) -> bytes:
        """``stdout`` byte for byte."""
        return _data(self.envelope, "stdout")

    @property
    def stderr_data(self) -> bytes:
        return _data(self.envelope, "stderr")

    @property
    def changed_files(self) -> list[FileChange]:
        return self.envelope["changed_files"]

    @property
    def changed_total(self) -> int:
        """How many files changed, also those beyond ``changed_files``."""
        return self.envelope["changed_total"]

    @property
    def checkpoint(self) -> str | None:
        """The state before, where it was kept."""
        return self.envelope["checkpoint"] or None

    @property
    def approval_id(self) -> str | None:
        """The approval that the command waits for or has used."""
        approval = self.envelope.get("approval")
        return approval["id"] if approval else None

    def error(self) -> AvfsError | None:
        """Why the command did not do what was asked; None where it did."""
        fault = self.envelope.get("error")
        if self.status == "error":
            return error_of(fault or {"error": "Internal", "message": "avfs failed"}, 125, self)
        if self.ok:
            return None
        cls = _BY_STATUS.get(self.status, CommandFailed)
        return cls(_KINDS.get(self.status, cls.__name__), self._why(), exit_code=_exit_code(self), result=self)

    def check(self) -> ExecResult:
        """Raise the error of the command, if there is one."""
        err = self.error()
        if err is not None:
            raise err
        return self

    def _why(self) -> str:
        if self.status in ("denied", "approval_required"):
            return f"{self.envelope['decision']['reason']} (rule {self.envelope['decision']['rule']})"
        fault = self.envelope.get("error")
        if fault:
            return fault["message"]
        if self.status != "completed":
            return f"the command {self.status.replace('_', ' ')}"
        tail = self.stderr.strip().rpartition("\n")[2]
        return f"the command ended with exit code {self.exit_code}" + (f": {tail}" if tail else "")


def _exit_code(r: ExecResult) -> int:
    fixed = {"denied": 77, "approval_required": 78, "timed_out": 124}.get(r.status)
    if fixed is not None:
        return fixed
    return r.exit_code if r.exit_code is not None else 1


def _data(doc: Mapping[str, Any], stream: str) -> bytes:
    exact = doc.get(stream + "_base64")
    return base64.b64decode(exact) if exact is not None else str(doc[stream]).encode()


def output_bytes(event: ExecEvent) -> bytes:
    """What an event of the kinds stdout, stderr and combined says was printed."""
    if "base64" in event:
        return base64.b64decode(event["base64"])
    return event.get("text", "").encode()


def path_bytes(doc: Mapping[str, Any] | str, field: str = "path") -> bytes:
    """The exact bytes of a path, or of another name, in a document, or of one of a plain list of paths."""
    if isinstance(doc, str):
        return doc.encode()
    if "b64" in doc:
        return base64.b64decode(doc["b64"])
    exact = doc.get(field + "_b64")
    return base64.b64decode(exact) if exact is not None else str(doc[field]).encode()


def result_of(envelope: Envelope, check: bool) -> ExecResult:
    """The result of an execution. A failure of avfs itself is raised in any case."""
    r = ExecResult(envelope)
    if check or r.status == "error":
        r.check()
    return r


__all__ = ["ExecResult", "ExecError", "output_bytes", "path_bytes"]
