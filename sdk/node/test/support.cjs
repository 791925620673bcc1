'use strict'

const { execFileSync } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')

const { Avfs } = require('avfs')

/** An empty workspace with a client; end it behind the tests. */
function workspace() {
  const work = fs.mkdtempSync(path.join(os.tmpdir(), 'avfs-node-'))
  const home = path.join(work, 'home')
  const avfs = new Avfs({ home, env: { AVFS_VAULT: '' } })
  return {
    work, home, avfs,
    end() {
      const vaults = path.join(home, 'vaults')
      for (const name of fs.existsSync(vaults) ? fs.readdirSync(vaults) : []) {
        if (!name.endsWith('.sock')) continue
        const args = ['serve', '--stop', path.basename(name, '.sock'), '--force']
        execFileSync(process.env.AVFS_BIN ?? 'avfs', args, { env: { ...process.env, AVFS_HOME: home }, stdio: 'ignore' })
      }
      const left = fs.readFileSync('/proc/self/mounts', 'utf8').split('\n').filter((line) => line.includes(work))
      fs.rmSync(work, { recursive: true })
      if (left.length > 0) throw new Error(`mounts are left: ${left}`)
    },
  }
}

/** The processes that this one has started and not reaped. */
function children() {
  const found = []
  for (const pid of fs.readdirSync('/proc').filter((n) => /^\d+$/.test(n))) {
    try {
      const stat = fs.readFileSync(`/proc/${pid}/stat`, 'utf8')
      if (Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === process.pid) found.push(stat.split(' ')[1])
    } catch {
      // it has ended meanwhile
    }
  }
  return found
}

module.exports = { workspace, children }
