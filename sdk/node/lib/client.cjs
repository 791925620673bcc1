'use strict'

const c = require('./command.cjs')
const { run } = require('./process.cjs')
const { Vault } = require('./vault.cjs')

/** The program avfs and the vaults that it keeps. index.d.cts says what each method does. */
class Avfs {
  #settings

  constructor({ binary, home, env, cwd, timeout, signal, grace = 5000 } = {}) {
    this.#settings = {
      binary: binary ?? (process.env.AVFS_BIN || 'avfs'),
      env: home === undefined ? { ...env } : { ...env, AVFS_HOME: home },
      cwd, timeout, signal, grace,
    }
  }

  with({ timeout = this.#settings.timeout, signal = this.#settings.signal } = {}) {
    const other = new Avfs()
    other.#settings = { ...this.#settings, timeout, signal }
    return other
  }

  /** How a call is made that has a signal of its own. */
  settings({ signal } = {}) {
    return signal === undefined ? this.#settings : { ...this.#settings, signal }
  }

  version() { return this.call('version') }

  async create(name, { backend } = {}) {
    await this.call('vault create', { flags: { backend }, args: [name] })
    return new Vault(this, name)
  }

  vault(name) { return new Vault(this, name) }
  vaults() { return this.call('vault list') }
  checkPolicy(argv) { return this.call('policy check', { args: argv }) }

  async call(command, { flags, args, vault, stdin, signal } = {}) {
    const line = c.commandLine(Array.isArray(command) ? command : command.split(' '), { flags, args, vault })
    return c.document(await run(this.settings({ signal }), line, stdin))
  }

  /** The output of a command that prints no document. */
  async bytes(vault, command, flags, args, sink) {
    const line = c.commandLine([command], { flags: { ...flags, quiet: true }, args, vault, mode: '--json-errors' })
    const end = await run(this.#settings, line, undefined, sink)
    c.succeeded(end)
    return end.stdout
  }
}

module.exports = { Avfs }
