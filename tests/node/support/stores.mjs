/** Stores that record their events, and the time limits of the tests that break their servers. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { RedisStore } from 'doorkeep'

export const TIMEOUT_MS = 200
/** How late a deadline may be on a busy machine. */
export const SLACK_MS = 250
/** How long an answer takes at most while no server is called. */
export const AT_ONCE_MS = 50

/** Makes a store at `url` with the types of its events in `seen`, closed when the test ends. */
export function openStore(test, url, options) {
  const events = []
  const store = new RedisStore(url, { timeout: TIMEOUT_MS, onEvent: (event) => events.push(event), ...options })
  test.after(() => store.close())
  return { store, events, seen: () => events.map(({ type }) => type) }
}

/** Returns the answer of a call, which must arrive within so many milliseconds. */
export async function within(milliseconds, call) {
  const start = performance.now()
  const answer = await call()
  const took = performance.now() - start
  assert.ok(took < milliseconds, `${took.toFixed(1)} ms, more than ${milliseconds}`)
  return answer
}

export const inTime = (call) => within(TIMEOUT_MS + SLACK_MS, call)
export const atOnce = (call) => within(AT_ONCE_MS, call)

/** Polls until `is` is true; a store looks for its server about once a second. */
export async function until(is, milliseconds = 3000) {
  const start = performance.now()
  while (!(await is())) {
    assert.ok(performance.now() - start < milliseconds, `not within ${milliseconds} ms`)
    await sleep(20)
  }
}

/** Runs `work` along with a timer of the loop; returns the longest delay of the timer. */
export async function heartbeat(work) {
  let latest = 0
  let last = performance.now()
  const timer = setInterval(() => {
    latest = Math.max(latest, performance.now() - last)
    last = performance.now()
  }, 5)
  try {
    await work()
  } finally {
    clearInterval(timer)
  }
  return latest
}

export const many = (count, ask) => Promise.all(Array.from({ length: count }, (_, index) => ask(index)))
