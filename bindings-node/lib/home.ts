/** Where a limiter keeps its counts, and whose time it goes by: the options that all limiters share. */
import { ConfigError } from './errors.js'
import type { NativeHome } from './native.js'
import type { Clock, CommonOptions } from './options.js'
import { handleOf, type RedisStore } from './store.js'

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
