/** The options that all limiters share: where the counts live, and where the time comes from. */
import { ConfigError } from '../errors.js'
import type { NativeStorage } from '../native/binding.js'
import type { Clock } from '../options/call.js'
import { handleOf, type OnError, type RedisStore } from '../store.js'

/** The options that all limiters share. */
export interface CommonOptions {
  /** Where the counts live; by default the memory of this process. A limiter with a store has no ...Sync methods. */
  readonly store?: RedisStore | undefined
  /**
   * What to do when the store cannot be reached; by default the store's own `onError`. Has no effect without a store.
   */
  readonly onError?: OnError | undefined
  /**
   * Where the time comes from. Defaults to the store's clock; in memory to a monotonic clock anchored to the Unix
   * epoch.
   */
  readonly clock?: Clock | undefined
}

/** The options that all limiters share, checked. */
interface Common {
  /** Undefined for the memory of this process. */
  readonly store: RedisStore | undefined
  readonly clock: Clock | undefined
  /** The store and `onError` as the native module accepts them; it checks `onError`. */
  readonly storage: NativeStorage
}

/** Checks the options that all limiters share. */
export function commonOptions({ store, onError, clock }: CommonOptions): Common {
  if (clock !== undefined && clock !== null && typeof clock !== 'function') {
    throw new ConfigError('clock must be a function')
  }
  const handle = store === undefined || store === null ? undefined : handleOf(store)
  return { store: store ?? undefined, clock: clock ?? undefined, storage: [handle, onError] }
}
