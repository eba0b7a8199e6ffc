/** What one call counted, to be settled once. Decides nothing: the native module does. */
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

/** How a success is settled. Rules as objects or by name; one that no key of the attempt is under is passed over. */
export interface SuccessOptions extends AtOptions {
  /** Forget everything counted under these keys. */
  readonly forgive?: readonly (KeyRule | string)[] | undefined
  /** Take back this attempt alone; lifts the lockout if this attempt engaged it. */
  readonly giveBack?: readonly (KeyRule | string)[] | undefined
  /**
   * Forget everything under keys that are built from an address. Apart from `forgive`, since an attacker with one valid
   * account would wipe the limit on the address from which they attack.
   */
  readonly forgiveAddress?: readonly (KeyRule | string)[] | undefined
}

const SUCCESS: ReadonlySet<string> = new Set(['forgive', 'giveBack', 'forgiveAddress', 'now'])

/**
 * One attempt that was counted under all of its keys, or denied: test {@link allowed}, since the object itself is always
 * true. It stays counted unless it is settled, by {@link success}, {@link failure} or {@link cancel}. Settling it again, or
 * settling a denied one, does nothing and answers false.
 */
export class Attempt {
  /** The answer of the limiter. */
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
   * Settles it as a success: what is not forgiven or given back stays counted. Answers whether this call settled it; with
   * a store also false if it was not reached.
   */
  async success(options?: SuccessOptions): Promise<boolean> {
    return completed(this.#success(options), flag, this.#store)
  }

  /** {@link success}, at once. */
  successSync(options?: SuccessOptions): boolean {
    requireMemory(this.#store)
    unwrap(this.#success(options))
    return flag()
  }

  /**
   * Settles it as a wrong guess: it stays counted, whatever is called later. Nothing needs this call, since an attempt
   * stays counted anyway; it makes sure that no error named in `giveBackOn`, and no later cancel, takes the guess back.
   * Answers whether this call settled it. It is settled at the call.
   */
  async failure(): Promise<boolean> {
    return this.#failure()
  }

  /** {@link failure}, at once. */
  failureSync(): boolean {
    return this.#failure()
  }

  /** Takes everything back that it counted. Answers as {@link success} does. */
  async cancel(at?: At): Promise<boolean> {
    return completed(native.attemptCancel(this.#handle, writeNow(at, this.#clock)), flag, this.#store)
  }

  /** {@link cancel}, at once. */
  cancelSync(at?: At): boolean {
    requireMemory(this.#store)
    unwrap(native.attemptCancel(this.#handle, writeNow(at, this.#clock)))
    return flag()
  }

  /**
   * Counts further keys under the same attempt; those that it already holds are not counted again. A denial leaves it
   * as it was.
   */
  async extend(keys: Keys, options?: CallOptions): Promise<Decision> {
    return completed(this.#extend(keys, options), () => new Decision(ruleNames), this.#store)
  }

  /** {@link extend}, at once. */
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
   * Gives back what a failure of the application ended: everything but what was counted on an address alone.
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
