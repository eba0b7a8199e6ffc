/**
 * How the Node parts measure: contenders take turns, and the ratio is that of the same turn.
 *
 * Knows no limiter. A busy moment of the machine hits both sides of a ratio, and the median drops the turns that it hit
 * unevenly. Nothing here asserts; a missed goal is a row like any other.
 */
import { createRequire } from 'node:module'

/** Loads what is installed for the benchmarks, doorkeep's own tarball included. */
export const installed = new URL('../../build/bench/node/', import.meta.url)
export const require = createRequire(installed)

const ROUNDS = 11
const WARM = 2

/** Runs the contenders in turn; gives what each told in each round, without the rounds that only warm up. */
export async function turns(contenders, rounds = ROUNDS) {
  const told = contenders.map(() => [])
  const places = contenders.map((_, place) => place)
  for (let turn = 0; turn < rounds + WARM; turn += 1) {
    // To and fro, so that nobody always comes first.
    for (const place of turn % 2 ? places : places.toReversed()) {
      globalThis.gc?.()
      const measured = await contenders[place]()
      if (turn >= WARM) told[place].push(measured)
    }
  }
  return told
}

export function median(numbers) {
  const sorted = numbers.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

/** The median of the rounds' ratios. */
export const ratio = (ours, theirs) => median(ours.map((our, turn) => our / theirs[turn]))

/** Nanoseconds as text. */
export const ns = (times) => `${Math.round(median(times)).toLocaleString('en')} ns`

// The processor's time of the whole process, its collector's threads included: others cannot add to it, as to a clock's.
function spent() {
  const { user, system } = process.cpuUsage()
  return (user + system) * 1000
}

/** A function of its own for every contender: one that is shared would be compiled for all of them at once. */
const compiled = (kind, wait) =>
  new Function(
    'call',
    'calls',
    'spent',
    `return ${kind}() => {
      const start = spent()
      for (let i = 0; i < calls.length; i += 1) ${wait} call(calls[i])
      return (spent() - start) / calls.length
    }`,
  )

/** A contender that makes the calls one after the other; nanoseconds a call. */
export const each = (call, calls) => compiled('', '')(call, calls, spent)

/** The same, each call awaited. */
export const eachAwaited = (call, calls) => compiled('async ', 'await')(call, calls, spent)

/** SplitMix32, so that every run draws the same. */
export function random(seed) {
  let state = seed
  return (end) => {
    state = (state + 0x9e3779b9) | 0
    let word = Math.imul(state ^ (state >>> 16), 0x21f0aaad)
    word = Math.imul(word ^ (word >>> 15), 0x735a2d97)
    return ((word ^ (word >>> 15)) >>> 0) % end
  }
}

// A concatenated string is a tree until something flattens it, and no request's text is one.
const email = (number) => Buffer.from(`user-${number}@example.com`).toString()

/**
 * Makes `count` keys, each of one of `of` texts drawn at random. Every one is new, in the order of use, as a request's
 * are: old ones would add the cache misses of their own memory to those of the limiter.
 */
export function drawn(make, of, count) {
  const below = random(7)
  return Array.from({ length: count }, () => make(email(below(of))))
}

/** Makes the keys of the first `count` texts. */
export const first = (make, count) => Array.from({ length: count }, (_, i) => make(email(i)))

/** Prints one measurement. */
export function tell(goal, what, target, measured, detail, better = 'lower', unit = '') {
  console.log(JSON.stringify({ goal, what: `Node: ${what}`, target, ratio: measured, better, unit, detail }))
}
