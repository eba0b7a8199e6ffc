/** Where a limiter keeps its counts, and whose time it goes by: the options that all limiters share. */
import { ConfigError } from '../errors.js'
import type { NativeHome } from '../native/binding.js'
import type { Clock } from '../options/call.js'
import { handleOf, type OnError, type RedisStore } from '../store.js'

/** What every limiter can be given. */
export interface CommonOptions {
  /** Where the counts live; by default the memory of this process. A limiter with a store has no ...Sync methods. */
  readonly store?: RedisStore | undefined
  /** What to answer when the store cannot be asked; by default what the store says. Has no effect without one. */
  readonly onError?: OnError | undefined
  /** Where the time comes from. Defaults to the store's clock, in memory to a monotonic one anchored to the Unix epoch. */
  readonly clock?: Clock | undefined
}

/** The options that all limiters share, judged. */
export interface Home {
  /** None for the memory of this process. */
  readonly store: RedisStore | undefined
  readonly clock: Clock | undefined
  /** The store and `onError` as the native module takes them; it judges `onError`. */
  readonly native: NativeHome
}

/** Judges the options that all limiters share. */
export function home({ store, onError, clock }: CommonOptions): Home {
  if (clock !== undefined && clock !== null && typeof clock !== 'function') {
    throw new ConfigError('clock must be a function')
  }
  const there = store ?? undefined
  const handle = there === undefined ? undefined : handleOf(there)
  return { store: there, clock: clock ?? undefined, native: [handle, onError] }
}
