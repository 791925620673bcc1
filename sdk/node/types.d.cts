// Generated from the contract of avfs by "make sdk-types". Do not edit.
//
// A document may have more fields than its type: later versions add some.

/** In the documents of: serve. */
export interface Api {
  listen: string;
  url: string;
  token_file?: string;
  pid: number;
}

/** In the documents of: apply. */
export interface ApplyChange {
  path: string;
  path_b64?: string;
  action: string;
}

/** In the documents of: apply. */
export interface ApplyReport {
  changes: ApplyChange[];
  kept: ApplyChange[];
  skipped?: Skip[];
  dry_run?: boolean;
}

/** In the documents of: approvals list, approvals show, approvals approve, approvals deny. */
export interface Approval {
  id: string;
  state: string;
  vault: string;
  vault_id?: number;
  fork?: string;
  forks?: number;
  argv?: string[];
  shell?: string;
  cwd: string;
  env?: string[];
  policy: string;
  rule: string;
  reason: string;
  binding: string;
  exec_id: string;
  uid: number;
  created_at: string;
  expires_at: string;
  decided_at?: string | null;
  by?: string;
  message?: string;
  used_by?: string;
}

/** In the documents of: exec events, fanout, exec, proxy exec and others. */
export interface ApprovalState {
  id: string;
  state: string;
  expires_at: string;
  by?: string;
  message?: string;
}

/** In the documents of: audit list. */
export interface AuditEntry {
  seq: number;
  at: string;
  kind: string;
  vault: string;
  vault_id?: number;
  subject?: string;
  exec_id?: string;
  argv?: string[];
  shell?: string;
  cwd?: string;
  action: string;
  rule: string;
  policy?: string;
  status: string;
  exit_code?: number | null;
  duration_ms: number;
  root_before?: string;
  root_after?: string;
  event?: number;
  error?: string;
  approval?: string;
  by?: string;
  uid: number;
  pid?: number;
  user?: string;
  from_exec?: string;
  prev?: string;
  hash?: string;
}

/** In the documents of: audit verify. */
export interface AuditFinding {
  seq: number;
  problem: string;
}

/** In the documents of: audit verify, audit head. */
export interface AuditHead {
  seq: number;
  hash: string;
}

/** In the documents of: audit verify. */
export interface AuditReport {
  head: AuditHead;
  entries: number;
  findings: AuditFinding[];
}

/** In the documents of: vault backup. */
export interface BackupResult {
  dest: string;
  backend: string;
  vaults: string[];
  bytes: number;
}

/** In the documents of: blame-exec. */
export interface Blame {
  path: string;
  path_b64?: string;
  event: PathEvent | null;
  unrecorded: boolean;
  origin?: string;
  parent?: string;
}

/** In the documents of: fsck. */
export interface CheckFinding {
  problem: string;
  owners: string[];
  paths?: string[];
}

/** In the documents of: fsck. */
export interface CheckReport {
  findings: CheckFinding[];
  roots: number;
  nodes: number;
  chunks: number;
  inodes: number;
}

/** In the documents of: doctor. */
export interface Checked {
  name: string;
  status: string;
  message: string;
  fix?: string;
}

/** In the documents of: checkpoint save, checkpoint list, checkpoint delete, checkpoint info. */
export interface Checkpoint {
  id: string;
  vault_id: number;
  name?: string;
  message?: string;
  auto: boolean;
  at: string;
  /** a state of a vault */
  root: string;
  files: number;
  bytes: number;
  seq?: number;
}

/** In the documents of: exec events, fanout, exec, proxy exec and others. */
export interface Command {
  argv?: string[];
  shell?: string;
  cwd: string;
}

/** In the documents of: compact. */
export interface CompactResult {
  reclaimed_bytes: number;
}

/** In the documents of: cat. */
export interface Content {
  path: string;
  path_b64?: string;
  text?: string | null;
  base64?: string | null;
}

/** In the documents of: exec events, fanout, exec, proxy exec and others. */
export interface Decision {
  action: string;
  rule: string;
  reason: string;
  token?: string;
  segments: Segment[];
}

