'use strict'

const { Usage, ProtocolError, errorOf } = require('./errors.cjs')

/** Bytes or text as an argument. Node encodes arguments as UTF-8 and has no other way. */
function argument(value) {
  const text = typeof value === 'string' ? value : Buffer.from(value).toString()
  const same = typeof value === 'string' ? Buffer.from(text).toString() === text : Buffer.from(text).equals(value)
  if (!same) throw new Usage('Invalid', 'Node passes only UTF-8 as an argument; use another client for this name')
  return text
}

/** The values of flags: none for undefined, null and false, one without a value for true, one for each of a list. */
function flag(name, value) {
  const text = '--' + name.replace(/[A-Z]/g, (c) => '-' + c.toLowerCase()).replaceAll('_', '-')
  if (value === undefined || value === null || value === false) return []
  if (value === true) return [text]
  if (Array.isArray(value)) return value.map((v) => `${text}=${single(v)}`)
  return [`${text}=${single(value)}`]
}

function single(value) {
  return typeof value === 'number' ? String(value) : argument(value)
}

/**
 * The arguments of a call. No value can be taken for a flag: those of flags are
 * joined to them, and all others stand behind "--".
 */
function commandLine(command, { flags = {}, args = [], vault, mode = '--json' } = {}) {
  const line = vault === undefined ? [] : ['--vault=' + argument(vault)]
  line.push(mode, ...command)
  for (const [name, value] of Object.entries(flags)) line.push(...flag(name, value))
  if (args.length > 0) line.push('--', ...args.map(argument))
  return line
}

/** A time in milliseconds for the command line. */
function duration(ms) {
  if (ms === undefined || ms === null) return undefined
  if (!(ms >= 0)) throw new RangeError('a time is 0 or more')
  return ms === 0 ? '0' : `${Math.max(1, Math.round(ms))}ms`
}

/** A path in another state. An @ in a name never names a state. */
function past(path, at) {
  const name = argument(path)
  if (at !== undefined) return `${name}@${at}`
  return name.includes('@') ? name + '@now' : name
}

/** One value or several as a list. */
function asList(value) {
  if (value === undefined || value === null) return []
  return Array.isArray(value) ? value : [value]
}

/** Permission bits in octal. */
function octal(mode) {
  return mode === undefined ? undefined : mode.toString(8).padStart(4, '0')
}

/** The document that a call printed; its failure is thrown. */
function document(end) {
  const doc = parsed(end.stdout)
  if (doc === undefined) throw broken(end)
  if (end.code !== 0 && isFault(doc)) throw errorOf(doc, end.code)
  return doc
}

/** Throws the failure of a call that prints no document, where it failed. */
function succeeded(end) {
  if (end.code === 0) return
  const doc = parsed(end.stderr.toString().trimEnd().split('\n').pop())
  throw isFault(doc) ? errorOf(doc, end.code) : broken(end)
}

function parsed(text) {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isFault(doc) {
  return typeof doc === 'object' && doc !== null && typeof doc.error === 'string' && 'message' in doc
}

/** What to say of a program that does not keep to its contract. */
function broken(end) {
  const how = end.code === null ? `was ended by ${end.signal}` : `ended with exit code ${end.code}`
  const said = end.stderr.subarray(-2000).toString().trim()
  return new ProtocolError('ProtocolError', `avfs ${how} and printed no document` + (said ? `: ${said}` : ''), { exitCode: 1 })
}

module.exports = { commandLine, duration, past, asList, octal, document, succeeded, broken }
