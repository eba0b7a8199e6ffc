/**
 * What the guards of all frameworks share: one attempt per request and limiter, and what a denial answers.
 *
 * Knows no framework: a request is an object that lives as long as it does. Holds no arithmetic and reads no clock.
 * Invariant: the bytes of a denial depend on the decision alone, never on whether the account exists.
 * Tested through each adapter, in `tests/node/guards.test.mjs`.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { Attempt } from './attempt.js'
import { ClientIp } from './client-ip.js'
import type { Decision } from './decision.js'
import { ConfigError, InvalidKeyError } from './errors.js'
import { checkRoundUp, headers, status } from './http.js'
import type { Keys } from './key.js'
import { keysFor, warnOfNoAddress } from './keys-for.js'
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
   * Makes Retry-After a multiple of this duration, unless the rule that denied is keyed by an address alone: a stranger
   * then does not read from the wait how recently others tried an account. Whole seconds, at least 1.
   */
  readonly roundUp?: Duration | undefined
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
}

/** What a guard by addresses takes, for all routes below it. */
export interface AddressOptions extends CountOptions {
  /** Rules that are `by` the address alone. */
  readonly rules: readonly KeyRule[]
  /** Finds the address of the client; by default the peer, so that no header is believed. */
  readonly clientIp?: ClientIp | undefined
}

/** What an address is found in: a request of Node, of Express or of Fastify. */
export interface Addressed {
  readonly socket: { readonly remoteAddress?: string | undefined }
  readonly headers: IncomingHttpHeaders
}

/** What to answer in place of the handler. */
export interface Denial {
  /** 429, 503 when the limiter is unavailable, 400 when a key cannot be counted. */
  readonly status: number
  readonly body: { readonly error: string }
}

/** How a request goes on. */
export interface Verdict {
  /** The attempt of this limiter in this request; undefined when a key could not be counted. */
  readonly attempt: Attempt | undefined
  /** For the answer, whoever gives it. */
  readonly headers: Readonly<Record<string, string>>
  /** Undefined when the handler may run. */
  readonly denial: Denial | undefined
}

const COUNT = ['limiter', 'cost', 'roundUp', 'rateLimit']
/** The names of {@link GuardOptions}. */
export const GUARD: ReadonlySet<string> = new Set([...COUNT, 'keys'])
/** The names of {@link AddressOptions}. */
export const ADDRESSES: ReadonlySet<string> = new Set([...COUNT, 'rules', 'clientIp'])

// By the request itself, so that an attempt goes when its request does.
const attempts = new WeakMap<object, Map<Limiter, Attempt>>()

/**
 * Makes the function that counts a request. `identity` is the object that all guards of one request have in common, in
 * whatever shape a framework shows the request to each of them. Rejects with any error but that of a key.
 *
 * @throws {@link ConfigError} when there is no limiter or no function for the keys, or `roundUp` is none.
 */
export function counting<Request>(
  options: GuardOptions<Request>,
): (request: Request, identity: object) => Promise<Verdict> {
  const { limiter, keys, cost, roundUp, rateLimit } = options
  if (!(limiter instanceof Limiter)) throw new ConfigError('limiter must be a Limiter')
  if (typeof keys !== 'function') throw new ConfigError('keys must be a function')
  checkRoundUp(roundUp)

  return async (request, identity) => {
    try {
      const asked = await keys(request)
      const decision = await count(identity, limiter, asked, cost)
      const fields = headers(decision, { keys: asked, roundUp, rateLimit })
      return { attempt: attemptOf(identity, limiter), ...answer(decision, behindEarlier(identity, fields)) }
    } catch (error) {
      if (!(error instanceof InvalidKeyError)) throw error
      return { attempt: undefined, headers: ANSWER, denial: { status: 400, body: { error: 'invalid key' } } }
    }
  }
}

/**
 * Makes the function that counts a request under rules on addresses. Without a usable address it is let through.
 *
 * @throws {@link ConfigError} when there is no limiter, or a rule is not `by` the address alone.
 */
export function countingAddresses({
  rules,
  clientIp = new ClientIp(),
  ...rest
}: AddressOptions): (request: Addressed, identity: object) => Promise<Verdict> {
  const list = Array.isArray(rules) ? rules : []
  if (list.length === 0 || !list.every(isByAddress)) throw new ConfigError("rules must be rules by ['address']")
  if (!(clientIp instanceof ClientIp)) throw new ConfigError('clientIp must be a ClientIp')
  const count = counting<string>({ ...rest, keys: (address) => keysFor(list, { address }) })

  return async (request, identity) => {
    const address = clientAddress(request, clientIp)
    if (address !== null) return count(address, identity)
    warnOfNoAddress()
    return GO_ON
  }
}

/**
 * The address of the client of a request, or null when there is no usable one, as over a Unix socket. It knows the proxies
 * of `clientIp` alone, whatever the framework was told to trust.
 */
export function clientAddress(request: Addressed, clientIp: ClientIp): string | null {
  return clientIp.resolve(request.socket.remoteAddress, request.headers)
}

/** The attempt that the guards of this limiter counted for a request. */
export function attemptOf(identity: object, limiter: Limiter): Attempt | undefined {
  return attempts.get(identity)?.get(limiter)
}

async function count(identity: object, limiter: Limiter, keys: Keys, cost: number | undefined): Promise<Decision> {
  const before = attemptOf(identity, limiter)
  if (before) return before.extend(keys, { cost })
  const attempt = await limiter.attempt(keys, { cost })
  const held = attempts.get(identity) ?? new Map<Limiter, Attempt>()
  attempts.set(identity, held.set(limiter, attempt))
  return attempt.decision
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

const ANSWER: Readonly<Record<string, string>> = Object.freeze({
  'Content-Type': 'application/json; charset=utf-8',
  'Cache-Control': 'no-store',
})

const GO_ON: Verdict = Object.freeze({ attempt: undefined, headers: {}, denial: undefined })

function isByAddress(rule: unknown): boolean {
  return rule instanceof KeyRule && rule.by.length === 1 && rule.by[0] === 'address'
}

function answer(decision: Decision, fields: Record<string, string>): Omit<Verdict, 'attempt'> {
  if (decision.allowed) return { headers: fields, denial: undefined }
  const error = decision.reason === 'unavailable' ? 'temporarily unavailable' : 'too many attempts'
  return { headers: { ...fields, ...ANSWER }, denial: { status: status(decision), body: { error } } }
}
