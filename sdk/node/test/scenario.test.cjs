'use strict'

// The scenario that every way to use avfs from a program tells the same.

const assert = require('node:assert/strict')
const fs = require('node:fs')
const path = require('node:path')
const { after, test } = require('node:test')

const { AvfsError, outputBytes } = require('avfs')
const { workspace } = require('./support.cjs')

const scenario = JSON.parse(fs.readFileSync(path.join(__dirname, '../../testdata/scenario.json')))
const space = workspace()
after(() => space.end())

function given(value, kept) {
  return typeof value === 'string' ? value.replace(/\$\{(\w+)\}/g, (whole, name) => kept[name] ?? whole) : value
}

function normalised(doc) {
  if (Array.isArray(doc)) return doc.map(normalised)
  if (typeof doc !== 'object' || doc === null) return doc
  return Object.fromEntries(Object.entries(doc).filter(([k]) => !scenario.removed.includes(k)).map(([k, v]) => [k, normalised(v)]))
}

async function cat(vault, name) {
  const raw = await vault.readBytes(name)
  const text = raw.toString()
  return Buffer.from(text).equals(raw) ? { path: name, text } : { path: name, base64: raw.toString('base64') }
}

async function execute(vault, a, cancelOn) {
  const options = { script: a.shell, cwd: a.cwd, env: a.env, timeout: a.timeout_ms }
  if (cancelOn !== undefined) {
    const run = vault.stream(a.argv ?? [], options)
    for await (const event of run) if (outputBytes(event).includes(cancelOn)) run.interrupt()
    return run.result.envelope
  }
  try {
    return (await vault.exec(a.argv ?? [], options)).envelope
  } catch (err) {
    if (err.result === undefined) throw err
    return err.result.envelope
  }
}

/** How each operation is done; gives the document. */
const operations = {
  vault_create: async (v, a) => (await space.avfs.create(a.name)).info(),
  vault_fork: async (v, a) => (await v.fork(a.name)).info(),
  vault_merge: (v, a) => v.merge(a.into, { theirs: a.theirs, dryRun: a.dry_run }),
  import: (v, a) => v.importFrom(a.source),
  ls: (v, a) => v.list(a.path),
  cat: (v, a) => cat(v, a.path),
  write: (v, a) => v.write(a.path, a.text, { parents: a.parents }),
  edit: (v, a) => v.edit(a.path, a.old, a.new, { all: a.all }),
  grep: (v, a) => v.grep(a.pattern, { ignoreCase: a.ignore_case, glob: a.glob, context: a.context }),
  find: (v, a) => v.find('/', { name: a.name }),
  exec: (v, a, step) => execute(v, a, step.cancel_on),
  output: (v, a) => v.call('output', { args: [a.exec] }),
  diff: (v, a) => v.diff(undefined, undefined, { text: a.text }),
  checkpoint_save: (v, a) => v.checkpoints.save(a.name, { message: a.message }),
  checkpoint_list: (v) => v.checkpoints.list(),
  checkpoint_restore: (v, a) => v.checkpoints.restore(a.id, { paths: a.paths }),
  undo: (v) => v.undo(),
  redo: (v) => v.redo(),
  log: (v, a) => v.log({ limit: a.limit }),
  approvals_approve: (v, a) => v.approvals.approve(a.id),
}

test('scenario', async (t) => {
  const source = path.join(space.work, 'source')
  for (const [name, content] of Object.entries(scenario.files)) {
    const file = path.join(source, name)
    fs.mkdirSync(path.dirname(file), { recursive: true })
    fs.writeFileSync(file, content.text ?? Buffer.from(content.base64, 'base64'), { mode: 0o644 })
  }
  const kept = { source }
  assert.ok(scenario.steps.length > 20)
  for (const step of scenario.steps) {
    await t.test(step.name, async () => {
      const a = Object.fromEntries(Object.entries(step.args).map(([k, v]) => [k, given(v, kept)]))
      const vault = space.avfs.vault(a.vault ?? a.source ?? 'unused')
      let doc
      let failed = false
      try {
        doc = await operations[step.op](vault, a, step)
      } catch (err) {
        if (!(err instanceof AvfsError)) throw err
        failed = true
        doc = { error: err.kind, message: err.message, ...err.details }
      }
      assert.equal(failed, step.fails ?? false, JSON.stringify(doc))
      for (const [name, place] of Object.entries(step.keep ?? {})) kept[name] = place.split('.').reduce((at, key) => at[key], doc)
      assert.deepEqual(normalised(doc), step.expect)
    })
  }
})
