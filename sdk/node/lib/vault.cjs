'use strict'

const { randomBytes } = require('node:crypto')

const c = require('./command.cjs')
const { AvfsError, NotFound } = require('./errors.cjs')
const { execLine, ExecStream } = require('./exec.cjs')
const { run } = require('./process.cjs')
const { resultOf } = require('./result.cjs')

const nameOf = (vault) => (typeof vault === 'string' ? vault : vault.name)

/** A vault. index.d.cts says what each method does. */
class Vault {
  constructor(avfs, name) {
    if (typeof name !== 'string' || name === '') { // to avfs, none is the current vault
      throw new TypeError('the name of a vault is a string that is not empty')
    }
    this.avfs = avfs
    this.name = name
    this.checkpoints = new Checkpoints(this)
    this.approvals = new Approvals(this)
    this.audit = new Audit(this)
  }

  with(options) { return new Vault(this.avfs.with(options), this.name) }
  call(command, options = {}) { return this.avfs.call(command, { ...options, vault: this.name }) }

  // The vault itself.

  info() { return this.avfs.call('vault info', { args: [this.name] }) }

  async fork(name, { at } = {}) {
    name ??= `${this.name}-${randomBytes(4).toString('hex')}`
    await this.avfs.call('vault fork', { flags: { at }, args: [this.name, name] })
    return new Fork(this.avfs, name, this.name)
  }

  async withFork(work, { name, at } = {}) {
    const fork = await this.fork(name, { at })
    let value
    try {
      value = await work(fork)
    } catch (err) {
      await fork.dispose().catch((also) => { // what went wrong first is what to tell
        if (err instanceof Error) err.message += `; and the fork ${fork.name} could not be discarded: ${also.message}`
      })
      throw err
    }
    await fork.dispose()
    return value
  }

  merge(into, { paths, ours, theirs, conflictMarkers, dryRun } = {}) {
    const flags = { into: nameOf(into), paths: c.asList(paths), ours: c.asList(ours), theirs: c.asList(theirs), conflictMarkers, dryRun }
    return this.avfs.call('vault merge', { flags, args: [this.name] })
  }

  discard({ dryRun } = {}) { return this.avfs.call('vault discard', { flags: { yes: true, dryRun }, args: [this.name] }) }
  delete() { return this.avfs.call('vault delete', { flags: { yes: true }, args: [this.name] }) }
  quota() { return this.call('quota show') }
  setQuota({ bytes, files, fileBytes } = {}) { return this.call('quota set', { flags: { bytes, files, fileBytes } }) }

  // Running commands.

  async exec(argv = [], options = {}) {
    if (!Array.isArray(argv) && typeof argv === 'object') [argv, options] = [[], argv]
    const settings = this.avfs.settings(options)
    const end = await run(settings, execLine('--json', this.name, argv, options), options.stdin)
    return resultOf(c.document(end), options.check)
  }

  stream(argv = [], options = {}) {
    if (!Array.isArray(argv) && typeof argv === 'object') [argv, options] = [[], argv]
    const line = execLine('--json-errors', this.name, argv, { ...options, events: true })
    return new ExecStream(this.avfs.settings(options), line, options.stdin)
  }

  output(exec = 'last', { stream = 'stdout', tail, sink } = {}) {
    const flags = { stderr: stream === 'stderr', combined: stream === 'combined', tail }
    return this.avfs.bytes(this.name, 'output', flags, [exec], sink)
  }

  // Files.

