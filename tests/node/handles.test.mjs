/** Opaque native values: each function accepts only what this module made, and only of the right kind. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'

const require = createRequire(import.meta.url)
const { native } = require('../../bindings-node/dist/native/binding.js')
const { LEFT_OUT, numbers, Slot } = require('../../bindings-node/dist/native/slots.js')
const IN_MEMORY = [undefined, undefined]

const strikes = native.attemptLimiter(5, '15m', 100, 'strikes', IN_MEMORY)
const makers = {
  store: () => native.store('redis://127.0.0.1:1/0'),
  reservation: () => strikes.reserve('ann'),
  clientIp: () => native.clientIp(['127.0.0.1'], 'x-forwarded-for').handle,
  attempt: () => {
    native.key(native.rule('login', '5/1m', undefined, undefined, []).number, 'ann')
    numbers[Slot.Keys] = 1
    numbers[Slot.Cost] = 1
    numbers[Slot.Now] = LEFT_OUT
    return native.limiter(100, IN_MEMORY).attempt(1)
  },
}
/** Where each kind of handle is passed, by function. */
const uses = {
  store: {
    storeClose: (handle) => native.storeClose(handle),
    storeEvents: (handle) => native.storeEvents(handle),
    attemptLimiter: (handle) => native.attemptLimiter(5, '15m', 100, 'strikes', [handle, undefined]),
    limiter: (handle) => native.limiter(100, [handle, undefined]),
    tokenBucket: (handle) => native.tokenBucket(5, '1m', 100, 'bucket', [handle, undefined]),
    fixedWindow: (handle) => native.fixedWindow(5, '1m', 100, 'window', [handle, undefined]),
  },
  reservation: { cancel: (handle) => strikes.cancel(handle) },
  clientIp: {
    clientIpResolve: (handle) => native.clientIpResolve(handle, '127.0.0.1', []),
    clientIpWarning: (handle) => native.clientIpWarning(handle, '127.0.0.1', []),
  },
  attempt: {
    attemptSuccess: (handle) => native.attemptSuccess(handle, [], [], []),
    attemptFailure: (handle) => native.attemptFailure(handle),
    attemptCancel: (handle) => native.attemptCancel(handle),
    attemptExtend: (handle) => native.attemptExtend(1, undefined, handle),
  },
}
const taking = Object.entries(uses).flatMap(([kind, functions]) =>
  Object.entries(functions).map(([name, use]) => ({ kind, name, use })),
)

function refused(answer) {
  return answer?.failure?.code === 'DOORKEEP_INTERNAL'
}

describe('a handle', () => {
  let folder
  let foreign
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'doorkeep-'))
    const [source, addon] = [fileURLToPath(new URL('support/foreign.c', import.meta.url)), join(folder, 'foreign.node')]
    const open = process.platform === 'darwin' ? ['-undefined', 'dynamic_lookup'] : []
    execFileSync('cc', ['-shared', '-fPIC', '-O1', ...open, '-o', addon, source])
    foreign = require(addon)
  })
  after(() => rmSync(folder, { recursive: true, force: true }))

  for (const { kind, name, use } of taking) {
    it(`of its own kind is accepted by ${name}`, () => {
      assert.ok(!refused(use(makers[kind]())))
    })

    it(`of another kind is refused by ${name}`, () => {
      for (const [other, make] of Object.entries(makers)) {
        if (other !== kind) assert.ok(refused(use(make())), other)
      }
    })

    it(`of another addon is refused by ${name}`, () => {
      for (const make of ['overNothing', 'overUnreadable', 'overZeros']) {
        assert.ok(refused(use(foreign[make]())), make)
      }
    })

    it(`that another addon forged is refused by ${name}`, () => {
      assert.ok(refused(use(foreign.forge(makers[kind]()))))
    })

    it(`that is any other value is refused by ${name}`, () => {
      const values = [{}, [], 'handle', 1, true, null, Symbol('handle'), 1n, () => {}, new ArrayBuffer(64)]
      for (const value of [...values, new Proxy({}, {})]) {
        assert.ok(refused(use(value)), typeof value)
      }
    })
  }
})