/** In the documents of: vault delete. */
export interface DeleteResult {
  deleted: string;
  left: string[];
}

/** In the documents of: checkpoint diff, diff. */
export interface Diff {
  changes: FileChange[];
  total: number;
  files?: FileStat[];
  left_out?: LeftOut[];
  patch?: string | null;
  patch_b64?: string | null;
}

/** In the documents of: vault discard. */
export interface DiscardResult {
  deleted: string;
  left: string[];
  unmerged: FileChange[];
  unmerged_total: number;
  merged_into?: string;
  dry_run?: boolean;
}

/** In the documents of: doctor. */
export interface Doctor {
  ok: boolean;
  version: string;
  os: string;
  arch: string;
  checks: Checked[];
}

/** In the documents of: version. */
export interface Driver {
  driver: string;
  available: boolean;
  reason?: string;
}

/** In the documents of: edit. */
export interface EditResult {
  path: string;
  path_b64?: string;
  replaced: number;
  line: number;
  size_before: number;
  size_after: number;
}

/** In the documents of: ls, stat, tree, find. */
export interface Entry {
  name: string;
  name_b64?: string;
  path: string;
  path_b64?: string;
  type: string;
  mode: string;
  size: number;
  blocks: number;
  uid: number;
  gid: number;
  nlink: number;
  ino: number;
  mtime: string;
  ctime: string;
  btime: string;
  target?: string;
  depth?: number | null;
}

/** In the documents of: exec events, fanout, exec, proxy exec and others. */
export interface Envelope {
  schema: string;
  id: string;
  vault: string;
  status: string;
  dry_run?: boolean;
  command: Command;
  decision: Decision;
  approval?: ApprovalState | null;
  checkpoint: string;
  exit_code: number | null;
  signal: string | null;
  stdout: string;
  stderr: string;
  output?: string;
  stdout_bytes: number;
  stderr_bytes: number;
  output_bytes?: number;
  stdout_truncated: boolean;
  stderr_truncated: boolean;
  output_truncated: boolean;
  stdout_base64?: string;
  stderr_base64?: string;
  output_base64?: string;
  service?: ServiceStarted | null;
  output_kept?: KeptOutput | null;
  duration_ms: number;
  timed_out: boolean;
  changed_files: FileChange[];
  changed_total: number;
  root_before: string;
  root_after: string;
  limits_hit: string[];
  ended_processes: Process[];
  leaked_processes: Process[];
  isolation: Isolation;
  notes?: string[];
  /** an error of avfs itself, with details beside the two fields */
  error?: Fault | null;
}

/** In the documents of: undo, redo, revert. */
export interface Event {
  seq: number;
  vault_id: number;
  cause: string;
  id?: string;
  command?: string[];
  at: string;
  /** a state of a vault */
  before: string;
  /** a state of a vault */
  after: string;
  mountpoint?: string;
  undoes?: number;
  through?: number;
  paths?: (string | PathBytes)[];
  partly?: boolean;
  source?: string;
  /** a state of a vault */
  source_root?: string;
}

/** In the documents of: services list, services stop. */
export interface ExecCommand {
  pid: number;
  start?: number;
  cgroup?: string;
}

/** In the documents of: exec events. */
export interface ExecEvent {
  event: string;
  exec_id: string;
  at: string;
  vault?: string;
  pid?: number;
  text?: string;
  base64?: string;
  change?: FileChange | null;
  envelope?: Envelope | null;
}

/** In the documents of: policy test. */
export interface Failure {
  line: number;
  want: string;
  kind?: string;
  shell?: string;
  argv?: string[];
  cwd?: string;
  got: string;
  rule: string;
  reason: string;
}

/** In the documents of: fanout. */
export interface Fanout {
  schema: string;
  vault: string;
  runs: FanoutRun[];
  groups: FanoutGroup[];
  kept: number | null;
  refused?: Envelope | null;
  problems: string[];
  stopped: boolean;
  duration_ms: number;
}

