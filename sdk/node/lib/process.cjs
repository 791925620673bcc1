'use strict'

const { spawn } = require('node:child_process')
const { pipeline } = require('node:stream/promises')

const { BinaryNotFound, CallTimeout, Usage } = require('./errors.cjs')

// The processes that run. Those that are left when this program ends by itself are
// told to end; with Ctrl-C the terminal tells them.
const running = new Set()
process.on('exit', () => {
  for (const child of running) child.kill('SIGINT')
})

/**
 * A running avfs with its output. Whoever stops waiting for it ends it: SIGINT first,
 * on which avfs ends what it runs and records it, and SIGKILL after settings.grace.
 */
class Child {
  #settings
  #process
  #errors = []
  #failure // why the input could not be read, or the call was ended
  #closed
  #release = () => {}

  constructor(settings, args, source) {
    settings.signal?.throwIfAborted()
    this.#settings = settings
    this.#process = start(settings, args, source === undefined ? 'ignore' : 'pipe')
    running.add(this.#process)
    this.#process.stderr.on('data', (piece) => this.#errors.push(piece))
    this.#closed = new Promise((resolve) => {
      this.#process.on('error', (err) => {
        if (this.#process.pid === undefined) this.#failure ??= cannotStart(settings, err)
      })
      this.#process.on('close', (code, signal) => {
        running.delete(this.#process)
        this.#release()
        resolve({ code, signal })
      })
    })
    this.#watch()
    if (source !== undefined) void this.#feed(source)
  }

  /** Ends the process when the call takes too long or is aborted. */
  #watch() {
    const { signal, timeout } = this.#settings
    const end = (why) => {
      this.#failure ??= why
      void this.stop()
    }
    const abort = () => end(signal.reason)
    const timer = timeout === undefined ? undefined : setTimeout(() => end(tooSlow(timeout)), timeout)
    signal?.addEventListener('abort', abort, { once: true })
    this.#release = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
    }
  }

  async #feed(source) {
    const pipe = this.#process.stdin
    let gone = false
    pipe.on('error', () => { gone = true }) // it has what it wants, or says why not
    pipe.on('close', () => { gone = true })
    try {
      for await (const piece of pieces(source)) {
        if (gone) return
        if (!pipe.write(piece)) await room(pipe)
      }
    } catch (err) { // an end of the input here would look like its true end
      this.#failure ??= err
      this.#process.kill('SIGKILL')
      return
    }
    pipe.end()
  }

  get stdout() {
    return this.#process.stdout
  }

  /** Passes a signal on; a process that has ended gets none. */
  send(signal) {
    this.#process.kill(signal)
  }

  /** Waits for the end. The output must be read meanwhile. */
  async finish() {
    const { code, signal } = await this.#closed
    if (this.#failure !== undefined) throw this.#failure
    return { code, signal, stderr: Buffer.concat(this.#errors) }
  }

  /** Ends the process and reaps it. */
  async stop() {
    if (!running.has(this.#process)) return
    this.#process.kill('SIGINT')
    const timer = setTimeout(() => this.#process.kill('SIGKILL'), this.#settings.grace)
    this.stdout.resume() // or it might wait for a reader
    await this.#closed
    clearTimeout(timer)
  }
}

function start(settings, args, stdin) {
  try {
    return spawn(settings.binary, args, { stdio: [stdin, 'pipe', 'pipe'], env: { ...process.env, ...settings.env }, cwd: settings.cwd })
  } catch (err) {
    if (err.code !== 'E2BIG') throw err
    throw new Usage('ArgumentsTooLong', 'the arguments are longer than the system takes', {
      hint: 'give large content as stdin, or write it to a file', exitCode: 2, cause: err,
    })
  }
}

/** Waits until a pipe takes more, or is gone. */
function room(pipe) {
  if (pipe.destroyed) return Promise.resolve()
  return new Promise((resolve) => {
    const done = () => {
      pipe.off('drain', done)
      pipe.off('close', done)
      resolve()
    }
    pipe.on('drain', done)
    pipe.on('close', done)
  })
}

function cannotStart(settings, err) {
  return new BinaryNotFound('BinaryNotFound', `${settings.binary} cannot be started: ${err.message}`, {
    hint: 'name the program with AVFS_BIN or new Avfs({ binary })', exitCode: 127, cause: err,
  })
}

function tooSlow(timeout) {
  return new CallTimeout('CallTimeout', `the call took longer than ${timeout} ms and was ended`, { exitCode: 124 })
}

async function* pieces(source) {
  if (typeof source === 'string' || source instanceof Uint8Array) yield source
  else yield* source
}

/** Runs a call to its end. With a sink, a writable stream, its output goes there. */
async function run(settings, args, source, sink) {
  const child = new Child(settings, args, source)
  const kept = []
  try {
    if (sink === undefined) child.stdout.on('data', (piece) => kept.push(piece))
    else await pipeline(child.stdout, sink, { end: false })
    const end = await child.finish()
    return { ...end, stdout: Buffer.concat(kept) }
  } catch (err) {
    await child.stop()
    throw err
  }
}

/** The lines of a stream, as they come. It goes on reading when nobody takes them. */
class Lines {
  #stream
  #rest = []
  #lines = []
  #ended = false
  #wake = () => {}

  constructor(stream) {
    this.#stream = stream
    stream.on('data', (piece) => this.#take(piece))
    stream.on('close', () => {
      this.#ended = true
      this.#wake()
    })
  }

  #take(piece) {
    let from = 0
    for (let at; (at = piece.indexOf(10, from)) >= 0; from = at + 1) {
      this.#lines.push(Buffer.concat([...this.#rest, piece.subarray(from, at)]))
      this.#rest = []
    }
    if (from < piece.length) this.#rest.push(piece.subarray(from))
    if (this.#lines.length > 1000) this.#stream.pause()
    this.#wake()
  }

  /** The next line, undefined at the end. */
  async next() {
    while (this.#lines.length === 0) {
      if (this.#ended) return undefined
      this.#stream.resume()
      await new Promise((resolve) => { this.#wake = resolve })
    }
    return this.#lines.shift()
  }
}

module.exports = { Child, Lines, run }
