"""Command lines for avfs, and what comes back from them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict, Union

from ._errors import AvfsError, ProtocolError, error_of

#: A path, in a vault or on the host. One that is no UTF-8 is given as bytes.
Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]

#: A value of a flag: none of None and False is a flag, True one without a value, a list one for each.
Flag = Union[None, bool, int, float, Path, Sequence[Union[int, float, Path]]]



class ExecOptions(TypedDict, total=False):
    """Flags of ``avfs exec``, which its help explains."""

    approval: str
    changes: int
    checkpoint: str
    combined: bool
    cpu: float
    driver: str
    dry_run: bool
    env_file: Path | Sequence[Path]
    file_size: str
    fork: str
    keep_running: bool | str
    memory: str
    no_wait: bool
    pids: int
    readonly: bool
    session: str



def flags_of(options: ExecOptions) -> dict[str, Flag]:
    """Options as flags."""
    return dict(options)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Settings:
    """How the program is called."""

    binary: str
    env: Mapping[str, str] = field(default_factory=dict)  # beside the variables of this process
    cwd: Path | None = None
    timeout: float | None = None  # seconds, of one call
    grace: float = 5.0  # seconds between SIGINT and SIGKILL

    def environ(self) -> dict[str, str]:
        return {**os.environ, **self.env}

    def changed(self, **values: Any) -> Settings:
        return replace(self, **values)


@dataclass(frozen=True)
class Finished:
    """The end of a process."""

    code: int
    stdout: bytes
    stderr: bytes


def command_line(
    settings: Settings,
    command: Sequence[str],
    flags: Mapping[str, Flag] | None = None,
    args: Iterable[Path] = (),
    *,
    vault: str | None = None,
    mode: str | None = "--json",
) -> list[bytes]:
    """The arguments of a call. No value can be taken for a flag: those of flags are
    joined to them, and all others stand behind ``--``."""
    line = [os.fsencode(settings.binary)]
    if vault is not None:
        line.append(b"--vault=" + os.fsencode(vault))
    if mode:
        line.append(mode.encode())
    line += [c.encode() for c in command]
    for name, value in (flags or {}).items():
        line += _flag(name, value)
    rest = [os.fsencode(a) for a in args]
    if rest:
        line += [b"--", *rest]
    return line


def _flag(name: str, value: Flag) -> list[bytes]:
    text = b"--" + name.replace("_", "-").encode()
    if value is None or value is False:
        return []
    if value is True:
        return [text]
    if isinstance(value, (list, tuple)):
        return [text + b"=" + _value(v) for v in value]
    return [text + b"=" + _value(value)]  # type: ignore[arg-type]


def _value(value: int | float | Path) -> bytes:
    if isinstance(value, (int, float)):
        return str(value).encode()
    return os.fsencode(value)


def duration(seconds: float | None) -> str | None:
    """A time for the command line."""
    if seconds is None:
        return None
    if seconds < 0:
        raise ValueError("a time is 0 or more")
    return "0" if seconds == 0 else f"{max(1, round(seconds * 1000))}ms"


def check_name(name: object) -> None:
    """Refuse what is no name of a vault: to avfs, none is the current vault."""
    if not isinstance(name, str):
        raise TypeError(f"the name of a vault is a str, not {type(name).__name__}")
    if not name:
        raise ValueError("the name of a vault is empty")


def past(path: Path, at: str | None) -> bytes:
    """A path in another state. An @ in a name never names a state."""
    raw = os.fsencode(path)
    if at is not None:
        return raw + b"@" + os.fsencode(at)
    return raw + b"@now" if b"@" in raw else raw


def as_list(one_or_more: Path | Iterable[Path]) -> list[Path]:
    """One path or several as a list."""
    if isinstance(one_or_more, (str, bytes, os.PathLike)):
        return [one_or_more]
    return list(one_or_more)


def document(end: Finished) -> Any:
    """The document that a call printed, or its failure as an exception."""
    try:
        doc = json.loads(end.stdout)
    except ValueError:
        raise broken(end) from None
    if end.code != 0 and _is_fault(doc):
        raise error_of(doc, end.code)
    return doc


def succeeded(end: Finished) -> None:
    """Raise the failure of a call that prints no document, where it failed."""
    if end.code == 0:
        return
    last = end.stderr.rstrip(b"\n").rpartition(b"\n")[2]
    try:
        doc = json.loads(last)
    except ValueError:
        raise broken(end) from None
    raise error_of(doc, end.code) if _is_fault(doc) else broken(end)


def _is_fault(doc: Any) -> bool:
    return isinstance(doc, dict) and isinstance(doc.get("error"), str) and "message" in doc


def broken(end: Finished) -> AvfsError:
    """What to say of a program that does not keep to its contract."""
    said = end.stderr[-2000:].decode(errors="replace").strip()
    how = f"was ended by signal {-end.code}" if end.code < 0 else f"ended with exit code {end.code}"
    return ProtocolError("ProtocolError", f"avfs {how} and printed no document" + (f": {said}" if said else ""), exit_code=1)
