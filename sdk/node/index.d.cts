import type * as types from './types.cjs'

export type { types }

/** A path, in a vault or on the host. Bytes must be UTF-8: Node passes nothing else as an argument. */
export type Path = string | Uint8Array

/** What a call reads: content at hand, a readable stream, or pieces. */
export type Input = string | Uint8Array | AsyncIterable<Uint8Array | string> | Iterable<Uint8Array | string>

type OneOrMore<T> = T | readonly T[]
type FlagValue = undefined | null | boolean | OneOrMore<string | number | Uint8Array>

export interface AvfsOptions {
  /** The program; by default what AVFS_BIN names, or avfs. */
  binary?: string
  /** Where its state is (AVFS_HOME). */
  home?: string
  /** Further variables for it. */
  env?: Record<string, string>
  cwd?: string
  /** How many milliseconds one call may take. */
  timeout?: number
  /** Ends every call. */
  signal?: AbortSignal
  /** Milliseconds between SIGINT and SIGKILL for a call that is ended, by default 5000. */
  grace?: number
}

export interface CallOptions {
  flags?: Record<string, FlagValue>
  args?: readonly Path[]
  stdin?: Input
  signal?: AbortSignal
}

/** The program avfs and the vaults that it keeps. */
export class Avfs {
  constructor(options?: AvfsOptions)
  /** The same program, with another limit for each call. */
  with(options: { timeout?: number; signal?: AbortSignal }): Avfs
  version(): Promise<types.Version>
  /** Creates an empty vault. */
  create(name: string, options?: { backend?: string }): Promise<Vault>
  /** A vault that exists. Nothing is asked for until it is used. */
  vault(name: string): Vault
  vaults(): Promise<types.VaultInfo[]>
  /** What the policy says of a command; nothing runs. */
  checkPolicy(argv: readonly Path[]): Promise<types.Decision>
  /**
   * Any command of avfs: call('vault info', { args: ['project'] }). Gives the
   * document that it prints with --json, and throws its failure.
   */
  call<K extends keyof types.Results>(command: K, options?: CallOptions & { vault?: string }): Promise<types.Results[K]>
  call(command: string | readonly string[], options?: CallOptions & { vault?: string }): Promise<unknown>
}

export interface ExecOptions {
  /** Run this script of a shell instead of a command. */
  script?: string
  cwd?: Path
  /** Variables; one that is null is taken from this process. */
  env?: Record<string, string | null | undefined>
  /** Variables by reference: "file:PATH" or "cmd:SCRIPT". */
  secrets?: Record<string, string>
  stdin?: Input
  /** Milliseconds; 0 is never, and without it 300 seconds. */
  timeout?: number
  signal?: AbortSignal
  // The other flags of avfs exec, which its help explains.
  approval?: string
  changes?: number
  checkpoint?: 'auto' | 'always' | 'never'
  combined?: boolean
  cpu?: number
  driver?: string
  dryRun?: boolean
  envFile?: OneOrMore<string>
  fileSize?: string
  fork?: string
  keepRunning?: boolean | string
  memory?: string
  noWait?: boolean
  pids?: number
  readonly?: boolean
  session?: string
}

export interface MergeOptions {
  /** Bring only what is there. */
  paths?: OneOrMore<Path>
  /** Where both changed it, keep what is there; "." is everything. */
  ours?: OneOrMore<Path>
  /** Where both changed it, take it from here; "." is everything. */
  theirs?: OneOrMore<Path>
  conflictMarkers?: boolean
  dryRun?: boolean
}

export interface DiffOptions {
  paths?: OneOrMore<Path>
  /** Add what changed in each file, as a unified diff. */
  text?: boolean
  /** The same as a patch in git's format. */
  patch?: boolean
  limit?: number
}

/** Another state to read: a checkpoint, an exec, an event, a time. */
export interface At { at?: string }

/** A vault. Paths are those in it, with or without a slash at the beginning. */
export class Vault {
  constructor(avfs: Avfs, name: string)
  readonly avfs: Avfs
  readonly name: string
  readonly checkpoints: Checkpoints
  readonly approvals: Approvals
  readonly audit: Audit

  /** The same vault, with another limit for each call. */
  with(options: { timeout?: number; signal?: AbortSignal }): Vault
  /** Any command of avfs on this vault: call('stats'). */
  call<K extends keyof types.Results>(command: K, options?: CallOptions): Promise<types.Results[K]>
  call(command: string | readonly string[], options?: CallOptions): Promise<unknown>

