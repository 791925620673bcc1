// Compiled, never run: holds the declarations to what a program may write.
import { Avfs, Conflict, outputBytes, pathBytes, type Fork, type types } from 'avfs'

const avfs = new Avfs({ home: '/tmp/x', timeout: 1000, signal: AbortSignal.timeout(5) })
const vault = await avfs.create('v', { backend: 'sqlite' })

async function work(fork: Fork): Promise<number> {
  const result = await fork.exec(['make', Buffer.from('x')], { check: true, timeout: 1000, env: { A: 'b', C: null }, dryRun: true })
  const code: number | null = result.exitCode
  for await (const event of fork.stream({ script: 'make' })) {
    const bytes: Buffer = outputBytes(event)
    event.change?.path satisfies string | undefined
    void [bytes, code]
  }
  const merged: types.MergeResult = await fork.merge()
  return merged.changed
}

const changed: number = await vault.withFork(work, { name: 'task' })
const entries: types.Entry[] = await vault.find(['/a', '/b'], { name: '*.py', type: 'f', at: 'kept' })
for (const entry of entries) pathBytes(entry)
const vaults: types.VaultInfo[] = await avfs.call('vault list')
const other: unknown = await avfs.call('a command of tomorrow', { flags: { all: true, n: 3, path: ['a', 'b'] } })
const stats: number = (await vault.call('stats')).vaults
try {
  await vault.write('f', new Uint8Array(3), { mode: 0o600 })
} catch (err) {
  if (err instanceof Conflict) for (const c of err.conflicts) c.path satisfies string
}
{
  await using task = await vault.fork()
  await task.remove(['a'], { recursive: true })
}
// @ts-expect-error a line of a shell is no list of arguments
await vault.exec('ls -l')
// @ts-expect-error no such option
await vault.exec(['ls'], { timeoutSeconds: 1 })
// @ts-expect-error no such field
entries[0]?.nothing
void [changed, vaults, other, stats]
