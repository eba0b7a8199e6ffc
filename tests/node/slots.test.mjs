/** The layout of the memory through which numbers cross is written in Rust and in TypeScript: both must agree. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { it } from 'node:test'

const require = createRequire(import.meta.url)
const typescript = require('../../bindings-node/dist/native/slots.js')
const rust = readFileSync(new URL('../../bindings-node/src/slots.rs', import.meta.url), 'utf8')

it('the slots have the same names and indices in Rust and in TypeScript', () => {
  const [, variants] = rust.match(/enum Slot \{(.*?)\n\}/s)
  const slots = [...variants.matchAll(/^ +(\w+) = (\d+),$/gm)].map(([, name, index]) => [name, Number(index)])
  assert.ok(slots.length > 10)
  assert.deepEqual(typescript.Slot, Object.fromEntries(slots))
})

it('the constants of the layout are the same in Rust and in TypeScript', () => {
  for (const name of ['KEYS', 'KEY_WORDS', 'ENGAGED', 'LEFT_OUT', 'IN_ARGUMENT']) {
    const [, value] = rust.match(new RegExp(`const ${name}: \\w+ = (-?[\\d.]+);`))
    assert.equal(typescript[name], Number(value), name)
  }
})

it('the memory is as long as both say', () => {
  const { numbers, words } = typescript
  assert.equal(words.byteOffset, numbers.byteLength)
  assert.equal(words.byteOffset + words.byteLength, words.buffer.byteLength)
})
