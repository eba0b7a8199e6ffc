/** Makes errors of failures that crossed as data: errors that an addon makes fail `instanceof` under jest. */
import { ConfigError, InvalidKeyError } from '../errors.js'
import type { Failed } from './binding.js'

/** Throws the error for a failure. `DOORKEEP_INTERNAL` is a bug in this package, and a plain `Error`. */
export function raise({ failure: { code, message } }: Failed): never {
  if (code === 'DOORKEEP_CONFIG') throw new ConfigError(message)
  if (code === 'DOORKEEP_INVALID_KEY') throw new InvalidKeyError(message)
  throw Object.assign(new Error(message), { code })
}

/** Returns an answer, or throws the error for it when it is a failure. */
export function unwrap<T>(answer: T | Failed): T {
  // Its own property: a `failure` on `Object.prototype` must not make every answer a failure.
  if (typeof answer === 'object' && answer !== null && Object.hasOwn(answer, 'failure')) raise(answer as Failed)
  return answer as T
}
