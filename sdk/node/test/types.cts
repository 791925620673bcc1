// Compiled, never run: the same declarations by require.
import avfs = require('avfs')

const vault: avfs.Vault = new avfs.Avfs().vault('v')
void vault.list('/').then((found: avfs.types.Entry[]) => found.length)
