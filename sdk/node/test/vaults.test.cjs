'use strict'

const assert = require('node:assert/strict')
const fs = require('node:fs')
const path = require('node:path')
const { after, test } = require('node:test')
const { Readable, Writable } = require('node:stream')

const lib = require('avfs')
const { workspace } = require('./support.cjs')

const space = workspace()
const { avfs } = space
after(() => space.end())

let count = 0
const fresh = () => avfs.create(`v${++count}`)
const names = async () => (await avfs.vaults()).map((v) => v.name)

/** A writable stream that keeps what it gets. */
function sink() {
  const kept = []
  const stream = new Writable({ write(piece, _, done) { kept.push(piece); setImmediate(done) } })
  return { stream, bytes: () => Buffer.concat(kept) }
}

test('content survives byte for byte', async () => {
  const v = await fresh()
  for (const content of [Buffer.alloc(0), Buffer.from('text\n'), Buffer.from([...Array(256).keys()]), Buffer.from([0xff, 0xfe])]) {
    await v.write('f', content)
    assert.deepEqual(await v.readBytes('f'), content)
  }
  await v.write('/deep/er/t', 'gr\u00fc\u00df\n', { parents: true, mode: 0o600 })
  await v.write('deep/er/t', 'more', { append: true })
  assert.equal(await v.readText('deep/er/t'), 'gr\u00fc\u00df\nmore')
  assert.equal((await v.stat('deep/er/t')).mode, '0600')
})

test('no content and no name are errors before anything runs', async () => {
  const v = await fresh()
  await v.write('keep', 'me')
  for (const content of [undefined, null]) {
    await assert.rejects(v.write('keep', content), TypeError)
    await assert.rejects(v.write('keep', content, { append: true }), TypeError)
  }
  assert.equal(await v.readText('keep'), 'me')
  for (const name of ['', undefined, null, 5]) assert.throws(() => avfs.vault(name), TypeError)
})

test('content from streams and pieces, and into streams', async () => {
  const v = await fresh()
  const big = Buffer.alloc(20 << 20, 'avfs')
  assert.equal((await v.write('big', Readable.from((function* () { for (let i = 0; i < 20; i++) yield big.subarray(i << 20, (i + 1) << 20) })()))).bytes, big.length)
  const out = sink()
  await v.readInto('big', out.stream)
  assert.ok(out.bytes().equals(big))
  out.stream.write('and it is open still')
  await assert.rejects(v.readInto('big', new Writable({ write(_, __, done) { done(new Error('full')) } })), /full/)
  await v.write('pieces', ['a', Buffer.from('b')])
  assert.equal(await v.readText('pieces'), 'ab')
})

test('a source that fails writes nothing', async () => {
  const v = await fresh()
  await v.write('f', 'whole')
  await assert.rejects(v.write('f', (async function* () { yield 'half'; throw new Error('the disk went away') })()), /went away/)
  assert.equal(await v.readText('f'), 'whole')
})

test('names are never flags nor states', async () => {
  const v = await fresh()
  for (const name of ['-rf', '--json', '--', 'a@before', 'a b\'"$(x)\n', '@', '~', '*']) {
    await v.write(name, name)
    assert.equal(await v.readText(name), name)
    assert.equal((await v.stat(name)).path, '/' + name)
    await v.remove(name)
    assert.equal(await v.exists(name), false)
  }
  await v.checkpoints.save('kept')
  await assert.rejects(v.readText('nothing@kept'), lib.NotFound)
})

test('names that are no text are told, and cannot be given', async () => {
  const v = await fresh()
  await v.exec({ script: "printf 'x' > \"$(printf '\\377-\\344')\"", check: true })
  const [entry] = await v.list()
  assert.deepEqual(lib.pathBytes(entry), Buffer.from([0x2f, 0xff, 0x2d, 0xe4]))
  assert.deepEqual(lib.pathBytes(entry, 'name'), Buffer.from([0xff, 0x2d, 0xe4]))
  assert.deepEqual(['/\u00fc', { b64: '/w==' }].map((p) => lib.pathBytes(p)), [Buffer.from('/\u00fc'), Buffer.from([0xff])])
  for (const name of [lib.pathBytes(entry), '\ud800']) {
    await assert.rejects(v.readBytes(name), (err) => err instanceof lib.Usage && err.kind === 'Invalid')
  }
  await v.write(Buffer.from('gr\u00fc\u00df'), 'x')
  assert.ok(await v.exists('gr\u00fc\u00df'))
})