  readBytes(path, { at } = {}) { return this.#read(path, at) }
  async readText(path, { at } = {}) { return (await this.#read(path, at)).toString() }
  async readInto(path, sink, { at } = {}) { await this.#read(path, at, sink) }
  async #read(path, at, sink) { return this.avfs.bytes(this.name, 'cat', {}, [c.past(path, at)], sink) }

  async write(path, content, { append, parents, mode } = {}) {
    if (content === undefined || content === null) {
      throw new TypeError(`the content of a file is bytes, a text, a stream or pieces, not ${content}`)
    }
    return this.call('write', { flags: { append, parents, mode: c.octal(mode) }, args: [path], stdin: content })
  }

  async edit(path, before, after, { all } = {}) {
    return this.call('edit', { flags: { old: before, new: after, all }, args: [path] })
  }

  async list(path = '/', { at } = {}) { return this.call('ls', { args: [c.past(path, at)] }) }
  async stat(path, { follow, at } = {}) { return (await this.call('stat', { flags: { follow }, args: [c.past(path, at)] }))[0] }

  async exists(path, { at } = {}) {
    try {
      await this.stat(path, { follow: true, at })
      return true
    } catch (err) {
      if (err instanceof AvfsError && (err.kind === 'NotFound' || err.kind === 'NotDirectory')) return false
      throw err
    }
  }

  async tree(path = '/', { depth, at } = {}) { return this.call('tree', { flags: { depth }, args: [c.past(path, at)] }) }
  async mkdir(path, { parents, mode } = {}) { await this.call('mkdir', { flags: { parents, mode: c.octal(mode) }, args: [path] }) }
  async remove(paths, { recursive, force } = {}) { await this.call('rm', { flags: { recursive, force }, args: c.asList(paths) }) }
  async move(source, dest) { await this.call('mv', { args: [source, dest] }) }
  async copy(source, dest, { recursive } = {}) { await this.call('cp', { flags: { recursive }, args: [source, dest] }) }
  async link(target, name, { symbolic, force } = {}) { await this.call('ln', { flags: { symbolic, force }, args: [target, name] }) }

  async find(paths = '/', { name, iname, type, size, mtime, tag, maxDepth, at } = {}) {
    const flags = { name, iname, type, size, mtime, tag, maxdepth: maxDepth }
    return this.call('find', { flags, args: c.asList(paths).map((p) => c.past(p, at)) })
  }

  async grep(pattern, { paths = '/', ignoreCase, fixed, word, glob, context, at } = {}) {
    const flags = { ignoreCase, fixed, word, glob, context }
    return this.call('grep', { flags, args: [pattern, ...c.asList(paths).map((p) => c.past(p, at))] })
  }

  async du(path = '/', { depth } = {}) { return this.call('du', { flags: { depth }, args: [path] }) }

  async tag(tag, paths) {
    if (c.asList(paths).length === 0) throw new TypeError('tag takes a tag and paths')
    await this.call('tag', { args: [tag, ...c.asList(paths)] })
  }

  async untag(tag, paths) { await this.call('untag', { args: [tag, ...c.asList(paths)] }) }
  tagged(tag) { return this.call('tag', { args: [tag] }) }
  tags() { return this.call('tag') }

  async meta(path, values = {}, { unset } = {}) {
    return this.call('meta', { flags: { unset: c.asList(unset) }, args: [path, ...Object.entries(values).map(([k, v]) => `${k}=${v}`)] })
  }

  // Import and export.

  async importFrom(source, dest = '/', { update, gitignore, git } = {}) {
    return this.call('import', { flags: { update, gitignore, git }, args: [source, dest] })
  }

  async importTar(archive, dest = '/') { return this.call('import', { flags: { tar: true }, args: ['-', dest], stdin: archive }) }

  async exportTo(dest, source = '/', { at, changedSince, overwrite } = {}) {
    return this.call('export', { flags: { checkpoint: at, changedSince, overwrite }, args: [source, dest] })
  }

  async exportTar(sink, source = '/', { at, compress = 'none' } = {}) {
    await this.avfs.bytes(this.name, 'export', { tar: true, compress, checkpoint: at }, [source, '-'], sink)
  }

  async applyTo(dest, { paths, force, dryRun } = {}) {
    return this.call('apply', { flags: { to: dest, force, dryRun }, args: c.asList(paths) })
  }

  // History.

  async diff(before = 'base', after = 'now', { paths, text, patch, limit } = {}) {
    return this.call('diff', { flags: { text, patch, limit }, args: [before, after, ...c.asList(paths)] })
  }

  log({ limit } = {}) { return this.call('log', { flags: { limit } }) }
  async logOf(path, { limit } = {}) { return this.call('log', { flags: { limit }, args: [path] }) }

  async undo({ paths, to, event, preview, force } = {}) {
    return this.call('undo', { flags: { to, event, preview, force }, args: c.asList(paths) })
  }

  redo({ preview, force } = {}) { return this.call('redo', { flags: { preview, force } }) }

  async revert(event, { paths, preview, force } = {}) {
    return this.call('revert', { flags: { preview, force }, args: [String(event), ...c.asList(paths)] })
  }

  async checkout(path, at, { to } = {}) { return this.call('checkout', { flags: { to }, args: [c.past(path, at)] }) }
}

/** A fork of a vault, which its context discards. */
class Fork extends Vault {
  #kept = false

  constructor(avfs, name, parent) {
    super(avfs, name)
    this.parent = parent
  }

  keep() { this.#kept = true }
  merge(into, options) { return super.merge(into ?? this.parent, options) }

  async dispose() {
    if (this.#kept) return
    try {
      await this.discard()
    } catch (err) {
      if (!(err instanceof NotFound)) throw err // it was discarded or deleted before
    }
  }
}

if (Symbol.asyncDispose) {
  Fork.prototype[Symbol.asyncDispose] = Fork.prototype.dispose
  ExecStream.prototype[Symbol.asyncDispose] = ExecStream.prototype.close
}

/** The kept states of a vault. */
class Checkpoints {
  #vault
  constructor(vault) { this.#vault = vault }

  save(name, { message } = {}) { return this.#vault.call('checkpoint save', { flags: { message }, args: c.asList(name) }) }
  list() { return this.#vault.call('checkpoint list') }
  info(checkpoint) { return this.#vault.call('checkpoint info', { args: [checkpoint] }) }

  restore(checkpoint, { paths, preview } = {}) {
    return this.#vault.call('checkpoint restore', { flags: { preview }, args: [checkpoint, ...c.asList(paths)] })
  }

  diff(checkpoint, after = 'now', options = {}) { return this.#vault.diff(checkpoint, after, options) }
  delete(checkpoint) { return this.#vault.call('checkpoint delete', { args: [checkpoint] }) }
}

/** What the policy wants approval for in a vault's store. */
class Approvals {
  #vault
  constructor(vault) { this.#vault = vault }

  list({ all } = {}) { return this.#vault.call('approvals list', { flags: { all } }) }
  show(approval) { return this.#vault.call('approvals show', { args: [approval] }) }

  async approve(approval, { message, ms } = {}) {
    return this.#vault.call('approvals approve', { flags: { message, for: c.duration(ms) }, args: [approval] })
  }

  deny(approval, { message } = {}) { return this.#vault.call('approvals deny', { flags: { message }, args: [approval] }) }
}

/** What was asked for in a vault, run or not. */
class Audit {
  #vault
  constructor(vault) { this.#vault = vault }

  list({ limit, since, status } = {}) { return this.#vault.call('audit list', { flags: { limit, since, status } }) }
  verify(...heads) { return this.#vault.call('audit verify', { flags: { head: heads } }) }
  head() { return this.#vault.call('audit head') }
}

module.exports = { Vault, Fork, Checkpoints, Approvals, Audit }
