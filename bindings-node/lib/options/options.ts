/**
 * Reads options: unknown names are refused, values are left to the core.
 *
 * Has no default value and no bound.
 */
import { ConfigError } from '../errors.js'
import { native } from '../native/binding.js'
import { raise } from '../native/failure.js'

/**
 * A length of time: milliseconds, or a string such as `15m`, `1h30m` or `200ms`. At least a microsecond, never rounded.
 */
export type Duration = number | string

// Without a prototype, so that no property of `Object.prototype` is taken for an option.
const NONE: object = Object.freeze(Object.create(null))

/**
 * Returns the options, and refuses names that are not in `names`. Each name is an own property of the result, undefined
 * when it is left out: neither the result nor a rest of it inherits a value from `Object.prototype`.
 */
export function known<T extends object>(options: T | undefined | null, names: ReadonlySet<string>): T {
  const written = options ?? NONE
  if (!isPlain(written)) throw notPlain()
  for (const name of Object.keys(written)) if (!names.has(name)) raise(native.unknownOption(name))
  const own: Record<string, unknown> = {}
  for (const name of names) own[name] = ownValue(written as Record<string, unknown>, name)
  return own as T
}

/**
 * Returns whether a value was written as `{ ... }`: `new Limiter(store)` instead of `new Limiter({ store })` must not
 * count in memory. An object of another realm has another prototype than ours, also without one behind it.
 */
export function isPlain(options: unknown): options is object {
  if (typeof options !== 'object' || options === null) return false
  const prototype = Object.getPrototypeOf(options)
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null
}

/** Makes the error for options that are not a plain object. */
export function notPlain(): ConfigError {
  return new ConfigError('options must be a plain object')
}

/** Returns an own property; undefined when it is inherited or missing. */
export function ownValue<T>(options: { readonly [name: string]: T }, name: string): T | undefined {
  return Object.hasOwn(options, name) ? options[name] : undefined
}
