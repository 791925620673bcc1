# Generated from the contract of avfs by "make sdk-types". Do not edit.
"""What the commands of avfs print with --json.

A document may have more fields than its type: later versions add some.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

__all__ = [
    "Api",
    "ApplyChange",
    "ApplyReport",
    "Approval",
    "ApprovalState",
    "AuditEntry",
    "AuditFinding",
    "AuditHead",
    "AuditReport",
    "BackupResult",
    "Blame",
    "CheckFinding",
    "CheckReport",
    "Checked",
    "Checkpoint",
    "Command",
    "CompactResult",
    "Content",
    "Decision",
    "DeleteResult",
    "Diff",
    "DiscardResult",
    "Doctor",
    "Driver",
    "EditResult",
    "Entry",
    "Envelope",
    "Event",
    "ExecCommand",
    "ExecEvent",
    "Failure",
    "Fanout",
    "FanoutGroup",
    "FanoutRun",
    "Fault",
    "FileChange",
    "FileStat",
    "Fuse",
    "GCReport",
    "GrepFile",
    "GrepMatch",
    "ImportResult",
    "Init",
    "Isolation",
    "KeptOutput",
    "LeftOut",
    "Limits",
    "LogEntry",
    "Mcp",
    "MergeConflict",
    "MergeResult",
    "MergeVersion",
    "Meta",
    "MigrateResult",
    "MountInfo",
    "Output",
    "PathBytes",
    "PathEvent",
    "PathLogEntry",
    "PathUsage",
    "PathsResult",
    "PolicyFinding",
    "PolicyTestResult",
    "Port",
    "Process",
    "PruneReport",
    "Quota",
    "RepairAction",
    "RepairReport",
    "RestoreResult",
    "Retention",
    "Schema",
    "SearchHit",
    "SearchLine",
    "SearchResult",
    "Segment",
    "Service",
    "ServiceInfo",
    "ServiceStarted",
    "Session",
    "Skip",
    "Span",
    "Stats",
    "Stop",
    "StreamOutput",
    "TagCount",
    "TaggedPath",
    "Text",
    "TransferReport",
    "UndoResult",
    "VaultInfo",
    "Version",
    "WriteResult",
]


class Api(TypedDict):
    """In the documents of: serve."""

    listen: str
    url: str
    token_file: NotRequired[str]
    pid: int


class ApplyChange(TypedDict):
    """In the documents of: apply."""

    path: str
    path_b64: NotRequired[str]
    action: str


class ApplyReport(TypedDict):
    """In the documents of: apply."""

    changes: list[ApplyChange]
    kept: list[ApplyChange]
    skipped: NotRequired[list[Skip]]
    dry_run: NotRequired[bool]


class Approval(TypedDict):
    """In the documents of: approvals list, approvals show, approvals approve, approvals deny."""

    id: str
    state: str
    vault: str
    vault_id: NotRequired[int]
    fork: NotRequired[str]
    forks: NotRequired[int]
    argv: NotRequired[list[str]]
    shell: NotRequired[str]
    cwd: str
    env: NotRequired[list[str]]
    policy: str
    rule: str
    reason: str
    binding: str
    exec_id: str
    uid: int
    created_at: str
    expires_at: str
    decided_at: NotRequired[str | None]
    by: NotRequired[str]
    message: NotRequired[str]
    used_by: NotRequired[str]


class ApprovalState(TypedDict):
    """In the documents of: exec events, fanout, exec, proxy exec and others."""

    id: str
    state: str
    expires_at: str
    by: NotRequired[str]
    message: NotRequired[str]


class AuditEntry(TypedDict):
    """In the documents of: audit list."""

    seq: int
    at: str
    kind: str
    vault: str
    vault_id: NotRequired[int]
    subject: NotRequired[str]
    exec_id: NotRequired[str]
    argv: NotRequired[list[str]]
    shell: NotRequired[str]
    cwd: NotRequired[str]
    action: str
    rule: str
    policy: NotRequired[str]
    status: str
    exit_code: NotRequired[int | None]
    duration_ms: int
    root_before: NotRequired[str]
    root_after: NotRequired[str]
    event: NotRequired[int]
    error: NotRequired[str]
    approval: NotRequired[str]
    by: NotRequired[str]
    uid: int
    pid: NotRequired[int]
    user: NotRequired[str]
    from_exec: NotRequired[str]
    prev: NotRequired[str]
    hash: NotRequired[str]


class AuditFinding(TypedDict):
    """In the documents of: audit verify."""

    seq: int
    problem: str


class AuditHead(TypedDict):
    """In the documents of: audit verify, audit head."""

    seq: int
    hash: str


class AuditReport(TypedDict):
    """In the documents of: audit verify."""

    head: AuditHead
    entries: int
    findings: list[AuditFinding]


class BackupResult(TypedDict):
    """In the documents of: vault backup."""

    dest: str
    backend: str
    vaults: list[str]
    bytes: int


class Blame(TypedDict):
    """In the documents of: blame-exec."""

    path: str
    path_b64: NotRequired[str]
    event: PathEvent | None
    unrecorded: bool
    origin: NotRequired[str]
    parent: NotRequired[str]


class CheckFinding(TypedDict):
    """In the documents of: fsck."""

    problem: str
    owners: list[str]
    paths: NotRequired[list[str]]


class CheckReport(TypedDict):
    """In the documents of: fsck."""

    findings: list[CheckFinding]
    roots: int
    nodes: int
    chunks: int
    inodes: int


class Checked(TypedDict):
    """In the documents of: doctor."""

    name: str
    status: str
    message: str
    fix: NotRequired[str]


class Checkpoint(TypedDict):
    """In the documents of: checkpoint save, checkpoint list, checkpoint delete, checkpoint info."""

    id: str
    vault_id: int
    name: NotRequired[str]
    message: NotRequired[str]
    auto: bool
    at: str
    root: str
    files: int
    bytes: int
    seq: NotRequired[int]


class Command(TypedDict):
    """In the documents of: exec events, fanout, exec, proxy exec and others."""

    argv: NotRequired[list[str]]
    shell: NotRequired[str]
    cwd: str


class CompactResult(TypedDict):
    """In the documents of: compact."""

    reclaimed_bytes: int


class Content(TypedDict):
    """In the documents of: cat."""

    path: str
    path_b64: NotRequired[str]
    text: NotRequired[str | None]
    base64: NotRequired[str | None]


class Decision(TypedDict):
    """In the documents of: exec events, fanout, exec, proxy exec and others."""

    action: str
    rule: str
    reason: str
    token: NotRequired[str]
    segments: list[Segment]


class DeleteResult(TypedDict):
    """In the documents of: vault delete."""

    deleted: str
    left: list[str]


class Diff(TypedDict):
    """In the documents of: checkpoint diff, diff."""

    changes: list[FileChange]
    total: int
    files: NotRequired[list[FileStat]]
    left_out: NotRequired[list[LeftOut]]
    patch: NotRequired[str | None]
    patch_b64: NotRequired[str | None]


class DiscardResult(TypedDict):
    """In the documents of: vault discard."""

    deleted: str
    left: list[str]
    unmerged: list[FileChange]
    unmerged_total: int
    merged_into: NotRequired[str]
    dry_run: NotRequired[bool]


class Doctor(TypedDict):
    """In the documents of: doctor."""

    ok: bool
    version: str
    os: str
    arch: str
    checks: list[Checked]


class Driver(TypedDict):
    """In the documents of: version."""

    driver: str
    available: bool
    reason: NotRequired[str]


class EditResult(TypedDict):
    """In the documents of: edit."""

    path: str
    path_b64: NotRequired[str]
    replaced: int
    line: int
    size_before: int
    size_after: int


class Entry(TypedDict):
    """In the documents of: ls, stat, tree, find."""

    name: str
    name_b64: NotRequired[str]
    path: str
    path_b64: NotRequired[str]
    type: str
    mode: str
    size: int
    blocks: int
    uid: int
    gid: int
    nlink: int
    ino: int
    mtime: str
    ctime: str
    btime: str
    target: NotRequired[str]
    depth: NotRequired[int | None]


class Envelope(TypedDict):
    """In the documents of: exec events, fanout, exec, proxy exec and others."""

    schema: str
    id: str
    vault: str
    status: str
    dry_run: NotRequired[bool]
    command: Command
    decision: Decision
    approval: NotRequired[ApprovalState | None]
    checkpoint: str
    exit_code: int | None
    signal: str | None
    stdout: str
    stderr: str
    output: NotRequired[str]
    stdout_bytes: int
    stderr_bytes: int
    output_bytes: NotRequired[int]
    stdout_truncated: bool
    stderr_truncated: bool
    output_truncated: bool
    stdout_base64: NotRequired[str]
    stderr_base64: NotRequired[str]
    output_base64: NotRequired[str]
    service: NotRequired[ServiceStarted | None]
    output_kept: NotRequired[KeptOutput | None]
    duration_ms: int
    timed_out: bool
    changed_files: list[FileChange]
    changed_total: int
    root_before: str
    root_after: str
    limits_hit: list[str]
    ended_processes: list[Process]
    leaked_processes: list[Process]
    isolation: Isolation
    notes: NotRequired[list[str]]
    error: NotRequired[Fault | None]


class Event(TypedDict):
    """In the documents of: undo, redo, revert."""

    seq: int
    vault_id: int
    cause: str
    id: NotRequired[str]
    command: NotRequired[list[str]]
    at: str
    before: str
    after: str
    mountpoint: NotRequired[str]
    undoes: NotRequired[int]
    through: NotRequired[int]
    paths: NotRequired[list[str | PathBytes]]
    partly: NotRequired[bool]
    source: NotRequired[str]
    source_root: NotRequired[str]


class ExecCommand(TypedDict):
    """In the documents of: services list, services stop."""

    pid: int
    start: NotRequired[int]
    cgroup: NotRequired[str]


class ExecEvent(TypedDict):
    """In the documents of: exec events."""

    event: str
    exec_id: str
    at: str
    vault: NotRequired[str]
    pid: NotRequired[int]
    text: NotRequired[str]
    base64: NotRequired[str]
    change: NotRequired[FileChange | None]
    envelope: NotRequired[Envelope | None]


class Failure(TypedDict):
    """In the documents of: policy test."""

    line: int
    want: str
    kind: NotRequired[str]
    shell: NotRequired[str]
    argv: NotRequired[list[str]]
    cwd: NotRequired[str]
    got: str
    rule: str
    reason: str


class Fanout(TypedDict):
    """In the documents of: fanout."""

    schema: str
    vault: str
    runs: list[FanoutRun]
    groups: list[FanoutGroup]
    kept: int | None
    refused: NotRequired[Envelope | None]
    problems: list[str]
    stopped: bool
    duration_ms: int


class FanoutGroup(TypedDict):
    """In the documents of: fanout."""

    indexes: list[int]
    exit_code: int | None
    changed_total: int


class FanoutRun(TypedDict):
    """In the documents of: fanout."""

    index: int
    vault: str
    status: str
    exit_code: int | None
    duration_ms: int
    changed_total: int
    group: int
    dropped: bool
    envelope: Envelope | None


class Fault(TypedDict):
    """In the documents of: error, exec events, fanout, exec and others."""

    error: str
    hint: NotRequired[str]
    message: str


class FileChange(TypedDict):
    """In the documents of: exec events, vault merge, vault discard, checkpoint restore and others."""

    path: str
    path_b64: NotRequired[str]
    kind: str
    type: str
    old_path: NotRequired[str]
    old_path_b64: NotRequired[str]
    size_before: NotRequired[int | None]
    size_after: NotRequired[int | None]
    mode_before: NotRequired[str]
    mode_after: NotRequired[str]


class FileStat(TypedDict):
    """In the documents of: checkpoint diff, diff."""

    path: str
    path_b64: NotRequired[str]
    added: int
    deleted: int
    binary: NotRequired[bool]
    coarse: NotRequired[bool]


class Fuse(TypedDict):
    """In the documents of: version."""

    driver: str
    available: bool
    reason: NotRequired[str]
    drivers: list[Driver]


class GCReport(TypedDict):
    """In the documents of: gc, fsck."""

    nodes: int
    chunks: int
    rows: int
    live_nodes: int
    live_chunks: int
    reclaimed_bytes: int
    no_room: NotRequired[bool]


class GrepFile(TypedDict):
    """In the documents of: grep."""

    path: str
    path_b64: NotRequired[str]
    lines: int


class GrepMatch(TypedDict):
    """In the documents of: grep."""

    path: str
    path_b64: NotRequired[str]
    line: int
    text: str
    context: NotRequired[bool]


class ImportResult(TypedDict):
    """In the documents of: import."""

    files: int
    dirs: int
    symlinks: int
    others: int
    hard_links: int
    bytes: int
    unchanged: NotRequired[int]
    skipped: NotRequired[list[Skip]]
    skipped_total: int
    dropped_xattrs: NotRequired[dict[str, int]]
    event: NotRequired[int]


class Init(TypedDict):
    """In the documents of: policy init."""

    path: str


class Isolation(TypedDict):
    """In the documents of: exec events, fanout, exec, proxy exec and others."""

    boundary: str
    applied: list[str]
    not_applied: list[str]


class KeptOutput(TypedDict):
    """In the documents of: exec events, fanout, exec, proxy exec and others."""

    streams: list[StreamOutput]
    cut: NotRequired[str]


class LeftOut(TypedDict):
    """In the documents of: checkpoint diff, diff."""

    path: str
    path_b64: NotRequired[str]
    what: str


class Limits(TypedDict):
    """In the documents of: quota show, quota set."""

    max_size_mb: float | None
    max_bytes: int | None
    max_files: int | None
    max_file_size_mb: float | None
    max_file_bytes: int | None


class LogEntry(TypedDict):
    """In the documents of: log."""

    seq: int
    vault_id: int
    cause: str
    id: NotRequired[str]
    command: NotRequired[list[str]]
    at: str
    before: str
    after: str
    mountpoint: NotRequired[str]
    undoes: NotRequired[int]
    through: NotRequired[int]
    paths: NotRequired[list[str | PathBytes]]
    partly: NotRequired[bool]
    source: NotRequired[str]
    source_root: NotRequired[str]
    changed: bool
    undone: bool


class Mcp(TypedDict):
    """In the documents of: mcp."""

    url: str
    socket: NotRequired[str]
    token_file: NotRequired[str]


class MergeConflict(TypedDict):
    """In the documents of: vault merge."""

    path: str
    path_b64: NotRequired[str]
    kind: str
    base: NotRequired[MergeVersion | None]
    ours: NotRequired[MergeVersion | None]
    theirs: NotRequired[MergeVersion | None]
    names: NotRequired[list[str]]
    resolved: NotRequired[str]


class MergeResult(TypedDict):
    """In the documents of: vault merge."""

    source: str
    into: str
    base: str
    source_root: str
    changed: int
    changes: list[FileChange]
    merged_texts: int
    conflicts: list[MergeConflict]
    resolved: list[MergeConflict]
    undo_checkpoint: NotRequired[str]
    root: str
    event: NotRequired[int]
    dry_run: NotRequired[bool]


class MergeVersion(TypedDict):
    """In the documents of: vault merge."""

    path: str
    path_b64: NotRequired[str]
    type: str
    mode: str
    size: NotRequired[int | None]


class Meta(TypedDict):
    """In the documents of: meta."""

    path: str
    path_b64: NotRequired[str]
    tags: list[str]
    meta: dict[str, str]


# In the documents of: vault migrate.
MigrateResult = TypedDict(
    "MigrateResult",
    {
        "store": "str",
        "from": "str",
        "to": "str",
        "bytes_before": "int",
        "bytes_after": "int",
    },
)


class MountInfo(TypedDict):
    """In the documents of: vault create, vault list, vault use, vault info and others."""

    session: str
    vault: str
    mountpoint: str
    read_only: bool
    driver: str
    implicit: bool
    since: NotRequired[str]
    pid: NotRequired[int]


# In the documents of: output, services logs.
Output = TypedDict(
    "Output",
    {
        "exec_id": "str",
        "vault": "str",
        "at": "str",
        "streams": "list[StreamOutput]",
        "ended": "bool",
        "cut": "NotRequired[str]",
        "stream": "str",
        "bytes": "int",
        "kept": "int",
        "from": "int",
        "to": "int",
        "text": "NotRequired[str | None]",
        "base64": "NotRequired[str | None]",
    },
)


class PathBytes(TypedDict):
    """In the documents of: mkdir, rm, cp, mv and others."""

    b64: str


class PathEvent(TypedDict):
    """In the documents of: blame-exec."""

    seq: int
    vault_id: int
    cause: str
    id: NotRequired[str]
    command: NotRequired[list[str]]
    at: str
    before: str
    after: str
    mountpoint: NotRequired[str]
    undoes: NotRequired[int]
    through: NotRequired[int]
    paths: NotRequired[list[str | PathBytes]]
    partly: NotRequired[bool]
    source: NotRequired[str]
    source_root: NotRequired[str]
    path: str
    path_b64: NotRequired[str]
    changes: list[FileChange]
    total: int


class PathLogEntry(TypedDict):
    """In the documents of: log."""

    seq: int
    vault_id: int
    cause: str
    id: NotRequired[str]
    command: NotRequired[list[str]]
    at: str
    before: str
    after: str
    mountpoint: NotRequired[str]
    undoes: NotRequired[int]
    through: NotRequired[int]
    paths: NotRequired[list[str | PathBytes]]
    partly: NotRequired[bool]
    source: NotRequired[str]
    source_root: NotRequired[str]
    path: str
    path_b64: NotRequired[str]
    changes: list[FileChange]
    total: int
    changed: bool


class PathUsage(TypedDict):
    """In the documents of: du."""

    path: str
    path_b64: NotRequired[str]
    bytes: int
    size: int
    files: int
    depth: int


class PathsResult(TypedDict):
    """In the documents of: mkdir, rm, cp, mv and others."""

    paths: list[str | PathBytes]


class PolicyFinding(TypedDict):
    """In the documents of: policy lint."""

    kind: str
    rule: str
    line: int
    message: str


class PolicyTestResult(TypedDict):
    """In the documents of: policy test."""

    cases: int
    harmless: int
    dangerous: int
    failures: list[Failure]
    false_alarms: int
    missed: int
    false_alarm_percent: float
    ok: bool


class Port(TypedDict):
    """In the documents of: services list."""

    port: int
    address: str
    pid: int


class Process(TypedDict):
    """In the documents of: exec events, fanout, exec, proxy exec and others."""

    pid: int
    command: str


class PruneReport(TypedDict):
    """In the documents of: prune."""

    rule: Retention
    dry_run: bool
    events: int
    checkpoints: int
    kept_events: int
    kept_checkpoints: int
    outputs: int
    kept_outputs: int
    kept_bytes: int


class Quota(TypedDict):
    """In the documents of: quota show, quota set."""

    vault: str
    used_bytes: int
    files: int
    unlinked_bytes: int
    unlinked_files: int
    limits: Limits


class RepairAction(TypedDict):
    """In the documents of: fsck."""

    problem: str
    action: str


class RepairReport(TypedDict):
    """In the documents of: fsck."""

    repaired: list[RepairAction]
    findings: list[CheckFinding]
    roots: int
    nodes: int
    chunks: int
    inodes: int
    collected: NotRequired[GCReport | None]


class RestoreResult(TypedDict):
    """In the documents of: checkpoint restore, checkout."""

    changed: int
    changes: list[FileChange]
    undo_checkpoint: NotRequired[str]
    root: str
    event: NotRequired[int]
    preview: NotRequired[bool]
    drift: NotRequired[list[str | PathBytes]]


class Retention(TypedDict):
    """In the documents of: prune."""

    last: int
    hours: int
    days: int
    bytes: int


class Schema(TypedDict):
    """In the documents of: schema."""

    name: str


class SearchHit(TypedDict):
    """In the documents of: search."""

    path: str
    path_b64: NotRequired[str]
    score: float
    lines: list[SearchLine]


class SearchLine(TypedDict):
    """In the documents of: search."""

    line: int
    text: str
    spans: list[Span]


class SearchResult(TypedDict):
    """In the documents of: search."""

    query: str
    files: list[SearchHit]
    more: bool
    note: NotRequired[str]


class Segment(TypedDict):
    """In the documents of: exec events, fanout, exec, proxy exec and others."""

    text: str
    argv: list[str]
    via: NotRequired[str]
    action: str
    rule: str
    reason: str
    token: NotRequired[str]


class Service(TypedDict):
    """In the documents of: services stop."""

    name: str
    vault: str
    state: str
    exec_id: str
    command: list[str]
    pid: int
    process: NotRequired[ExecCommand | None]
    started_at: str
    ended_at: NotRequired[str | None]
    status: NotRequired[str]
    exit_code: NotRequired[int | None]


class ServiceInfo(TypedDict):
    """In the documents of: services list."""

    name: str
    vault: str
    state: str
    exec_id: str
    command: list[str]
    pid: int
    process: NotRequired[ExecCommand | None]
    started_at: str
    ended_at: NotRequired[str | None]
    status: NotRequired[str]
    exit_code: NotRequired[int | None]
    ports: list[Port]


class ServiceStarted(TypedDict):
    """In the documents of: exec events, fanout, exec, proxy exec and others."""

    name: str
    pid: int


class Session(TypedDict):
    """In the documents of: sessions list, sessions show, sessions delete."""

    name: str
    vault: str
    cwd: str
    env: dict[str, str]
    unset: list[str]
    exec_id: NotRequired[str]
    updated_at: str


class Skip(TypedDict):
    """In the documents of: import, export, apply."""

    path: str
    path_b64: NotRequired[str]
    error: str
    message: str
    note: NotRequired[bool]


# In the documents of: search.
Span = TypedDict(
    "Span",
    {
        "from": "int",
        "to": "int",
    },
)


class Stats(TypedDict):
    """In the documents of: stats."""

    vaults: int
    files: int
    logical_bytes: int
    events: int
    checkpoints: int
    auto_checkpoints: int
    vault_bytes: int
    lineage_bytes: int
    checkpoint_bytes: int
    history_bytes: int
    garbage_chunks: int
    garbage_nodes: int
    garbage_bytes: int
    stored_bytes: int


class Stop(TypedDict):
    """In the documents of: serve."""

    store: str
    stopped: bool


class StreamOutput(TypedDict):
    """In the documents of: exec events, fanout, exec, proxy exec and others."""

    name: str
    bytes: int
    kept: int


class TagCount(TypedDict):
    """In the documents of: tag."""

    tag: str
    paths: int


class TaggedPath(TypedDict):
    """In the documents of: tag."""

    path: str
    path_b64: NotRequired[str]
    type: str
    tags: list[str]


class Text(TypedDict):
    """In the documents of: completions, man."""

    text: str


class TransferReport(TypedDict):
    """In the documents of: export."""

    files: int
    dirs: int
    symlinks: int
    others: int
    hard_links: int
    bytes: int
    unchanged: NotRequired[int]
    skipped: NotRequired[list[Skip]]
    skipped_total: int
    dropped_xattrs: NotRequired[dict[str, int]]


class UndoResult(TypedDict):
    """In the documents of: undo, redo, revert."""

    changed: int
    changes: list[FileChange]
    undo_checkpoint: NotRequired[str]
    root: str
    event: NotRequired[int]
    preview: NotRequired[bool]
    drift: NotRequired[list[str | PathBytes]]
    undone: Event
    events: int


class VaultInfo(TypedDict):
    """In the documents of: vault create, vault list, vault use, vault info and others."""

    id: int
    name: str
    parent: NotRequired[str]
    parent_deleted: NotRequired[bool]
    ancestors: NotRequired[list[str]]
    created_at: str
    root: str
    files: int
    bytes: int
    checkpoints: int
    current: bool
    store: str
    store_bytes: NotRequired[int]
    backend: str
    mounts: list[MountInfo]


class Version(TypedDict):
    """In the documents of: version."""

    version: str
    go: str
    os: str
    arch: str
    backends: list[str]
    fuse: Fuse
    protocol: int
    format: int
    envelope: str


class WriteResult(TypedDict):
    """In the documents of: write."""

    path: str
    path_b64: NotRequired[str]
    bytes: int
