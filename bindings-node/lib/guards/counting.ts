/**
 * Counts a request before its handler runs, for the guards of all frameworks.
 *
 * Knows no framework, does no arithmetic and reads no clock. The attempts of a request are in `requests.ts`, the bytes
 * of denials in `answers.ts`. Tested through each adapter, in `tests/node/guards.test.mjs`.
 */
import type { IncomingMessage } from 'node:http'
import { InvalidKeyError } from '../errors.js'
import { headers } from '../http.js'
import { ClientIp } from '../identity/client-ip.js'
import type { Attempt } from '../limiters/attempt.js'
import { errorClasses } from '../limiters/give-back.js'
import { keysFor } from '../rules/keys-for.js'
import { answer, type GuardAnswer, INVALID_KEY } from './answers.js'
import { type Addressed, clientAddress, isLost } from './client-address.js'
import { type AddressOptions, checkAddresses, checkKeys, checkLimiter, type GuardOptions } from './options.js'
import { type Counted, countFor } from './requests.js'

/** How a request goes on. */
export interface GuardResult extends GuardAnswer {
  /** The attempt of this limiter in this request; undefined when a key could not be counted. */
  readonly attempt: Attempt | undefined
}

/**
 * Makes the function that counts a request. `identity` is the object that all guards of one request have in common, in
 * whatever shape a framework passes the request to each of them. Rejects with any error but that of a key.
 *
 * @throws {@link ConfigError} when an option is wrong.
 */
export function counting<Request>(
  options: GuardOptions<Request>,
): (request: Request, identity: object) => Promise<GuardResult> {
  const giveBackOn = errorClasses(options.giveBackOn)
  return countingKeys(options, (counted) => counted.giveBackOn.push(...giveBackOn))
}

/**
 * Makes the function that counts a request under rules on addresses. A request that has no address by nature is let
 * through, with a warning each time, since nothing is counted. One that has lost its address is refused.
 *
 * @throws {@link ConfigError} when an option is wrong.
 */
export function countingAddresses({
  rules,
  clientIp = new ClientIp(),
  ...rest
}: AddressOptions): (request: Addressed, identity: object) => Promise<GuardResult> {
  checkAddresses({ rules, clientIp })
  const keys = (address: string) => keysFor(rules, { address })
  const count = countingKeys({ ...rest, keys, roundUp: undefined, giveBackOn: undefined })

  return async (request, identity) => {
    if (isLost(identity)) return REFUSED
    const address = clientAddress(request, clientIp)
    if (address !== null) return count(address, identity)
    warnOfNothingCounted()
    return GO_ON
  }
}

function countingKeys<Request>(
  options: GuardOptions<Request>,
  remember: (counted: Counted) => void = () => {},
): (request: Request, identity: object) => Promise<GuardResult> {
  const { limiter, keys, cost, roundUp, rateLimit } = options
  checkLimiter(limiter)
  checkKeys(options)

  return async (request, identity) => {
    // Before the keys are made, so that they find the address however long they take.
    if (isLost(identity)) return REFUSED
    try {
      const made = await keys(request)
      const { counted, decision } = await countFor(identity, limiter, made, cost)
      if (decision.allowed) remember(counted)
      // An allowed request has no field unless the guard wants `RateLimit`: most requests then save the native call.
      const fields = decision.allowed && !rateLimit ? {} : headers(decision, { keys: made, roundUp, rateLimit })
      return { attempt: counted.attempt, ...answer(decision, behindEarlier(identity, fields)) }
    } catch (error) {
      if (!(error instanceof InvalidKeyError)) throw error
      warnOfUnreadBody(identity)
      return REFUSED
    }
  }
}

// The fields that are lists: each guard of a request has its own to add.
const LISTS = ['RateLimit', 'RateLimit-Policy']
const lists = new WeakMap<object, Record<string, string>>()

function behindEarlier(identity: object, fields: Record<string, string>): Record<string, string> {
  const sent = lists.get(identity) ?? {}
  const joined = { ...fields }
  for (const name of LISTS) {
    if (fields[name] === undefined) continue
    joined[name] = sent[name] === undefined ? fields[name] : `${sent[name]}, ${fields[name]}`
    sent[name] = joined[name]
    lists.set(identity, sent)
  }
  return joined
}

const GO_ON: GuardResult = Object.freeze({ attempt: undefined, headers: {}, denial: undefined })

const REFUSED: GuardResult = Object.freeze({ attempt: undefined, ...INVALID_KEY })

function warnOfNothingCounted(): void {
  const text = 'a request was not counted: it has no address, and all rules in front of it are on the address'
  process.emitWarning(text, { type: 'DoorkeepWarning', code: 'DOORKEEP_NOT_COUNTED' })
}

let hasWarned = false

// In front of its parser a guard refuses every request, and no client would report why.
function warnOfUnreadBody(identity: Partial<IncomingMessage>): void {
  const { headers = {}, readableDidRead } = identity
  const isUnread = readableDidRead === false && Number(headers['content-length']) > 0
  if (hasWarned || !isUnread) return
  hasWarned = true
  const text =
    'a request was refused with 400 before its body was read: a guard whose keys need the body stands behind its parser'
  process.emitWarning(text, { type: 'DoorkeepWarning', code: 'DOORKEEP_UNREAD_BODY' })
}
