/**
 * What an error that leaves a handler does to its attempt: nothing, unless its class is named in `giveBackOn`.
 *
 * Knows no framework. Invariant: an error that nobody named leaves the attempt counted, and so do errors of this package and
 * an AbortError, whatever is named: a client that hangs up has still guessed.
 */
import type { Attempt } from './attempt.js'
import { ConfigError, DoorkeepError } from './errors.js'

/** A class of errors. */
// biome-ignore lint/suspicious/noExplicitAny: any constructor will do, whatever it takes
export type ErrorClass = abstract new (...args: any[]) => unknown

/**
 * The classes in `giveBackOn`, one or several.
 *
 * @throws {@link ConfigError} when it lists something that is not a class.
 */
export function errorClasses(giveBackOn: ErrorClass | readonly ErrorClass[] | null | undefined): readonly ErrorClass[] {
  const list: readonly ErrorClass[] = [giveBackOn ?? []].flat()
  // An arrow function has no prototype: `instanceof` would throw in place of the error at hand.
  const isClass = (one: unknown) => typeof one === 'function' && typeof one.prototype === 'object'
  if (!list.every(isClass)) throw new ConfigError('giveBackOn must list classes of errors')
  return list
}

/** Gives an attempt back if `error` is named in `giveBackOn`, except what was counted on an address alone. */
export async function leave(attempt: Attempt, error: unknown, giveBackOn: readonly ErrorClass[]): Promise<boolean> {
  return isNamed(error, giveBackOn) && attempt.release()
}

/** Whether an error gives an attempt back. Of several errors at once, one that is not named is enough to leave it counted. */
export function isNamed(error: unknown, giveBackOn: readonly ErrorClass[]): boolean {
  if (error instanceof AggregateError && error.errors.length > 0) {
    return error.errors.every((one) => isNamed(one, giveBackOn))
  }
  if (error instanceof DoorkeepError || (error instanceof Error && error.name === 'AbortError')) return false
  return giveBackOn.some((one) => error instanceof one)
}