  info(): Promise<types.VaultInfo>
  /** Forks the vault, or its state at a checkpoint. With "await using" it is discarded at the end, unless keep was called. */
  fork(name?: string, options?: At): Promise<Fork>
  /** Gives a fork to a function and discards it behind, merged or not, unless keep was called. */
  withFork<T>(work: (fork: Fork) => T | Promise<T>, options?: { name?: string } & At): Promise<T>
  /** Brings what changed here into another vault. A conflict throws Conflict, and nothing is merged, unless the options decide. */
  merge(into: Vault | string, options?: MergeOptions): Promise<types.MergeResult>
  /** Deletes the vault and tells what no other vault has. */
  discard(options?: { dryRun?: boolean }): Promise<types.DiscardResult>
  /** Deletes the vault with its checkpoints. */
  delete(): Promise<types.DeleteResult>
  quota(): Promise<types.Quota>
  /** Sets limits. A size may be text such as "2G"; "none" removes a limit. */
  setQuota(limits: { bytes?: number | string; files?: number | string; fileBytes?: number | string }): Promise<types.Quota>

  /** Runs a command, or a script, under the policy. With check whatever is not ok is thrown; failures of avfs itself always are. */
  exec(argv: readonly Path[], options?: ExecOptions & { check?: boolean }): Promise<ExecResult>
  exec(options: ExecOptions & { script: string; check?: boolean }): Promise<ExecResult>
  /** The same, event by event: for await (const event of vault.stream(['make'])). */
  stream(argv: readonly Path[], options?: ExecOptions): ExecStream
  stream(options: ExecOptions & { script: string }): ExecStream
  /** All that a command has printed, as far as it is kept. With a sink it goes there. */
  output(exec?: string, options?: { stream?: 'stdout' | 'stderr' | 'combined'; tail?: number; sink?: NodeJS.WritableStream }): Promise<Buffer>

  readBytes(path: Path, options?: At): Promise<Buffer>
  readText(path: Path, options?: At): Promise<string>
  /** Copies a file, however large, into a writable stream, which stays open. */
  readInto(path: Path, sink: NodeJS.WritableStream, options?: At): Promise<void>
  write(path: Path, content: Input, options?: { append?: boolean; parents?: boolean; mode?: number }): Promise<types.WriteResult>
  /** Replaces a text that is in a file once, or with all wherever it is. */
  edit(path: Path, before: string, after: string, options?: { all?: boolean }): Promise<types.EditResult>
  list(path?: Path, options?: At): Promise<types.Entry[]>
  stat(path: Path, options?: { follow?: boolean } & At): Promise<types.Entry>
  exists(path: Path, options?: At): Promise<boolean>
  tree(path?: Path, options?: { depth?: number } & At): Promise<types.Entry[]>
  mkdir(path: Path, options?: { parents?: boolean; mode?: number }): Promise<void>
  remove(paths: OneOrMore<Path>, options?: { recursive?: boolean; force?: boolean }): Promise<void>
  move(source: Path, dest: Path): Promise<void>
  copy(source: Path, dest: Path, options?: { recursive?: boolean }): Promise<void>
  link(target: Path, name: Path, options?: { symbolic?: boolean; force?: boolean }): Promise<void>
  /** Finds by name, type ("f", "d", "l"), size ("+10k"), days since a change ("-7") and tag. */
  find(
    paths?: OneOrMore<Path>,
    options?: {
      name?: OneOrMore<string>; iname?: OneOrMore<string>; type?: string; size?: string; mtime?: string
      tag?: OneOrMore<string>; maxDepth?: number
    } & At,
  ): Promise<types.Entry[]>
  /** Lines that match a regular expression (RE2). */
  grep(
    pattern: string,
    options?: {
      paths?: OneOrMore<Path>; ignoreCase?: boolean; fixed?: boolean; word?: boolean; glob?: OneOrMore<string>; context?: number
    } & At,
  ): Promise<types.GrepMatch[]>
  /** What directories hold, as a quota counts it. */
  du(path?: Path, options?: { depth?: number }): Promise<types.PathUsage[]>
  tag(tag: string, paths: OneOrMore<Path>): Promise<void>
  untag(tag: string, paths: OneOrMore<Path>): Promise<void>
  tagged(tag: string): Promise<types.TaggedPath[]>
  tags(): Promise<types.TagCount[]>
  /** Notes values about a path, and tells all that is noted. */
  meta(path: Path, values?: Record<string, string>, options?: { unset?: OneOrMore<string> }): Promise<types.Meta>

