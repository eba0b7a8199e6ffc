/**
 * What the guards of all frameworks share: one attempt per request and limiter.
 *
 * Knows no framework: a request is an object that lives as long as it does. Holds no arithmetic and reads no clock.
 * Invariants: a key is counted once in a request, whichever guards name it. What was counted stays counted, whatever comes
 * of the request, unless `giveBackOn` of a guard names the error. What is answered is in `answering.ts`.
 * Tested through each adapter, in `tests/node/guards.test.mjs`.
 */
import type { IncomingMessage } from 'node:http'
import { type Answer, answer, INVALID_KEY } from './answering.js'
import type { Attempt } from './attempt.js'
import { type Addressed, clientAddress, isLost } from './client-address.js'
import { ClientIp } from './client-ip.js'
import type { Decision } from './decision.js'
import { ConfigError, InvalidKeyError } from './errors.js'
import { checkRoundUp, headers } from './http.js'
import type { Keys } from './key.js'
import { keysFor } from './keys-for.js'
import { type ErrorClass, errorClasses, leave } from './leaving.js'
import { Limiter } from './limiter.js'
import type { Duration } from './options.js'
import { KeyRule } from './rule.js'

/** What every guard takes. */
export interface CountOptions {
  /** Decides. Guards of one limiter share one attempt per request. */
  readonly limiter: Limiter
  /** How much a request counts on each rate; by default 1. */
  readonly cost?: number | undefined
  /**
   * Adds the fields `RateLimit` and `RateLimit-Policy` to every answer, an allowed one included. They tell a stranger how
   * many attempts others have made. By default they are left out.
   */
  readonly rateLimit?: boolean | undefined
}

/** What a guard by keys takes. */
export interface GuardOptions<Request> extends CountOptions {
  /** The keys of a request, made before any account is looked up. An {@link InvalidKeyError} here answers 400. */
  readonly keys: (request: Request) => Keys | PromiseLike<Keys>
  /**
   * Makes Retry-After a multiple of this duration, unless the rule that denied is keyed by an address alone: a stranger
   * then does not read from the wait how recently others tried an account. Whole seconds, at least 1.
   */
  readonly roundUp?: Duration | undefined
  /**
   * Classes of errors that report a failure of the application and no guess, such as a database that is down: an attempt
   * whose handler fails with one is given back, except what was counted on an address alone. By default none.
   */
  readonly giveBackOn?: ErrorClass | readonly ErrorClass[] | undefined
}

/** What a guard by addresses takes, for all routes below it. */
export interface AddressOptions extends CountOptions {
  /** Rules that are `by` the address alone. */
  readonly rules: readonly KeyRule[]
  /** Finds the address of the client; by default the peer, so that no header is believed. */
  readonly clientIp?: ClientIp | undefined
}

/** How a request goes on. */
export interface Verdict extends Answer {
  /** The attempt of this limiter in this request; undefined when a key could not be counted. */
  readonly attempt: Attempt | undefined
}

/** What one limiter has counted for a request, and which errors give it back. */
export interface Held {
  readonly attempt: Attempt
  readonly giveBackOn: ErrorClass[]
}

const COUNT = ['limiter', 'cost', 'rateLimit']
/** The names of {@link GuardOptions}. */
export const GUARD: ReadonlySet<string> = new Set([...COUNT, 'keys', 'roundUp', 'giveBackOn'])
/** The names of {@link AddressOptions}. */
export const ADDRESSES: ReadonlySet<string> = new Set([...COUNT, 'rules', 'clientIp'])

// By the request itself, so that an attempt goes when its request does.
const requests = new WeakMap<object, Map<Limiter, Held>>()

/**
 * Makes the function that counts a request. `identity` is the object that all guards of one request have in common, in
 * whatever shape a framework shows the request to each of them. Rejects with any error but that of a key.
 *
 * @throws {@link ConfigError} when there is no limiter or no function for the keys, `roundUp` is none, or `giveBackOn`
 * lists something that is not a class.
 */
export function counting<Request>(
  options: GuardOptions<Request>,
): (request: Request, identity: object) => Promise<Verdict> {
  const giveBackOn = errorClasses(options.giveBackOn)
  return asking(options, (held) => held.giveBackOn.push(...giveBackOn))
}

/**
 * Makes the function that counts a request under rules on addresses. One that has no address by nature is let through, with
 * a warning each time, since nothing is counted. One that has lost its address is refused.
 *
 * @throws {@link ConfigError} when there is no limiter, or a rule is not `by` the address alone.
 */
export function countingAddresses({
  rules,
  clientIp = new ClientIp(),
  ...rest
}: AddressOptions): (request: Addressed, identity: object) => Promise<Verdict> {
  checkAddresses({ rules, clientIp })
  const keys = (address: string) => keysFor(rules, { address })
  const count = asking({ ...rest, keys, roundUp: undefined })

  return async (request, identity) => {
    if (isLost(identity)) return REFUSED
    const address = clientAddress(request, clientIp)
    if (address !== null) return count(address, identity)
    warnOfNothingCounted()
    return GO_ON
  }
}