test('names and trees', async () => {
  const v = await fresh()
  await v.mkdir('src/deep', { parents: true })
  await v.write('src/a.py', 'import os\nprint(1)\n')
  await v.copy('src', 'copy', { recursive: true })
  await v.move('copy/a.py', 'b.py')
  await v.link('../b.py', 'src/l', { symbolic: true })
  assert.equal((await v.stat('src/l')).target, '../b.py')
  assert.equal((await v.stat('src/l', { follow: true })).type, 'file')
  assert.deepEqual((await v.tree('src')).map((e) => e.path), ['/src', '/src/a.py', '/src/deep', '/src/l'])
  assert.deepEqual((await v.find('/', { name: '*.py', type: 'f' })).map((e) => e.path), ['/b.py', '/src/a.py'])
  assert.deepEqual((await v.grep('^import', { glob: '*.py' })).map((m) => [m.path, m.line]), [['/b.py', 1], ['/src/a.py', 1]])
  assert.deepEqual(await v.grep('nothing like it'), [])
  assert.equal((await v.edit('b.py', 'os\n', 'sys\n')).replaced, 1)
  await v.tag('seen', 'b.py')
  assert.deepEqual((await v.tagged('seen')).map((t) => t.path), ['/b.py'])
  assert.deepEqual(await v.tags(), [{ tag: 'seen', paths: 1 }])
  assert.deepEqual((await v.meta('b.py', { owner: 'ada' })).meta, { owner: 'ada' })
  await v.untag('seen', 'b.py')
  await assert.rejects(v.remove('src'), { kind: 'IsDirectory' })
  await v.remove(['src', 'copy'], { recursive: true })
  await v.remove('src', { force: true })
  assert.deepEqual((await v.list()).map((e) => e.name), ['b.py'])
  assert.ok((await v.du()).length > 0)
})

test('import, export, archives', async () => {
  const v = await fresh()
  const host = path.join(space.work, 'host')
  fs.mkdirSync(path.join(host, 'd'), { recursive: true })
  fs.writeFileSync(path.join(host, 'd', 'f'), 'one')
  assert.equal((await v.importFrom(host)).files, 1)
  await v.write('d/f', 'two')
  assert.equal((await v.exportTo(path.join(space.work, 'out'))).files, 1)
  assert.equal(fs.readFileSync(path.join(space.work, 'out', 'd', 'f'), 'utf8'), 'two')
  assert.deepEqual((await v.applyTo(host)).changes.map((c) => c.path), ['d/f'])
  const out = sink()
  await v.exportTar(out.stream, '/', { compress: 'gzip' })
  assert.equal((await v.importTar(Readable.from([out.bytes()]), '/again')).files, 1)
  assert.equal(await v.readText('again/d/f'), 'two')
  await assert.rejects(v.exportTar(sink().stream, '/nothing'), lib.NotFound)
})

test('a fork goes with its context', async () => {
  const v = await fresh()
  await v.write('f', 'one')
  const name = await v.withFork(async (task) => {
    assert.ok((await names()).includes(task.name))
    assert.equal((await task.info()).parent, v.name)
    await task.write('f', 'two')
    return task.name
  })
  assert.equal(await v.readText('f'), 'one')
  assert.ok(!(await names()).includes(name))
  await assert.rejects(v.withFork(() => { throw new Error('broken') }, { name: 'broken' }), /broken/)
  assert.ok(!(await names()).includes('broken'))
  await v.withFork((task) => task.keep(), { name: 'kept' })
  assert.ok((await names()).includes('kept'))
  const kept = await avfs.vault('kept').discard()
  assert.equal(kept.deleted, 'kept')
  await v.withFork((task) => task.delete())
  const task = await v.fork()
  await (Symbol.asyncDispose ? task[Symbol.asyncDispose]() : task.dispose())
  assert.ok(!(await names()).includes(task.name))
})

test('merge', async () => {
  const v = await fresh()
  await v.write('f', 'one\n')
  await v.withFork(async (task) => {
    await task.write('g', 'new')
    assert.equal((await task.merge(undefined, { dryRun: true })).changed, 1)
    assert.deepEqual((await task.merge()).changes.map((c) => c.path), ['g'])
    await task.write('f', 'theirs\n')
    await v.write('f', 'ours\n')
    await assert.rejects(task.merge(), (err) => {
      assert.ok(err instanceof lib.Conflict && err.hint)
      assert.deepEqual(err.conflicts.map((c) => c.path), ['f'])
      return true
    })
    await task.merge(v, { theirs: 'f' })
  })
  assert.equal(await v.readText('f'), 'theirs\n')
})

