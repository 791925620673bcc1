'use strict'

const assert = require('node:assert/strict')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { after, afterEach, before, test } = require('node:test')
const { setTimeout: sleep } = require('node:timers/promises')
const { Readable } = require('node:stream')

const lib = require('avfs')
const { children, workspace } = require('./support.cjs')

const space = workspace()
const { avfs } = space
let vault
before(async () => { vault = await avfs.create('v') })
after(() => space.end())
afterEach(() => assert.deepEqual(children(), [], 'processes are left'))

const lastStatus = async () => (await vault.audit.list({ limit: 1 }))[0].status

test('result', async () => {
  const r = await vault.exec(['sh', '-c', "echo out; printf '\\377' >&2; echo x > made"])
  assert.deepEqual([r.ok, r.status, r.exitCode, r.stdout], [true, 'completed', 0, 'out\n'])
  assert.deepEqual(r.stderrData, Buffer.from([0xff]))
  assert.deepEqual(r.changedFiles.map((c) => [c.kind, c.path]), [['added', 'made']])
  assert.ok(r.checkpoint)
  assert.equal(String(await vault.output(r.id)), 'out\n')
  assert.deepEqual(await vault.output(r.id, { stream: 'stderr' }), Buffer.from([0xff]))
  assert.equal(String(await vault.output(r.id, { tail: 2 })), 't\n')
})

test('arguments are what they are', async () => {
  const argv = ['printf', '%s|', '-x', '--json', '--', 'a b', '$HOME', '\n', '\'"', '']
  assert.equal((await vault.exec(argv, { check: true })).stdout, argv.slice(2).join('|') + '|')
  await assert.rejects(vault.exec('ls -l'), TypeError)
})

test('options', async () => {
  await vault.mkdir('sub', { parents: true })
  const script = 'basename "$PWD"; echo "$A=$B"; cat'
  const r = await vault.exec({ script, cwd: 'sub', env: { A: '-1 =', B: null }, stdin: 'in', timeout: 20_000, check: true })
  assert.equal(r.stdout, `sub\n-1 ==${process.env.B ?? ''}\nin`)
  assert.equal((await vault.exec({ script: 'touch x', readonly: true })).exitCode, 1)
  assert.ok((await vault.exec(['ls'], { dryRun: true })).ok)
  await assert.rejects(vault.exec(['true'], { memory: 'a lot' }), lib.Usage)
  const big = Buffer.alloc(3_000_000, 'x')
  assert.equal((await vault.exec(['wc', '-c'], { stdin: Readable.from([big]), check: true })).stdout.trim(), '3000000')
  assert.ok((await vault.exec(['true'], { stdin: big })).ok, 'nobody has to read the input')
})

test('what is thrown', async () => {
  for (const [argv, options, Class, code] of [
    [['rm', '-rf', '/'], {}, lib.Denied, 77],
    [['git', 'push'], {}, lib.ApprovalRequired, 78],
    [['sh', '-c', 'echo why >&2; exit 3'], {}, lib.CommandFailed, 3],
    [['no-such-program'], {}, lib.FailedToStart, 127],
    [['sleep', '30'], { timeout: 300 }, lib.TimedOut, 124],
  ]) {
    assert.equal((await vault.exec(argv, options)).ok, false)
    await assert.rejects(vault.exec(argv, { ...options, check: true }), (err) => {
      assert.ok(err instanceof Class && err instanceof lib.ExecError && err.result instanceof lib.ExecResult, err)
      assert.equal(err.exitCode, code)
      return true
    })
  }
  await assert.rejects(avfs.vault('nosuch').exec(['true']), { name: 'NotFound', kind: 'VaultNotFound' })
})

test('events', async () => {
  const run = vault.stream({ script: "echo one; printf '\\377' >&2; echo x > e" })
  assert.throws(() => run.result)
  const events = []
  for await (const event of run) events.push(event)
  assert.deepEqual(events.map((e) => e.event).filter((e) => e !== 'stdout' && e !== 'stderr'), ['started', 'changed', 'ended'])
  assert.deepEqual(Buffer.concat(events.filter((e) => e.event === 'stderr').map(lib.outputBytes)), Buffer.from([0xff]))
  assert.equal(run.result.stdout, 'one\n')
  assert.equal((await vault.stream(['rm', '-rf', '/']).wait()).status, 'denied')
  await assert.rejects(avfs.vault('nosuch').stream(['true']).wait(), { kind: 'VaultNotFound' })
  await assert.rejects(vault.stream(['true'], { memory: 'a lot' }).wait(), lib.Usage)
})

test('who takes no more events ends the command', async () => {
  for await (const event of vault.stream({ script: 'echo one; sleep 30' })) if (event.event === 'stdout') break
  assert.equal(await lastStatus(), 'interrupted')
  const run = vault.stream({ script: 'echo one; sleep 30' })
  const first = await run[Symbol.asyncIterator]().next()
  assert.equal(first.value.event, 'started')
  await run.close()
  assert.equal(await lastStatus(), 'interrupted')
  await vault.stream(['true']).close() // never begun
})

test('much output at once', async () => {
  let bytes = 0
  for await (const event of vault.stream({ script: 'head -c 3000000 /dev/zero | tr "\\0" x' })) {
    bytes += lib.outputBytes(event).length
    if (bytes % 7 === 0) await sleep(1)
  }
  assert.equal(bytes, 3_000_000)
})

test('interrupt', async () => {
  const run = vault.stream({ script: "trap 'echo caught; exit 5' INT; echo ready; sleep 30 & wait" })
  for await (const event of run) if (String(lib.outputBytes(event)) === 'ready\n') run.interrupt()
  assert.deepEqual([run.result.status, run.result.stdout], ['interrupted', 'ready\ncaught\n'])
})

test('abort and timeout', async () => {
  const begun = Date.now()
  const abort = new AbortController()
  const call = vault.exec(['sleep', '30'], { signal: abort.signal })
  setTimeout(() => abort.abort(), 400)
  await assert.rejects(call, { name: 'AbortError' })
  assert.equal(await lastStatus(), 'interrupted')
  await assert.rejects(vault.exec(['true'], { signal: abort.signal }), { name: 'AbortError' })
  await assert.rejects(vault.with({ timeout: 400 }).exec(['sleep', '30']), lib.CallTimeout)
  await assert.rejects(vault.with({ signal: AbortSignal.timeout(400) }).stream(['sleep', '30']).wait(), { name: 'TimeoutError' })
  await assert.rejects(vault.withFork((task) => task.with({ timeout: 400 }).exec(['sleep', '30']), { name: 'slow' }), lib.CallTimeout)
  assert.ok(!(await avfs.vaults()).some((v) => v.name === 'slow'))
  assert.ok(Date.now() - begun < 20_000)
})

test('side by side', async () => {
  const one = (n) => vault.withFork(async (task) => (await task.exec(['echo', String(n)], { check: true })).stdout.trim())
  assert.deepEqual(await Promise.all([0, 1, 2, 3].map(one)), ['0', '1', '2', '3'])
})

test('a program that ends takes its commands with it', async () => {
  const code = "const v = new (require('avfs').Avfs)().vault('v'); v.exec(['sleep', '30']); setTimeout(() => process.exit(7), 500)"
  const program = spawn(process.execPath, ['-e', code], { cwd: __dirname, env: { ...process.env, AVFS_HOME: space.home } })
  assert.deepEqual(await once(program, 'exit'), [7, null])
  for (let i = 0; i < 100 && (await lastStatus()) !== 'interrupted'; i++) await sleep(50)
  assert.equal(await lastStatus(), 'interrupted')
})
