"""The errors of avfs as classes, one for each group of kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping

from ._kinds import EXIT_CODES

if TYPE_CHECKING:
    from ._result import ExecResult


class AvfsError(Exception):
    """A failure that avfs reports.

    ``kind`` is stable between versions, ``message`` is for people. A kind that this
    package does not know has the class of its exit code, or this one.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        hint: str | None = None,
        details: Mapping[str, Any] | None = None,
        exit_code: int | None = None,
        result: ExecResult | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        #: What to do about it, where something can be done.
        self.hint = hint
        #: The other fields of the failure.
        self.details: dict[str, Any] = dict(details or {})
        self.exit_code = EXIT_CODES.get(kind, 1) if exit_code is None else exit_code
        #: The execution that failed, where it is one.
        self.result = result

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}" + (f" ({self.hint})" if self.hint else "")

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.kind, self.message, self.hint, self.details, self.exit_code, self.result)


def _restore(
    cls: type[AvfsError], kind: str, message: str, hint: str | None, details: dict[str, Any], code: int, result: ExecResult | None
) -> AvfsError:
    return cls(kind, message, hint=hint, details=details, exit_code=code, result=result)


class Usage(AvfsError):
    """The call makes no sense: exit code 2."""


class NotFound(AvfsError):
    """A vault, path, checkpoint, event or the like is not there: exit code 3."""


class Conflict(AvfsError):
    """Something is in the way: it exists, is busy, has changed, or conflicts: exit code 4."""

    @property
    def conflicts(self) -> list[dict[str, Any]]:
        """The conflicts of a merge."""
        found = self.details.get("conflicts", [])
        return found if isinstance(found, list) else []


class NoSpace(AvfsError):
    """The disk is full, or a quota or a limit of sizes is reached: exit code 5."""


class Damaged(AvfsError):
    """Data are damaged: exit code 6."""


class Locked(AvfsError):
    """Another process has the store open: exit code 7."""


class NotStore(AvfsError):
    """A file is no store of avfs: exit code 8."""


class Interrupted(AvfsError):
    """A signal ended the call: exit code 130."""


class CallTimeout(AvfsError, TimeoutError):
    """The call took longer than the client's ``timeout``, and was ended."""


class BinaryNotFound(AvfsError):
    """The program avfs cannot be started."""


class ProtocolError(AvfsError):
    """The program printed what is no document of avfs."""


class ExecError(AvfsError):
    """A command did not do what was asked; ``result`` says how it ended."""


class Denied(ExecError):
    """The policy denies the command; nothing ran."""


class ApprovalRequired(ExecError):
    """The policy wants approval first; nothing ran."""

    @property
    def approval_id(self) -> str | None:
        """What to give to ``approvals.approve``."""
        approval = self.result.envelope.get("approval") if self.result else None
        return approval["id"] if approval else None


class TimedOut(ExecError):
    """The command took longer than it may and was ended."""


class FailedToStart(ExecError):
    """The program is not there or cannot be executed."""


class CommandFailed(ExecError):
    """The command ended with an exit code other than 0, or by a signal."""


_BY_CODE: dict[int, type[AvfsError]] = {
    2: Usage,
    3: NotFound,
    4: Conflict,
    5: NoSpace,
    6: Damaged,
    7: Locked,
    8: NotStore,
    130: Interrupted,
}


def error_of(fault: Mapping[str, Any], exit_code: int | None = None, result: ExecResult | None = None) -> AvfsError:
    """The error of a failure's document."""
    kind = str(fault["error"])
    known = EXIT_CODES.get(kind)
    cls = _BY_CODE.get(known if known is not None else (exit_code or 1), AvfsError)
    details = {k: v for k, v in fault.items() if k not in ("error", "message", "hint")}
    hint = fault.get("hint")
    return cls(
        kind,
        str(fault.get("message", "")),
        hint=str(hint) if hint is not None else None,
        details=details,
        exit_code=known if known is not None else exit_code,
        result=result,
    )
