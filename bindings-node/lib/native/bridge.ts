/**
 * Promises for answers that come later than their call, from a store.
 *
 * A native function that asks a store answers with a number, the ticket of its call; the native module wakes the loop
 * when answers have come, as many as there are at once. Knows no limiter. Invariant: what `read` takes from the slots is
 * that ticket's own, since nothing comes between `nextAnswer` and it.
 */
import { ConfigError } from '../errors.js'
import { type Handle, native } from './binding.js'
import { sound } from './failure.js'
import { numbers, Place } from './slots.js'

/** A store: here only told apart from others. */
type Store = object

interface Waiting {
  readonly store: Store
  readonly read: (answer: Handle) => unknown
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

const waiting = new Map<number, Waiting>()
/** Whose answers are in the batch at hand. */
const answering = new Set<Store>()
let deliver: (store: Store) => void

/** Lets answers come back. `delivery` is called for each store that answered, after a batch. */
export function open(delivery: (store: Store) => void): void {
  deliver = delivery
  // What tools that look for open handles ask.
  sound(native.openBridge(receive, { hasRef: () => waiting.size > 0 }))
}

/** What `read` makes of the answer of a native function: at once, or a promise of it when it comes from a store. */
export function answered<T>(answer: unknown, read: (answer: Handle) => T, store: Store | undefined): T | Promise<T> {
  if (typeof answer !== 'number' || store === undefined) return read(sound(answer) as Handle)
  return new Promise<T>((resolve, reject) => {
    waiting.set(answer, { store, read, resolve: resolve as Waiting['resolve'], reject })
  })
}

/** Refuses a blocking call over a store: it would stop the loop for as long as the network takes. */
export function inMemory(store: Store | undefined): void {
  if (store !== undefined) throw new ConfigError('a limiter with a store has no ...Sync methods, await the others')
}

function receive(): void {
  for (let left = sound(native.takeAnswers()); left > 0; left -= 1) {
    const answer = native.nextAnswer()
    const ticket = numbers[Place.Ticket]
    const call = waiting.get(ticket)
    if (call === undefined) continue
    waiting.delete(ticket)
    answering.add(call.store)
    try {
      call.resolve(call.read(sound(answer) as Handle))
    } catch (error) {
      call.reject(error)
    }
  }
  for (const store of answering) deliver(store)
  answering.clear()
}
