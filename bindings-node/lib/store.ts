/// <reference lib="esnext.disposable" preserve="true" />
/** Where several processes share one budget. The native module connects, waits and decides. */
import { ConfigError } from './errors.js'
import { type Handle, native } from './native/binding.js'
import { unwrap } from './native/failure.js'
import { open } from './native/promises.js'
import { type Duration, known } from './options/options.js'

/**
 * What a limiter does when its store cannot be reached: decide in the memory of this process, admit without counting,
 * or deny with the reason `unavailable`.
 */
export type OnError = 'local' | 'open' | 'closed'

/**
 * An event that is worth one log line to an operator. No string in it contains a key's value or a password.
 *
 * `store_down` and `store_up` mark the start and the end of an outage; `place` is the address of the store.
 * `store_refused`: the server refused calls for a reason that other calls may not share, such as out of memory.
 * `store_evicts`: it drops keys when its memory is full, and an evicted count is a reset limit. `corrupt_state`: the
 * value at one of our keys was not ours, and counts as fully spent.
 */
export type StoreEvent =
  | { readonly type: 'store_down'; readonly place: string; readonly why: string }
  | { readonly type: 'store_up'; readonly place: string }
  | { readonly type: 'store_refused'; readonly place: string; readonly why: string }
  | { readonly type: 'store_evicts'; readonly policy: string }
  | { readonly type: 'corrupt_state'; readonly rule: string }

/** The options of a {@link RedisStore}. */
export interface RedisStoreOptions {
  /**
   * What every key begins with: 1 to 64 of `A-Z a-z 0-9 _ . : -`, by default `ratelimit`. Use another for each service
   * that must not share.
   */
  readonly prefix?: string | undefined
  /** The bound on every call, connecting included: 1 ms to 60 s, by default 200 ms. */
  readonly timeout?: Duration | undefined
  /** What to do when the store cannot be reached, unless a limiter has its own `onError`; by default `local`. */
  readonly onError?: OnError | undefined
  /** Whose time decides: the server's, so that processes cannot disagree, or this process's. By default `server`. */
  readonly clock?: 'server' | 'client' | undefined
  /**
   * Called with each event, when the next answers of the store arrive: the end of an outage is reported with the first
   * call after it. An error that it throws is uncaught, as in any listener. Without it, `store_down`, `store_up`,
   * `store_refused` and `store_evicts` are warnings of the process.
   */
  readonly onEvent?: ((event: StoreEvent) => void) | undefined
}

const OPTIONS: ReadonlySet<string> = new Set(['prefix', 'timeout', 'onError', 'clock', 'onEvent'])

/**
 * Returns the native store.
 *
 * @internal
 */
export let handleOf: (store: RedisStore) => Handle
let deliver: (store: RedisStore) => void

/**
 * A Redis or Valkey server that keeps the counts of limiters: one budget for many processes and for every language.
 *
 * It connects at first use, over one connection. A dead server fails neither the constructor nor a call: the call is
 * answered as `onError` says, within `timeout`. An idle store keeps no process alive; a call that waits for its answer
 * does. Stores and limiters belong to the thread that made them.
 *
 * @example
 * ```ts
 * const store = new RedisStore('redis://127.0.0.1:6379/0', { prefix: 'shop', timeout: '200ms', onEvent: log.warn })
 * const limiter = new Limiter({ store })
 * ```
 * @throws {@link ConfigError} when the URL cannot be parsed or an option is out of bounds. The message does not contain
 * the URL.
 */
export class RedisStore {
  readonly #handle: Handle
  readonly #onEvent: (event: StoreEvent) => void

  /** Makes a store at `redis://[user:password@]host[:port][/database]`, `rediss://...` for TLS, or `unix:///path`. */
  constructor(url: string, options?: RedisStoreOptions) {
    const { prefix, timeout, onError, clock, onEvent } = known(options, OPTIONS)
    if (onEvent !== undefined && onEvent !== null && typeof onEvent !== 'function') {
      throw new ConfigError('onEvent must be a function')
    }
    this.#handle = unwrap(native.store(url, prefix, timeout, onError, clock))
    this.#onEvent = onEvent ?? warn
    open((store) => deliver(store as RedisStore))
  }

  /** Drops the connection; later calls are answered as `onError` says. Safe to repeat, and not needed to exit. */
  async close(): Promise<void> {
    unwrap(native.storeClose(this.#handle))
    deliver(this)
  }

  /** {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  static {
    handleOf = (store) => {
      if (typeof store !== 'object' || store === null || !(#handle in store)) {
        throw new ConfigError('store must be a RedisStore, or left out for memory')
      }
      return store.#handle
    }
    deliver = (store) => {
      for (const event of unwrap(native.storeEvents(store.#handle)) ?? []) {
        try {
          // A copy: under some test runners an object made by an addon belongs to another realm.
          store.#onEvent({ ...event } as StoreEvent)
        } catch (error) {
          queueMicrotask(() => {
            throw error
          })
        }
      }
    }
  }
}

/** Warns, where no listener was given, of events that cost protection until they are dealt with, and of their end. */
function warn(event: StoreEvent): void {
  const text = warning(event)
  if (text !== undefined)
    process.emitWarning(text, { type: 'DoorkeepWarning', code: `DOORKEEP_${event.type.toUpperCase()}` })
}

function warning(event: StoreEvent): string | undefined {
  switch (event.type) {
    case 'store_down':
      return `store at ${event.place} does not answer: ${event.why}`
    case 'store_up':
      return `store at ${event.place} answers again`
    case 'store_refused':
      return `store at ${event.place} refuses calls: ${event.why}`
    case 'store_evicts':
      return `store evicts keys when its memory is full, use noeviction, maxmemory-policy=\`${event.policy}\``
    default:
      return undefined
  }
}
