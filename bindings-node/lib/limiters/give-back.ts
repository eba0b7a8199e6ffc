/**
 * What an error that leaves a handler does to its attempt: nothing, unless its class is named in `giveBackOn`.
 *
 * Knows no framework. Invariant: an error that is not named leaves the attempt counted. So do errors of this package
 * and an AbortError, even if they are named: a client that hangs up has still guessed.
 */
import { ConfigError, DoorkeepError } from '../errors.js'
import type { Attempt } from './attempt.js'

/** A class of errors. */
// biome-ignore lint/suspicious/noExplicitAny: any constructor will do, whatever its parameters
export type ErrorClass = abstract new (...args: any[]) => unknown

/**
 * Returns the classes in `giveBackOn`, one or several.
 *
 * @throws {@link ConfigError} when it lists something that is not a class.
 */
export function errorClasses(giveBackOn: ErrorClass | readonly ErrorClass[] | null | undefined): readonly ErrorClass[] {
  const list: readonly ErrorClass[] = [giveBackOn ?? []].flat()
  if (!list.every(isClass)) throw new ConfigError('giveBackOn must list classes of errors')
  return list
}

// An arrow function has no prototype: `instanceof` would throw and hide the error at hand.
function isClass(one: unknown): boolean {
  return typeof one === 'function' && typeof one.prototype === 'object' && one.prototype !== null
}

/** Gives an attempt back if `error` is named in `giveBackOn`, except what was counted on an address alone. */
export async function giveBackIfNamed(
  attempt: Attempt,
  error: unknown,
  giveBackOn: readonly ErrorClass[],
): Promise<boolean> {
  return isNamed(error, giveBackOn) && attempt.release()
}

/** Returns whether an error gives an attempt back. In a group of errors, one that is not named leaves it counted. */
export function isNamed(error: unknown, giveBackOn: readonly ErrorClass[]): boolean {
  const all = leaves(error)
  // A group that contains only itself names nothing.
  return all.length > 0 && all.every((one) => !isKept(one) && giveBackOn.some((of) => one instanceof of))
}

function isKept(error: unknown): boolean {
  return (
    error instanceof DoorkeepError || (error as { readonly name?: unknown } | null | undefined)?.name === 'AbortError'
  )
}

/** Returns the errors inside an AggregateError, however deep, or any other error itself. A group may contain itself. */
function leaves(error: unknown): unknown[] {
  const found: unknown[] = []
  const seen = new Set<unknown>([error])
  for (const one of seen) {
    const within: unknown = one instanceof AggregateError ? one.errors : undefined
    if (!Array.isArray(within) || within.length === 0) found.push(one)
    else for (const inner of within) seen.add(inner)
  }
  return found
}