/** In the documents of: fanout. */
export interface FanoutGroup {
  indexes: number[];
  exit_code: number | null;
  changed_total: number;
}

/** In the documents of: fanout. */
export interface FanoutRun {
  index: number;
  vault: string;
  status: string;
  exit_code: number | null;
  duration_ms: number;
  changed_total: number;
  group: number;
  dropped: boolean;
  envelope: Envelope | null;
}

/** In the documents of: error, exec events, fanout, exec and others. */
export interface Fault {
  /** a stable kind */
  error: string;
  /** what to do about it */
  hint?: string;
  /** a sentence for people */
  message: string;
}

/** In the documents of: exec events, vault merge, vault discard, checkpoint restore and others. */
export interface FileChange {
  path: string;
  path_b64?: string;
  kind: string;
  type: string;
  old_path?: string;
  old_path_b64?: string;
  size_before?: number | null;
  size_after?: number | null;
  mode_before?: string;
  mode_after?: string;
}

/** In the documents of: checkpoint diff, diff. */
export interface FileStat {
  path: string;
  path_b64?: string;
  added: number;
  deleted: number;
  binary?: boolean;
  coarse?: boolean;
}

/** In the documents of: version. */
export interface Fuse {
  driver: string;
  available: boolean;
  reason?: string;
  drivers: Driver[];
}

/** In the documents of: gc, fsck. */
export interface GCReport {
  nodes: number;
  chunks: number;
  rows: number;
  live_nodes: number;
  live_chunks: number;
  reclaimed_bytes: number;
  no_room?: boolean;
}

/** In the documents of: grep. */
export interface GrepFile {
  path: string;
  path_b64?: string;
  lines: number;
}

/** In the documents of: grep. */
export interface GrepMatch {
  path: string;
  path_b64?: string;
  line: number;
  text: string;
  context?: boolean;
}

/** In the documents of: import. */
export interface ImportResult {
  files: number;
  dirs: number;
  symlinks: number;
  others: number;
  hard_links: number;
  bytes: number;
  unchanged?: number;
  skipped?: Skip[];
  skipped_total: number;
  dropped_xattrs?: { [name: string]: number };
  event?: number;
}

/** In the documents of: policy init. */
export interface Init {
  path: string;
}

/** In the documents of: exec events, fanout, exec, proxy exec and others. */
export interface Isolation {
  boundary: string;
  applied: string[];
  not_applied: string[];
}

/** In the documents of: exec events, fanout, exec, proxy exec and others. */
export interface KeptOutput {
  streams: StreamOutput[];
  cut?: string;
}

/** In the documents of: checkpoint diff, diff. */
export interface LeftOut {
  path: string;
  path_b64?: string;
  what: string;
}

/** In the documents of: quota show, quota set. */
export interface Limits {
  max_size_mb: number | null;
  max_bytes: number | null;
  max_files: number | null;
  max_file_size_mb: number | null;
  max_file_bytes: number | null;
}

/** In the documents of: log. */
export interface LogEntry {
  seq: number;
  vault_id: number;
  cause: string;
  id?: string;
  command?: string[];
  at: string;
  /** a state of a vault */
  before: string;
  /** a state of a vault */
  after: string;
  mountpoint?: string;
  undoes?: number;
  through?: number;
  paths?: (string | PathBytes)[];
  partly?: boolean;
  source?: string;
  /** a state of a vault */
  source_root?: string;
  changed: boolean;
  undone: boolean;
}

/** In the documents of: mcp. */
export interface Mcp {
  url: string;
  socket?: string;
  token_file?: string;
}

/** In the documents of: vault merge. */
export interface MergeConflict {
  path: string;
  path_b64?: string;
  kind: string;
  base?: MergeVersion | null;
  ours?: MergeVersion | null;
  theirs?: MergeVersion | null;
  names?: string[];
  resolved?: string;
}

