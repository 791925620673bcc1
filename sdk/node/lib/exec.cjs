'use strict'

const c = require('./command.cjs')
const { Child, Lines } = require('./process.cjs')
const { resultOf } = require('./result.cjs')

/** The arguments of an exec, with the options of the methods exec and stream. */
function execLine(mode, vault, argv, options) {
  if (!Array.isArray(argv)) throw new TypeError('a command is a list of arguments; give a line of a shell as { script }')
  const { script, env, secrets, stdin, timeout, check, signal, ...flags } = options
  return c.commandLine(['exec'], {
    vault,
    mode,
    args: argv,
    flags: {
      ...flags,
      shell: script,
      env: Object.entries(env ?? {}).map(([k, v]) => (v === null || v === undefined ? k : `${k}=${v}`)),
      secret: Object.entries(secrets ?? {}).map(([k, v]) => `${k}=${v}`),
      stdin: stdin !== undefined,
      timeout: c.duration(timeout),
    },
  })
}

/** A command that runs, event by event. It starts when the first event is asked for. */
class ExecStream {
  #start
  #child
  #events
  #result

  constructor(settings, args, source) {
    this.#start = () => new Child(settings, args, source)
  }

  [Symbol.asyncIterator]() {
    this.#events ??= this.#read()
    return this.#events
  }

  async *#read() {
    this.#child = this.#start()
    let whole = false
    try {
      const lines = new Lines(this.#child.stdout)
      for (let line; (line = await lines.next()) !== undefined;) {
        const event = JSON.parse(line)
        if (event.event === 'ended' && event.envelope) this.#result = resultOf(event.envelope, false)
        yield event
      }
      const end = await this.#child.finish()
      whole = true
      if (this.#result === undefined) {
        c.succeeded(end)
        throw c.broken(end)
      }
    } finally {
      if (!whole) await this.#child.stop()
    }
  }

  interrupt() {
    this.#child?.send('SIGINT')
  }

  get result() {
    if (this.#result === undefined) throw new Error('the command has not ended, or its events were not taken')
    return this.#result
  }

  async wait() {
    for await (const _ of this);
    return this.result
  }

  async close() {
    await this.#child?.stop() // first, or an event that is waited for would have to come
    await this[Symbol.asyncIterator]().return()
  }
}

module.exports = { execLine, ExecStream }
