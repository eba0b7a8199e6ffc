/** Turns failures that crossed as data into errors made here: those made by an addon fail `instanceof` under jest. */
import { ConfigError, InvalidKeyError } from '../errors.js'
import type { Failed } from './binding.js'

/** Throws the error that a failure stands for. */
export function raise({ failure: { code, message } }: Failed): never {
  if (code === 'DOORKEEP_CONFIG') throw new ConfigError(message)
  if (code === 'DOORKEEP_INVALID_KEY') throw new InvalidKeyError(message)
  throw Object.assign(new Error(message), { code })
}

/** The answer, unless it is a failure. */
export function unwrap<T>(answer: T | Failed): T {
  // Its own: what was put on the prototype of all objects must not make every answer a failure.
  if (typeof answer === 'object' && answer !== null && Object.hasOwn(answer, 'failure')) raise(answer as Failed)
  return answer as T
}