  /** Copies a directory or file of the host into the vault, or with git the tree of a commit (REPO@REVISION). */
  importFrom(source: Path, dest?: Path, options?: { update?: boolean; gitignore?: boolean; git?: boolean }): Promise<types.ImportResult>
  /** Unpacks a tar archive, also a compressed one. */
  importTar(archive: Input, dest?: Path): Promise<types.ImportResult>
  exportTo(dest: Path, source?: Path, options?: { changedSince?: string; overwrite?: boolean } & At): Promise<types.TransferReport>
  /** Writes a tree as a tar archive to a writable stream, which stays open. */
  exportTar(sink: NodeJS.WritableStream, source?: Path, options?: { compress?: 'gzip' | 'zstd' | 'none' } & At): Promise<void>
  /** Brings what changed since an import back to the host's directory. */
  applyTo(dest: Path, options?: { paths?: OneOrMore<Path>; force?: boolean; dryRun?: boolean }): Promise<types.ApplyReport>

  /** What differs between two states; without the first a fork is compared with the state that it began with. */
  diff(before?: string, after?: string, options?: DiffOptions): Promise<types.Diff>
  /** What was done in the vault, newest first. */
  log(options?: { limit?: number }): Promise<types.LogEntry[]>
  /** What changed a path or something below it, newest first. */
  logOf(path: Path, options?: { limit?: number }): Promise<types.PathLogEntry[]>
  /** Takes back the newest change that stands, everything since the event "to", or one event. */
  undo(options?: {
    paths?: OneOrMore<Path>; to?: string | number; event?: string | number; preview?: boolean; force?: boolean
  }): Promise<types.UndoResult>
  /** Takes back the newest undo, if nothing came after it. */
  redo(options?: { preview?: boolean; force?: boolean }): Promise<types.UndoResult>
  /** Takes back one event alone, whatever came after it. */
  revert(event: string | number, options?: { paths?: OneOrMore<Path>; preview?: boolean; force?: boolean }): Promise<types.UndoResult>
  /** Brings one path back from another state, or puts it elsewhere. */
  checkout(path: Path, at: string, options?: { to?: Path }): Promise<types.RestoreResult>
}