test('history', async () => {
  const v = await fresh()
  await v.write('f', 'one')
  const kept = await v.checkpoints.save('kept', { message: 'before' })
  await v.write('f', 'three')
  assert.equal(await v.readText('f', { at: 'kept' }), 'one')
  assert.deepEqual((await v.checkpoints.diff('kept')).changes.map((c) => c.kind), ['modified'])
  assert.match((await v.diff('kept', 'now', { text: true })).patch, /\+three/)
  await v.undo()
  assert.equal(await v.readText('f'), 'one')
  await v.redo()
  assert.equal((await v.checkpoints.restore(kept.id, { paths: 'f' })).changed, 1)
  await v.write('g', 'x')
  const event = (await v.log({ limit: 1 }))[0].seq
  await v.write('h', 'y')
  await v.revert(event)
  assert.deepEqual((await v.list()).map((e) => e.name), ['f', 'h'])
  assert.deepEqual((await v.logOf('g')).map((e) => e.seq), [event + 2, event])
  await v.checkout('g', `#${event}`, { to: 'back' })
  assert.equal(await v.readText('back'), 'x')
  assert.equal((await v.checkpoints.info('kept')).message, 'before')
  await v.checkpoints.delete('kept')
  await assert.rejects(v.checkpoints.restore('kept'), { name: 'NotFound', kind: 'CheckpointNotFound' })
  assert.ok(Array.isArray(await v.checkpoints.list()))
})

test('quota, approvals, audit', async () => {
  const v = await fresh()
  assert.equal((await v.setQuota({ bytes: '1K' })).limits.max_bytes, 1024)
  await assert.rejects(v.write('f', Buffer.alloc(2000)), (err) => err instanceof lib.NoSpace && err.kind === 'QuotaExceeded' && 'limit' in err.details)
  await v.setQuota({ bytes: 'none' })
  assert.equal((await v.quota()).limits.max_bytes, null)

  const wanted = (await v.exec(['git', 'push'])).approvalId
  assert.ok((await v.approvals.list()).some((a) => a.id === wanted))
  assert.equal((await v.approvals.approve(wanted, { message: 'fine', ms: 60_000 })).state, 'approved')
  assert.equal((await v.exec(['git', 'push'])).status, 'completed')
  const again = (await v.exec(['git', 'push'])).approvalId
  await v.approvals.deny(again, { message: 'no' })
  assert.equal((await v.approvals.show(again)).message, 'no')

  await v.exec(['rm', '-rf', '/'])
  assert.deepEqual((await v.audit.list({ status: 'denied', limit: 1 }))[0].argv, ['rm', '-rf', '/'])
  const head = await v.audit.head()
  assert.deepEqual((await v.audit.verify(`${head.seq}:${head.hash}`)).findings, [])
  assert.notDeepEqual((await v.audit.verify(`${head.seq}:${'0'.repeat(64)}`)).findings, [])
})

test('errors are classes', async () => {
  const v = await fresh()
  await assert.rejects(avfs.create(v.name), { name: 'Conflict', kind: 'VaultExists', exitCode: 4 })
  await assert.rejects(avfs.vault('nosuch').list(), { name: 'NotFound', kind: 'VaultNotFound', exitCode: 3 })
  await assert.rejects(v.call('frobnicate'), lib.Usage)
  await assert.rejects(avfs.create('no/name'), lib.Usage)
  fs.writeFileSync(path.join(space.home, 'vaults', 'other.avfs'), 'no store at all')
  await assert.rejects(avfs.vault('other').list(), lib.NotStore)
  fs.unlinkSync(path.join(space.home, 'vaults', 'other.avfs'))
})

test('any command', async () => {
  const v = await fresh()
  assert.ok((await v.call('stats')).vaults >= 1)
  assert.equal((await avfs.call(['vault', 'info'], { args: [v.name] })).name, v.name)
  assert.equal((await avfs.checkPolicy(['rm', '-rf', '/'])).action, 'deny')
  assert.ok((await avfs.version()).backends.includes('sqlite'))
})

test('import and require give the same', async () => {
  const byImport = await import('avfs')
  assert.deepEqual(Object.keys(byImport).sort(), Object.keys(lib).sort())
  assert.equal(byImport.Avfs, lib.Avfs)
})
