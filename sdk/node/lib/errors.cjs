'use strict'

const { EXIT_CODES } = require('./kinds.cjs')

// See index.d.cts for what each class is for.

class AvfsError extends Error {
  constructor(kind, message, { hint, details, exitCode, result, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = new.target.name
    this.kind = kind
    this.hint = hint
    this.details = { ...details }
    this.exitCode = exitCode ?? EXIT_CODES[kind] ?? 1
    this.result = result
  }
}

class Usage extends AvfsError {}
class NotFound extends AvfsError {}
class Conflict extends AvfsError {
  get conflicts() {
    return Array.isArray(this.details.conflicts) ? this.details.conflicts : []
  }
}
class NoSpace extends AvfsError {}
class Damaged extends AvfsError {}
class Locked extends AvfsError {}
class NotStore extends AvfsError {}
class Interrupted extends AvfsError {}

class CallTimeout extends AvfsError {}
class BinaryNotFound extends AvfsError {}
class ProtocolError extends AvfsError {}

class ExecError extends AvfsError {}
class Denied extends ExecError {}
class ApprovalRequired extends ExecError {
  get approvalId() {
    return this.result?.approvalId
  }
}
class TimedOut extends ExecError {}
class FailedToStart extends ExecError {}
class CommandFailed extends ExecError {}

const BY_CODE = {
  2: Usage, 3: NotFound, 4: Conflict, 5: NoSpace, 6: Damaged, 7: Locked, 8: NotStore, 130: Interrupted,
}

/** The error of a failure's document. */
function errorOf(fault, exitCode, result) {
  const { error: kind, message, hint, ...details } = fault
  const known = Object.hasOwn(EXIT_CODES, kind) ? EXIT_CODES[kind] : undefined
  const code = known ?? exitCode ?? 1
  const Class = BY_CODE[code] ?? AvfsError
  return new Class(kind, message ?? '', { hint, details, exitCode: code, result })
}

module.exports = {
  AvfsError, Usage, NotFound, Conflict, NoSpace, Damaged, Locked, NotStore, Interrupted, CallTimeout, BinaryNotFound,
  ProtocolError, ExecError, Denied, ApprovalRequired, TimedOut, FailedToStart, CommandFailed, errorOf,
}
