/** What one call counted, to be settled once. The native module decides. */
import { type Done, type Handle, native } from '../native/binding.js'
import { unwrap } from '../native/failure.js'
import { completed, requireMemory } from '../native/promises.js'
import { flag, ruleNames } from '../native/slots.js'
import {
  type At,
  type AtOptions,
  type CallOptions,
  type Clock,
  callOptions,
  writeCost,
  writeInstant,
  writeNow,
} from '../options/call.js'
import { known } from '../options/options.js'
import { type Keys, writeKeys } from '../rules/key.js'
import { type KeyRule, namesOf } from '../rules/rule.js'
import type { RedisStore } from '../store.js'
import { Decision } from './decision.js'

/**
 * How a success settles an attempt. Rules are passed as objects or names; a rule without a key in the attempt is
 * skipped.
 */
export interface SuccessOptions extends AtOptions {
  /** Forget everything counted under these keys. */
  readonly forgive?: readonly (KeyRule | string)[] | undefined
  /** Take back this attempt alone; lifts the lockout if this attempt engaged it. */
  readonly giveBack?: readonly (KeyRule | string)[] | undefined
  /**
   * Forget everything under keys that are made of an address. Separate from `forgive`, since an attacker with one valid
   * account would wipe the limit on the address that they attack from.
   */
  readonly forgiveAddress?: readonly (KeyRule | string)[] | undefined
}

const SUCCESS: ReadonlySet<string> = new Set(['forgive', 'giveBack', 'forgiveAddress', 'now'])

/**
 * One attempt that was counted under all of its keys, or denied: test {@link allowed}, since the object itself is
 * always truthy. It stays counted unless it is settled, by {@link success}, {@link failure} or {@link cancel}. Settling
 * it again, or settling a denied one, does nothing and returns false.
 */
export class Attempt {
  /** The decision of the limiter. */
  readonly decision: Decision
  readonly #handle: Handle
  readonly #clock: Clock | undefined
  readonly #store: RedisStore | undefined

  /** @internal */
  constructor(decision: Decision, handle: Handle, clock: Clock | undefined, store: RedisStore | undefined) {
    this.decision = decision
    this.#handle = handle
    this.#clock = clock
    this.#store = store
  }

  /** Whether it was admitted. */
  get allowed(): boolean {
    return this.decision.allowed
  }

  /**
   * Settles it as a success: what is neither forgiven nor given back stays counted. Returns whether this call settled
   * it; false, too, when a store was not reached.
   */
  async success(options?: SuccessOptions): Promise<boolean> {
    return completed(this.#success(options), flag, this.#store)
  }

  /** {@link success}, synchronously. */
  successSync(options?: SuccessOptions): boolean {
    requireMemory(this.#store)
    unwrap(this.#success(options))
    return flag()
  }

  /**
   * Settles it as a wrong guess: it stays counted, whatever is called later. An attempt stays counted without this
   * call, too; the call makes sure that no error named in `giveBackOn`, and no later cancel, takes the guess back.
   * Returns whether this call settled it. It is settled immediately.
   */
  async failure(): Promise<boolean> {
    return this.#failure()
  }

  /** {@link failure}, synchronously. */
  failureSync(): boolean {
    return this.#failure()
  }

  /** Takes back everything that it counted. Returns the same as {@link success}. */
  async cancel(at?: At): Promise<boolean> {
    return completed(native.attemptCancel(this.#handle, writeNow(at, this.#clock)), flag, this.#store)
  }

  /** {@link cancel}, synchronously. */
  cancelSync(at?: At): boolean {
    requireMemory(this.#store)
    unwrap(native.attemptCancel(this.#handle, writeNow(at, this.#clock)))
    return flag()
  }

  /**
   * Counts more keys under the same attempt; keys that it already has are not counted again. A denial leaves it as it
   * was.
   */
  async extend(keys: Keys, options?: CallOptions): Promise<Decision> {
    return completed(this.#extend(keys, options), () => new Decision(ruleNames), this.#store)
  }

  /** {@link extend}, synchronously. */
  extendSync(keys: Keys, options?: CallOptions): Decision {
    requireMemory(this.#store)
    unwrap(this.#extend(keys, options))
    return new Decision(ruleNames)
  }

  #failure(): boolean {
    unwrap(native.attemptFailure(this.#handle))
    return flag()
  }

  /**
   * Gives back, after a failure of the application, everything but what was counted on an address alone.
   *
   * @internal
   */
  async release(at?: At): Promise<boolean> {
    return completed(native.attemptRelease(this.#handle, writeNow(at, this.#clock)), flag, this.#store)
  }

  /** @internal */
  releaseSync(at?: At): boolean {
    requireMemory(this.#store)
    unwrap(native.attemptRelease(this.#handle, writeNow(at, this.#clock)))
    return flag()
  }

  #success(options: SuccessOptions | undefined): Done {
    const { forgive, giveBack, forgiveAddress, now } = known(options, SUCCESS)
    const at = writeInstant(now, this.#clock)
    const lists = [namesOf('forgive', forgive), namesOf('giveBack', giveBack)] as const
    return native.attemptSuccess(this.#handle, ...lists, namesOf('forgiveAddress', forgiveAddress), at)
  }

  #extend(keys: Keys, options: CallOptions | undefined): Done {
    const { cost, now } = callOptions(options)
    const at = writeInstant(now, this.#clock)
    writeKeys(keys)
    return native.attemptExtend(writeCost(cost), at, this.#handle)
  }
}
