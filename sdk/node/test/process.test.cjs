'use strict'

// The process that is called, with programs that misbehave in its place.

const assert = require('node:assert/strict')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { after, test } = require('node:test')

const lib = require('avfs')
const { children } = require('./support.cjs')

const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'avfs-node-'))
after(() => fs.rmSync(dir, { recursive: true }))

let count = 0
function program(script) {
  const file = path.join(dir, `program${++count}`)
  fs.writeFileSync(file, '#!/bin/sh\n' + script, { mode: 0o755 })
  return file
}
const call = (script, options) => new lib.Avfs({ binary: program(script), ...options }).call('x')

test('no document', async () => {
  for (const script of ['echo text', 'exit 3', 'echo broken >&2; kill -9 $$', "echo '{'; exit 1"]) {
    await assert.rejects(call(script), lib.ProtocolError)
  }
})

test('new kinds and fields', async () => {
  await assert.rejects(call(`echo '{"error":"BrandNew","message":"m","hint":"h","more":[1]}'; exit 4`), {
    name: 'Conflict', kind: 'BrandNew', message: 'm', hint: 'h', details: { more: [1] }, exitCode: 4,
  })
  await assert.rejects(call(`echo '{"error":"constructor","message":"m"}'; exit 9`), { name: 'AvfsError', kind: 'constructor', exitCode: 9 })
  assert.deepEqual(await call(`echo '{"name":"v","brand_new":{"a":1}}'`), { name: 'v', brand_new: { a: 1 } })
})

test('one that does not end is killed', async () => {
  const begun = Date.now()
  await assert.rejects(call("trap '' INT\nwhile :; do sleep 0.05; done", { timeout: 300, grace: 300 }), lib.CallTimeout)
  assert.ok(Date.now() - begun < 5000)
  await assert.rejects(call("trap 'exit 1' INT\nwhile :; do echo yes; done", { timeout: 300 }), lib.CallTimeout)
  assert.deepEqual(children(), [])
})

test('much output on both streams', async () => {
  const script = "head -c 3000000 /dev/zero | tr '\\0' x >&2; printf '\"'; head -c 3000000 /dev/zero | tr '\\0' y; printf '\"'"
  assert.equal((await call(script)).length, 3_000_000)
})

test('arguments that are too long', async () => {
  const long = new lib.Avfs({ binary: 'true' }).call('x', { args: ['x'.repeat(3_000_000)] })
  await assert.rejects(long, { name: 'Usage', kind: 'ArgumentsTooLong', exitCode: 2 })
})

test('the program', async () => {
  await assert.rejects(new lib.Avfs({ binary: '/no/such/program' }).vaults(), lib.BinaryNotFound)
  await assert.rejects(new lib.Avfs({ binary: '/no/such/program' }).vault('v').write('f', 'x'), lib.BinaryNotFound)
  await assert.rejects(new lib.Avfs({ binary: dir }).vaults(), lib.BinaryNotFound)
  const old = process.env.AVFS_BIN
  process.env.AVFS_BIN = program(`echo '{"version":"fake"}'`)
  try {
    assert.deepEqual(await new lib.Avfs().version(), { version: 'fake' })
  } finally {
    if (old === undefined) delete process.env.AVFS_BIN
    else process.env.AVFS_BIN = old
  }
})