/** In the documents of: vault merge. */
export interface MergeResult {
  source: string;
  into: string;
  /** a state of a vault */
  base: string;
  /** a state of a vault */
  source_root: string;
  changed: number;
  changes: FileChange[];
  merged_texts: number;
  conflicts: MergeConflict[];
  resolved: MergeConflict[];
  undo_checkpoint?: string;
  /** a state of a vault */
  root: string;
  event?: number;
  dry_run?: boolean;
}

/** In the documents of: vault merge. */
export interface MergeVersion {
  path: string;
  path_b64?: string;
  type: string;
  mode: string;
  size?: number | null;
}

/** In the documents of: meta. */
export interface Meta {
  path: string;
  path_b64?: string;
  tags: string[];
  meta: { [name: string]: string };
}

/** In the documents of: vault migrate. */
export interface MigrateResult {
  store: string;
  from: string;
  to: string;
  bytes_before: number;
  bytes_after: number;
}

/** In the documents of: vault create, vault list, vault use, vault info and others. */
export interface MountInfo {
  session: string;
  vault: string;
  mountpoint: string;
  read_only: boolean;
  driver: string;
  implicit: boolean;
  since?: string;
  pid?: number;
}

/** In the documents of: output, services logs. */
export interface Output {
  exec_id: string;
  vault: string;
  at: string;
  streams: StreamOutput[];
  ended: boolean;
  cut?: string;
  stream: string;
  bytes: number;
  kept: number;
  from: number;
  to: number;
  text?: string | null;
  base64?: string | null;
}

/** In the documents of: mkdir, rm, cp, mv and others. */
export interface PathBytes {
  b64: string;
}

/** In the documents of: blame-exec. */
export interface PathEvent {
  seq: number;
  vault_id: number;
  cause: string;
  id?: string;
  command?: string[];
  at: string;
  /** a state of a vault */
  before: string;
  /** a state of a vault */
  after: string;
  mountpoint?: string;
  undoes?: number;
  through?: number;
  paths?: (string | PathBytes)[];
  partly?: boolean;
  source?: string;
  /** a state of a vault */
  source_root?: string;
  path: string;
  path_b64?: string;
  changes: FileChange[];
  total: number;
}

/** In the documents of: log. */
export interface PathLogEntry {
  seq: number;
  vault_id: number;
  cause: string;
  id?: string;
  command?: string[];
  at: string;
  /** a state of a vault */
  before: string;
  /** a state of a vault */
  after: string;
  mountpoint?: string;
  undoes?: number;
  through?: number;
  paths?: (string | PathBytes)[];
  partly?: boolean;
  source?: string;
  /** a state of a vault */
  source_root?: string;
  path: string;
  path_b64?: string;
  changes: FileChange[];
  total: number;
  changed: boolean;
}

/** In the documents of: du. */
export interface PathUsage {
  path: string;
  path_b64?: string;
  bytes: number;
  size: number;
  files: number;
  depth: number;
}

/** In the documents of: mkdir, rm, cp, mv and others. */
export interface PathsResult {
  paths: (string | PathBytes)[];
}

/** In the documents of: policy lint. */
export interface PolicyFinding {
  kind: string;
  rule: string;
  line: number;
  message: string;
}

/** In the documents of: policy test. */
export interface PolicyTestResult {
  cases: number;
  harmless: number;
  dangerous: number;
  failures: Failure[];
  false_alarms: number;
  missed: number;
  false_alarm_percent: number;
  ok: boolean;
}

/** In the documents of: services list. */
export interface Port {
  port: number;
  address: string;
  pid: number;
}

/** In the documents of: exec events, fanout, exec, proxy exec and others. */
export interface Process {
  pid: number;
  command: string;
}

/** In the documents of: prune. */
export interface PruneReport {
  rule: Retention;
  dry_run: boolean;
  events: number;
  checkpoints: number;
  kept_events: number;
  kept_checkpoints: number;
  outputs: number;
  kept_outputs: number;
  kept_bytes: number;
}

/** In the documents of: quota show, quota set. */
export interface Quota {
  vault: string;
  used_bytes: number;
  files: number;
  unlinked_bytes: number;
  unlinked_files: number;
  limits: Limits;
}

