/** Reads the vectors and refuses unknown fields, so that none is skipped silently. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'

const folder = new URL('../../vectors/', import.meta.url)

/** The files of limiters, which have steps; the others are pure functions. */
export const LIMITER_FILES = [
  'attempt',
  'clock',
  'fixed-window',
  'gcra',
  'gcra-give-back',
  'limiter',
  'random',
  'strikes',
  'strikes-capacity',
  'token-bucket',
  'windows-capacity',
]
export const FUNCTION_FILES = [
  'client-ip',
  'config',
  'email',
  'http',
  'keys',
  'keys-for',
  'lint',
  'network',
  'presets',
  'rates',
  'username',
]
/** A repeated call after a lost reply, for which hosts have no call; and the lab, which Node does not have. */
const ELSEWHERE = ['strikes-repeated', 'lab']

/** Returns the names of all existing files, for the test that none is forgotten. */
export function files() {
  const names = readdirSync(folder).filter((name) => name.endsWith('.json'))
  return names.map((name) => name.slice(0, -'.json'.length)).filter((name) => !ELSEWHERE.includes(name))
}

/** Returns the cases of one file. */
export function cases(file) {
  const text = readFileSync(new URL(`${file}.json`, folder), 'utf8')
  const { format, cases, ...rest } = JSON.parse(text)
  only(rest, ['about'])
  assert.equal(format, 1)
  assert.ok(cases.length > 0)
  return cases
}

/** Fails unless `object` has all of `names`, perhaps some of `optional`, and nothing else. */
export function only(object, names, optional = []) {
  for (const name of names) assert.ok(Object.hasOwn(object, name), `missing field ${name}`)
  for (const name of Object.keys(object)) {
    assert.ok(names.includes(name) || optional.includes(name), `unknown field ${name}`)
  }
  return object
}

/** Returns a string, in one of the three ways to write it, or in pieces of them. */
export function text(value) {
  if (Array.isArray(value)) return value.map(text).join('')
  if (typeof value === 'string') return value
  if (Object.hasOwn(value, 'utf16')) return String.fromCharCode(...only(value, ['utf16']).utf16)
  const { repeat, times } = only(value, ['repeat', 'times'])
  return repeat.repeat(times)
}

/** Returns a raw value, as a caller could pass it by mistake. */
export function raw(value) {
  if (typeof value !== 'object') return value
  if (Object.hasOwn(value, 'none')) return undefined
  if (Object.hasOwn(value, 'bool')) return only(value, ['bool']).bool
  return float(only(value, ['float']).float)
}

/** Returns a duration: a number of microseconds is passed in this language's own unit, milliseconds. */
export function duration(value) {
  if (typeof value === 'number') return value / 1000
  if (typeof value === 'object' && Object.hasOwn(value, 'seconds'))
    return float(only(value, ['seconds']).seconds) * 1000
  return raw(value)
}

export const milliseconds = (micros) => micros / 1000

/** Converts milliseconds to microseconds; fails when they are not a whole number of them. */
export function micros(milliseconds) {
  if (milliseconds === null) return null
  const whole = Math.round(milliseconds * 1000)
  assert.equal(whole / 1000, milliseconds)
  return whole
}

function float(written) {
  const number = { nan: Number.NaN, inf: Number.POSITIVE_INFINITY, '-inf': Number.NEGATIVE_INFINITY }[written]
  return number ?? Number(written)
}
