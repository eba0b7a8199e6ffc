/**
 * Promises for answers that arrive later than their call, from a store.
 *
 * A native function that calls a store returns a number, the id of the pending call; the native module wakes the loop
 * when answers have arrived, and they are taken in one batch. Knows no limiter. Invariant: what `read` takes from the
 * slots belongs to that call, since nothing runs between `nextCompletion` and it.
 */
import { ConfigError } from '../errors.js'
import { type Handle, native } from './binding.js'
import { unwrap } from './failure.js'
import { numbers, Slot } from './slots.js'

/** A store, which is only told apart from others here. */
type Store = object

interface Pending {
  readonly store: Store
  readonly read: (answer: Handle) => unknown
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

const pending = new Map<number, Pending>()
/** The stores whose answers are in the current batch. */
const answered = new Set<Store>()
let afterBatch: (store: Store) => void

/** Opens the bridge. `callback` is called for each store that answered, after a batch. */
export function open(callback: (store: Store) => void): void {
  afterBatch = callback
  // `hasRef` is called by tools that look for open handles.
  unwrap(native.openBridge(complete, { hasRef: () => pending.size > 0 }))
}

/** Reads the answer of a native function: immediately, or in a promise when it comes from a store. */
export function completed<T>(answer: unknown, read: (answer: Handle) => T, store: Store | undefined): T | Promise<T> {
  if (typeof answer !== 'number' || store === undefined) return read(unwrap(answer) as Handle)
  return new Promise<T>((resolve, reject) => {
    pending.set(answer, { store, read, resolve: resolve as Pending['resolve'], reject })
  })
}

/** Refuses a blocking call over a store: it would stop the loop for as long as the network takes. */
export function requireMemory(store: Store | undefined): void {
  if (store !== undefined) throw new ConfigError('a limiter with a store has no ...Sync methods, await the others')
}

function complete(): void {
  for (let left = unwrap(native.takeCompletions()); left > 0; left -= 1) {
    const answer = native.nextCompletion()
    const id = numbers[Slot.CallId]
    const call = pending.get(id)
    if (call === undefined) continue
    pending.delete(id)
    answered.add(call.store)
    try {
      call.resolve(call.read(unwrap(answer) as Handle))
    } catch (error) {
      call.reject(error)
    }
  }
  for (const store of answered) afterBatch(store)
  answered.clear()
}