/** In the documents of: fsck. */
export interface RepairAction {
  problem: string;
  action: string;
}

/** In the documents of: fsck. */
export interface RepairReport {
  repaired: RepairAction[];
  findings: CheckFinding[];
  roots: number;
  nodes: number;
  chunks: number;
  inodes: number;
  collected?: GCReport | null;
}

/** In the documents of: checkpoint restore, checkout. */
export interface RestoreResult {
  changed: number;
  changes: FileChange[];
  undo_checkpoint?: string;
  /** a state of a vault */
  root: string;
  event?: number;
  preview?: boolean;
  drift?: (string | PathBytes)[];
}

/** In the documents of: prune. */
export interface Retention {
  last: number;
  hours: number;
  days: number;
  bytes: number;
}

/** In the documents of: schema. */
export interface Schema {
  name: string;
}

/** In the documents of: search. */
export interface SearchHit {
  path: string;
  path_b64?: string;
  score: number;
  lines: SearchLine[];
}

/** In the documents of: search. */
export interface SearchLine {
  line: number;
  text: string;
  spans: Span[];
}

/** In the documents of: search. */
export interface SearchResult {
  query: string;
  files: SearchHit[];
  more: boolean;
  note?: string;
}

/** In the documents of: exec events, fanout, exec, proxy exec and others. */
export interface Segment {
  text: string;
  argv: string[];
  via?: string;
  action: string;
  rule: string;
  reason: string;
  token?: string;
}

/** In the documents of: services stop. */
export interface Service {
  name: string;
  vault: string;
  state: string;
  exec_id: string;
  command: string[];
  pid: number;
  process?: ExecCommand | null;
  started_at: string;
  ended_at?: string | null;
  status?: string;
  exit_code?: number | null;
}

/** In the documents of: services list. */
export interface ServiceInfo {
  name: string;
  vault: string;
  state: string;
  exec_id: string;
  command: string[];
  pid: number;
  process?: ExecCommand | null;
  started_at: string;
  ended_at?: string | null;
  status?: string;
  exit_code?: number | null;
  ports: Port[];
}

/** In the documents of: exec events, fanout, exec, proxy exec and others. */
export interface ServiceStarted {
  name: string;
  pid: number;
}

/** In the documents of: sessions list, sessions show, sessions delete. */
export interface Session {
  name: string;
  vault: string;
  cwd: string;
  env: { [name: string]: string };
  unset: string[];
  exec_id?: string;
  updated_at: string;
}

/** In the documents of: import, export, apply. */
export interface Skip {
  path: string;
  path_b64?: string;
  error: string;
  message: string;
  note?: boolean;
}

/** In the documents of: search. */
export interface Span {
  from: number;
  to: number;
}

/** In the documents of: stats. */
export interface Stats {
  vaults: number;
  files: number;
  logical_bytes: number;
  events: number;
  checkpoints: number;
  auto_checkpoints: number;
  vault_bytes: number;
  lineage_bytes: number;
  checkpoint_bytes: number;
  history_bytes: number;
  garbage_chunks: number;
  garbage_nodes: number;
  garbage_bytes: number;
  stored_bytes: number;
}

/** In the documents of: serve. */
export interface Stop {
  store: string;
  stopped: boolean;
}

/** In the documents of: exec events, fanout, exec, proxy exec and others. */
export interface StreamOutput {
  name: string;
  bytes: number;
  kept: number;
}

/** In the documents of: tag. */
export interface TagCount {
  tag: string;
  paths: number;
}

/** In the documents of: tag. */
export interface TaggedPath {
  path: string;
  path_b64?: string;
  type: string;
  tags: string[];
}

/** In the documents of: completions, man. */
export interface Text {
  text: string;
}

/** In the documents of: export. */
export interface TransferReport {
  files: number;
  dirs: number;
  symlinks: number;
  others: number;
  hard_links: number;
  bytes: number;
  unchanged?: number;
  skipped?: Skip[];
  skipped_total: number;
  dropped_xattrs?: { [name: string]: number };
}

