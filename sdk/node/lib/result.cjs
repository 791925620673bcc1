'use strict'

const errors = require('./errors.cjs')

const BY_STATUS = {
  denied: errors.Denied,
  approval_required: errors.ApprovalRequired,
  timed_out: errors.TimedOut,
  failed_to_start: errors.FailedToStart,
  interrupted: errors.Interrupted,
}
const FIXED_CODES = { denied: 77, approval_required: 78, timed_out: 124 }

/** How a command went: its envelope, with the fields that matter most at hand. */
class ExecResult {
  constructor(envelope) {
    this.envelope = envelope
  }

  get id() { return this.envelope.id }
  get status() { return this.envelope.status }
  get exitCode() { return this.envelope.exit_code }
  get stdout() { return this.envelope.stdout }
  get stderr() { return this.envelope.stderr }
  get stdoutData() { return data(this.envelope, 'stdout') }
  get stderrData() { return data(this.envelope, 'stderr') }
  get changedFiles() { return this.envelope.changed_files }
  get changedTotal() { return this.envelope.changed_total }
  get checkpoint() { return this.envelope.checkpoint || undefined }
  get approvalId() { return this.envelope.approval?.id }

  get ok() {
    if (this.envelope.dry_run || this.status === 'running') return this.status === 'completed' || this.status === 'running'
    return this.status === 'completed' && this.exitCode === 0
  }

  error() {
    if (this.status === 'error') {
      return errors.errorOf(this.envelope.error ?? { error: 'Internal', message: 'avfs failed' }, 125, this)
    }
    if (this.ok) return undefined
    const Class = Object.hasOwn(BY_STATUS, this.status) ? BY_STATUS[this.status] : errors.CommandFailed
    const exitCode = FIXED_CODES[this.status] ?? this.exitCode ?? 1
    return new Class(Class.name, this.#why(), { exitCode, result: this })
  }

  check() {
    const err = this.error()
    if (err !== undefined) throw err
    return this
  }

  #why() {
    const { decision, error } = this.envelope
    if (this.status === 'denied' || this.status === 'approval_required') return `${decision.reason} (rule ${decision.rule})`
    if (error) return error.message
    if (this.status !== 'completed') return `the command ${this.status.replaceAll('_', ' ')}`
    const last = this.stderr.trim().split('\n').pop()
    return `the command ended with exit code ${this.exitCode}` + (last ? `: ${last}` : '')
  }
}

function data(doc, stream) {
  const exact = doc[stream + '_base64']
  return exact === undefined ? Buffer.from(doc[stream]) : Buffer.from(exact, 'base64')
}

/** What an event of the kinds stdout, stderr and combined says was printed. */
function outputBytes(event) {
  return event.base64 === undefined ? Buffer.from(event.text ?? '') : Buffer.from(event.base64, 'base64')
}

/** The exact bytes of a path, or of another name, in a document, or of one of a plain list of paths. */
function pathBytes(doc, field = 'path') {
  if (typeof doc === 'string') return Buffer.from(doc)
  if (doc.b64 !== undefined) return Buffer.from(doc.b64, 'base64')
  const exact = doc[field + '_b64']
  return exact === undefined ? Buffer.from(doc[field]) : Buffer.from(exact, 'base64')
}

/** The result of an execution. A failure of avfs itself is thrown in any case. */
function resultOf(envelope, check) {
  const result = new ExecResult(envelope)
  if (check || result.status === 'error') result.check()
  return result
}

module.exports = { ExecResult, outputBytes, pathBytes, resultOf }
