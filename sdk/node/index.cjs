'use strict'

const { errorOf, ...errors } = require('./lib/errors.cjs')
const { Avfs } = require('./lib/client.cjs')
const { Vault, Fork, Checkpoints, Approvals, Audit } = require('./lib/vault.cjs')
const { ExecStream } = require('./lib/exec.cjs')
const { ExecResult, outputBytes, pathBytes } = require('./lib/result.cjs')

module.exports = { ...errors, Avfs, Vault, Fork, Checkpoints, Approvals, Audit, ExecStream, ExecResult, outputBytes, pathBytes }