/** In the documents of: undo, redo, revert. */
export interface UndoResult {
  changed: number;
  changes: FileChange[];
  undo_checkpoint?: string;
  /** a state of a vault */
  root: string;
  event?: number;
  preview?: boolean;
  drift?: (string | PathBytes)[];
  undone: Event;
  events: number;
}

/** In the documents of: vault create, vault list, vault use, vault info and others. */
export interface VaultInfo {
  id: number;
  name: string;
  parent?: string;
  parent_deleted?: boolean;
  ancestors?: string[];
  created_at: string;
  /** a state of a vault */
  root: string;
  files: number;
  bytes: number;
  checkpoints: number;
  current: boolean;
  store: string;
  store_bytes?: number;
  backend: string;
  mounts: MountInfo[];
}

/** In the documents of: version. */
export interface Version {
  version: string;
  go: string;
  os: string;
  arch: string;
  backends: string[];
  fuse: Fuse;
  protocol: number;
  format: number;
  envelope: string;
}

/** In the documents of: write. */
export interface WriteResult {
  path: string;
  path_b64?: string;
  bytes: number;
}

/** What each command prints with --json. */
export interface Results {
  "vault create": VaultInfo;
  "vault list": VaultInfo[];
  "vault use": VaultInfo;
  "vault info": VaultInfo;
  "vault fork": VaultInfo;
  "vault delete": DeleteResult;
  "vault merge": MergeResult;
  "vault discard": DiscardResult;
  "vault backup": BackupResult;
  "vault restore": VaultInfo[];
  "vault migrate": MigrateResult;
  "ls": Entry[];
  "cat": Content | Content[];
  "write": WriteResult;
  "edit": EditResult;
  "mkdir": PathsResult;
  "rm": PathsResult;
  "cp": PathsResult;
  "mv": PathsResult;
  "touch": PathsResult;
  "ln": PathsResult;
  "stat": Entry[];
  "tree": Entry[];
  "find": Entry[];
  "grep": GrepMatch[] | GrepFile[];
  "search": SearchResult;
  "du": PathUsage[];
  "tag": PathsResult | TaggedPath[] | TagCount[];
  "untag": PathsResult;
  "meta": Meta;
  "import": ImportResult;
  "export": TransferReport;
  "apply": ApplyReport;
  "checkpoint save": Checkpoint;
  "checkpoint list": Checkpoint[];
  "checkpoint restore": RestoreResult;
  "checkpoint diff": FileChange[] | Diff;
  "checkpoint delete": Checkpoint;
  "checkpoint info": Checkpoint;
  "diff": Diff;
  "log": LogEntry[] | PathLogEntry[];
  "checkout": RestoreResult;
  "blame-exec": Blame;
  "undo": UndoResult;
  "redo": UndoResult;
  "revert": UndoResult;
  "fanout": Fanout;
  "exec": Envelope | Envelope[];
  "proxy exec": Envelope | Envelope[];
  "shell": Envelope;
  "output": Output;
  "services list": ServiceInfo[];
  "services logs": Output;
  "services stop": Service;
  "sessions list": Session[];
  "sessions show": Session;
  "sessions delete": Session;
  "approvals list": Approval[];
  "approvals show": Approval;
  "approvals approve": Approval;
  "approvals deny": Approval;
  "mount": MountInfo;
  "unmount": MountInfo;
  "mounts": MountInfo[];
  "mcp": Mcp;
  "serve": Stop | Api;
  "audit list": AuditEntry[];
  "audit verify": AuditReport;
  "audit head": AuditHead;
  "quota show": Quota;
  "quota set": Quota;
  "stats": Stats;
  "prune": PruneReport;
  "gc": GCReport;
  "compact": CompactResult;
  "fsck": CheckReport | RepairReport;
  "policy check": Decision;
  "policy explain": Decision;
  "policy lint": PolicyFinding[];
  "policy test": PolicyTestResult;
  "policy init": Init;
  "doctor": Doctor;
  "completions": Text;
  "man": Text;
  "version": Version;
  "schema": { [name: string]: unknown } | Schema[];
}
