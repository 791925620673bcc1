// The names of index.cjs, of which there is one instance for import and require alike.
import avfs from './index.cjs'

export const {
  Avfs, Vault, Fork, Checkpoints, Approvals, Audit, ExecStream, ExecResult, outputBytes, pathBytes,
  AvfsError, Usage, NotFound, Conflict, NoSpace, Damaged, Locked, NotStore, Interrupted, CallTimeout, BinaryNotFound,
  ProtocolError, ExecError, Denied, ApprovalRequired, TimedOut, FailedToStart, CommandFailed,
} = avfs