/** Refuses what {@link countingAddresses} would refuse, where the limiter comes later. */
export function checkAddresses({ rules, clientIp }: Pick<AddressOptions, 'rules' | 'clientIp'>): void {
  const isList = Array.isArray(rules) && rules.length > 0
  if (!isList || !rules.every(isByAddress)) throw new ConfigError("rules must be rules by ['address']")
  if (clientIp !== undefined && !(clientIp instanceof ClientIp)) throw new ConfigError('clientIp must be a ClientIp')
}

/** Refuses what {@link counting} would refuse, where the limiter comes later. */
export function checkKeys({ keys, roundUp, giveBackOn }: Omit<GuardOptions<never>, 'limiter'>): void {
  if (typeof keys !== 'function') throw new ConfigError('keys must be a function')
  errorClasses(giveBackOn)
  checkRoundUp(roundUp)
}

/** Refuses what is not a limiter. */
export function checkLimiter(limiter: unknown): asserts limiter is Limiter {
  if (!(limiter instanceof Limiter)) throw new ConfigError('limiter must be a Limiter')
}

/** The attempt that the guards of this limiter counted for a request. */
export function attemptOf(identity: object, limiter: Limiter): Attempt | undefined {
  return heldFor(identity).get(limiter)?.attempt
}

/** What was counted for a request. */
export function heldFor(identity: object): ReadonlyMap<Limiter, Held> {
  return requests.get(identity) ?? new Map<Limiter, Held>()
}

/** What a request is, as far as it can be told whether somebody still waits for the answer. */
export interface Connected {
  readonly socket?: { readonly destroyed?: boolean }
}

/** A response of Node, as far as it can be told whether the answer has begun. */
export interface Responding {
  readonly headersSent?: boolean
}

/**
 * Gives back what guards have counted for a request, of one limiter or of all, if they name the error. Nothing when the
 * client has gone, and when it has the answer already: it may have read there whether its guess was right.
 */
export async function giveBackFor(
  error: unknown,
  request: Connected,
  response: Responding,
  only?: Limiter,
): Promise<void> {
  if (request.socket?.destroyed || response.headersSent) return
  for (const [limiter, held] of heldFor(request)) {
    if ((only ?? limiter) === limiter) await leave(held.attempt, error, held.giveBackOn)
  }
}

function asking<Request>(
  options: GuardOptions<Request>,
  remember: (held: Held) => void = () => {},
): (request: Request, identity: object) => Promise<Verdict> {
  const { limiter, keys, cost, roundUp, rateLimit } = options
  checkLimiter(limiter)
  if (typeof keys !== 'function') throw new ConfigError('keys must be a function')
  checkRoundUp(roundUp)

  return async (request, identity) => {
    // Before the keys are made, and so that they find the address however long they take.
    if (isLost(identity)) return REFUSED
    try {
      const asked = await keys(request)
      const { held, decision } = await count(identity, limiter, asked, cost)
      if (decision.allowed) remember(held)
      const fields = headers(decision, { keys: asked, roundUp, rateLimit })
      return { attempt: held.attempt, ...answer(decision, behindEarlier(identity, fields)) }
    } catch (error) {
      if (!(error instanceof InvalidKeyError)) throw error
      warnOfUnreadBody(identity)
      return REFUSED
    }
  }
}

async function count(identity: object, limiter: Limiter, keys: Keys, cost: number | undefined): Promise<Counted> {
  const before = heldFor(identity).get(limiter)
  if (before) return { held: before, decision: await before.attempt.extend(keys, { cost }) }
  const attempt = await limiter.attempt(keys, { cost })
  const held: Held = { attempt, giveBackOn: [] }
  const all = requests.get(identity) ?? new Map<Limiter, Held>()
  requests.set(identity, all.set(limiter, held))
  return { held, decision: attempt.decision }
}

interface Counted {
  readonly held: Held
  readonly decision: Decision
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

const GO_ON: Verdict = Object.freeze({ attempt: undefined, headers: {}, denial: undefined })

const REFUSED: Verdict = Object.freeze({ attempt: undefined, ...INVALID_KEY })

function warnOfNothingCounted(): void {
  const text = 'a request was not counted: it has no address, and all rules in front of it are on the address'
  process.emitWarning(text, { type: 'DoorkeepWarning', code: 'DOORKEEP_NOT_COUNTED' })
}

let hasWarned = false

// In front of its parser a guard refuses everybody, and no client would say why.
function warnOfUnreadBody(identity: Partial<IncomingMessage>): void {
  const { headers = {}, readableDidRead } = identity
  const isUnread = readableDidRead === false && Number(headers['content-length']) > 0
  if (hasWarned || !isUnread) return
  hasWarned = true
  const text =
    'a request was refused with 400 before its body was read: a guard whose keys need the body stands behind its parser'
  process.emitWarning(text, { type: 'DoorkeepWarning', code: 'DOORKEEP_UNREAD_BODY' })
}

function isByAddress(rule: unknown): boolean {
  return rule instanceof KeyRule && rule.by.length === 1 && rule.by[0] === 'address'
}