/** A fork of a vault. */
export class Fork extends Vault {
  constructor(avfs: Avfs, name: string, parent: string)
  readonly parent: string
  /** Lets the fork stay when its context ends. */
  keep(): void
  /** Brings what changed here into another vault, by default the one it was forked from. */
  merge(into?: Vault | string, options?: MergeOptions): Promise<types.MergeResult>
  /** Discards the fork, unless keep was called or it is gone. */
  dispose(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** A command that runs, event by event. It starts when the first event is asked for, and ends when nobody takes more. */
export class ExecStream implements AsyncIterable<types.ExecEvent> {
  private constructor()
  [Symbol.asyncIterator](): AsyncIterator<types.ExecEvent>
  /** Sends the command SIGINT, as Ctrl-C does. The events go on until it has ended. */
  interrupt(): void
  /** How the command went, once all events were taken. */
  get result(): ExecResult
  /** Takes the events that are left. */
  wait(): Promise<ExecResult>
  /** Ends the command. */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** How a command went: its envelope, with the fields that matter most at hand. */
export class ExecResult {
  constructor(envelope: types.Envelope)
  readonly envelope: types.Envelope
  /** For output, undo and the audit. */
  get id(): string
  /** completed, timed_out, interrupted, running, denied, approval_required, failed_to_start, and others to come. */
  get status(): string
  get exitCode(): number | null
  /** The command ran and ended with 0, or is a service that runs, or was only judged and may run. */
  get ok(): boolean
  /** The beginning and the end of what it printed; output gives all of it. */
  get stdout(): string
  get stderr(): string
  /** stdout byte for byte. */
  get stdoutData(): Buffer
  get stderrData(): Buffer
  get changedFiles(): types.FileChange[]
  /** How many files changed, also those beyond changedFiles. */
  get changedTotal(): number
  /** The state before, where it was kept. */
  get checkpoint(): string | undefined
  /** The approval that the command waits for or has used. */
  get approvalId(): string | undefined
  /** Why the command did not do what was asked. */
  error(): AvfsError | undefined
  /** Throws the error of the command, if there is one. */
  check(): this
}

/** The kept states of a vault. */
export class Checkpoints {
  private constructor()
  save(name?: string, options?: { message?: string }): Promise<types.Checkpoint>
  /** Oldest first. */
  list(): Promise<types.Checkpoint[]>
  info(checkpoint: string): Promise<types.Checkpoint>
  /** Brings a state back, as a whole or some paths of it. */
  restore(checkpoint: string, options?: { paths?: OneOrMore<Path>; preview?: boolean }): Promise<types.RestoreResult>
  /** What changed since a kept state, or between two. */
  diff(checkpoint: string, after?: string, options?: DiffOptions): Promise<types.Diff>
  delete(checkpoint: string): Promise<types.Checkpoint>
}

/** What the policy wants approval for in a vault's store. */
export class Approvals {
  private constructor()
  /** Newest first; with all also those that are used or expired. */
  list(options?: { all?: boolean }): Promise<types.Approval[]>
  show(approval: string): Promise<types.Approval>
  /** Lets the command run, once, within some milliseconds (by default 15 minutes). */
  approve(approval: string, options?: { message?: string; ms?: number }): Promise<types.Approval>
  deny(approval: string, options?: { message?: string }): Promise<types.Approval>
}

/** What was asked for in a vault, run or not. */
export class Audit {
  private constructor()
  /** Oldest first. */
  list(options?: { limit?: number; since?: string; status?: string }): Promise<types.AuditEntry[]>
  /** Checks that no entry was changed, moved or removed: findings is empty then. */
  verify(...heads: string[]): Promise<types.AuditReport>
  /** What to keep elsewhere, as `${seq}:${hash}` for verify. */
  head(): Promise<types.AuditHead>
}

/** What an event of the kinds stdout, stderr and combined says was printed. */
export function outputBytes(event: types.ExecEvent): Buffer
/** The exact bytes of a path, or of another name, in a document, or of one of a plain list of paths. */
export function pathBytes(doc: object | string, field?: string): Buffer

/** A failure that avfs reports. A kind that this package does not know has the class of its exit code, or this one. */
export class AvfsError extends Error {
  constructor(
    kind: string, message: string,
    options?: { hint?: string; details?: Record<string, unknown>; exitCode?: number; result?: ExecResult; cause?: unknown },
  )
  /** Stable between versions; the message is for people. */
  readonly kind: string
  /** What to do about it, where something can be done. */
  readonly hint: string | undefined
  /** The other fields of the failure. */
  readonly details: Record<string, unknown>
  readonly exitCode: number
  /** The execution that failed, where it is one. */
  readonly result: ExecResult | undefined
}

/** The call makes no sense: exit code 2. */
export class Usage extends AvfsError {}
/** A vault, path, checkpoint, event or the like is not there: exit code 3. */
export class NotFound extends AvfsError {}
/** Something is in the way: it exists, is busy, has changed, or conflicts: exit code 4. */
export class Conflict extends AvfsError {
  /** The conflicts of a merge. */
  get conflicts(): types.MergeConflict[]
}
/** The disk is full, or a quota or a limit of sizes is reached: exit code 5. */
export class NoSpace extends AvfsError {}
/** Data are damaged: exit code 6. */
export class Damaged extends AvfsError {}
/** Another process has the store open: exit code 7. */
export class Locked extends AvfsError {}
/** A file is no store of avfs: exit code 8. */
export class NotStore extends AvfsError {}
/** A signal ended the call: exit code 130. */
export class Interrupted extends AvfsError {}
/** The call took longer than the client's timeout, and was ended. */
export class CallTimeout extends AvfsError {}
/** The program avfs cannot be started. */
export class BinaryNotFound extends AvfsError {}
/** The program printed what is no document of avfs. */
export class ProtocolError extends AvfsError {}
/** A command did not do what was asked; result says how it ended. */
export class ExecError extends AvfsError {}
/** The policy denies the command; nothing ran. */
export class Denied extends ExecError {}
/** The policy wants approval first; nothing ran. */
export class ApprovalRequired extends ExecError {
  /** What to give to approvals.approve. */
  get approvalId(): string | undefined
}
/** The command took longer than it may and was ended. */
export class TimedOut extends ExecError {}
/** The program is not there or cannot be executed. */
export class FailedToStart extends ExecError {}
/** The command ended with an exit code other than 0, or by a signal. */
export class CommandFailed extends ExecError {}
