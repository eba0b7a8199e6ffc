/**
 * Loads the native module, and has the types of its functions.
 *
 * A function returns `undefined` when its result is in the slots (`slots.ts`), a value, or a {@link Failed}; it never
 * throws. A function of a limiter with a store returns the id of the pending call, a number that only `promises.ts`
 * understands. Invariant: the native module and the package have the same version.
 */

/** A failure as data; `failure.ts` makes the error. */
export interface Failed {
  readonly failure: {
    readonly code: 'DOORKEEP_CONFIG' | 'DOORKEEP_INVALID_KEY' | 'DOORKEEP_INTERNAL'
    readonly message: string
  }
}

/** What a function returns whose result is in the slots. */
export type Done = undefined | Failed

/** The store of a limiter, undefined for memory, and its `onError`. */
export type NativeStorage = readonly [store: Handle | undefined, onError: Given]

/** An event of a store; its members are described in `store.ts`. */
export type NativeEvent = { readonly type: string }

/** An opaque native value: a store, an attempt or a reservation. */
export type Handle = { readonly __handle: unique symbol }

/** Any value: the core checks it. */
type Given = unknown

export interface NativeAttemptLimiter {
  readonly name: string
  attempt(key: Given, now: Given): Done
  decide(key: Given, now: Given): Done
  reserve(key: Given, now: Given): Handle | Failed
  cancel(reservation: Handle, now: Given): Done
  locked(key: Given, now: Given): Done
  retryAfter(key: Given, now: Given): Done
  reset(key: Given): Done
  refund(key: Given, now: Given): Done
  size(): number
  stats(): string
}

/** The keys of its calls are in the slots. */
export interface NativeLimiter {
  decide(cost: Given, now: Given): Done
  peek(cost: Given, now: Given): Done
  attempt(cost: Given, now: Given): Handle | Failed
  reset(): Done
  size(): number
  stats(): string
}

export interface NativeTokenBucket {
  allow(key: Given, now: Given): Done
  allowN(key: Given, n: Given, now: Given): Done
  retryAfter(key: Given, now: Given): Done
  reset(key: Given): Done
  close(): Done
  size(): number
  stats(): string
}

export interface NativeFixedWindow {
  readonly name: string
  readonly limit: number
  readonly windowMicros: number
  consume(key: Given, now: Given): Done
  peek(key: Given, now: Given): Done
  reset(key: Given): Done
  size(): number
  stats(): string
}

/** A rule as the core describes it. */
export interface NativeRule {
  readonly number: number
  readonly name: string
  readonly policy: string
  readonly ipv6Prefix: number
  readonly rates: string
  readonly threshold: number
  readonly lockoutWindowMicros: number
}

/** A decision on its way back to the core. */
export type NativeDecision = readonly [
  outcome: number,
  reason: string | null,
  rule: string | null,
  retryAfterMs: number | null,
  remaining: number,
  resetAfterMs: number,
]

/** A `ClientIp` as the core describes it. */
export interface NativeClientIp {
  readonly handle: Handle
  readonly header: string
  /** Canonical strings, separated by commas. */
  readonly trustedProxies: string
  /** The headers whose lines `clientIpResolve` reads, in lower case, separated by commas. */
  readonly headerNames: string
  /** How many characters at the end of a line are read. */
  readonly reach: number
}

export interface NativeRate {
  readonly text: string
  readonly count: number
  readonly periodMicros: number
}

/** The exports of the module. Test runners pass the same exports to every copy of the package that they load. */
interface Exports {
  readonly version: string
  /** Functions and memory for one copy of the package. */
  open(): Native
}

interface Native {
  readonly memory: ArrayBuffer
  attemptLimiter(
    threshold: Given,
    lockoutWindow: Given,
    maxTrackedKeys: Given,
    name: Given,
    storage: NativeStorage,
  ): NativeAttemptLimiter | Failed
  limiter(capacity: Given, storage: NativeStorage): NativeLimiter | Failed
  tokenBucket(
    rate: Given,
    window: Given,
    capacity: Given,
    name: Given,
    storage: NativeStorage,
  ): NativeTokenBucket | Failed
  fixedWindow(
    limit: Given,
    window: Given,
    maxKeys: Given,
    name: Given,
    storage: NativeStorage,
  ): NativeFixedWindow | Failed
  store(url: Given, prefix: Given, timeout: Given, onError: Given, clock: Given): Handle | Failed
  storeClose(store: Handle): Done
  storeEvents(store: Handle): readonly NativeEvent[] | undefined | Failed
  openBridge(receive: () => void, resource: object): Done
  takeCompletions(): number | Failed
  nextCompletion(): unknown
  rule(name: Given, rates: Given, ipv6Prefix: Given, secret: Given, by: readonly Given[]): NativeRule | Failed
  strikeRule(
    name: Given,
    strikes: readonly Given[],
    ipv6Prefix: Given,
    secret: Given,
    by: readonly Given[],
  ): NativeRule | Failed
  ruleMaxIn(rule: number, span: Given): number | Failed
  key(rule: number, part: string): Done
  keyOfParts(rule: number, parts: readonly Given[]): Done
  ipKey(rule: number, address: Given): Done
  /** The keys from position `first` on are in the slots, and the number of all keys. A string is a warning. */
  keysFor(
    rules: readonly number[],
    address: Given,
    words: readonly string[],
    values: readonly Given[],
    first: number,
  ): string | Done
  network(address: Given, ipv6Prefix: Given): string | Failed
  preset(name: string): (NativeRule & { readonly by: readonly string[] }) | Failed
  lint(rules: readonly number[], forgive: readonly Given[]): readonly string[] | Failed
  refuseClaim(name: string): Failed
  httpStatus(decision: NativeDecision): number | Failed
  /** The keys are in the slots. Returns names and values alternately. */
  httpHeaders(decision: NativeDecision, roundUp: Given, rateLimit: boolean): readonly string[] | Failed
  httpRoundUp(roundUp: Given): Done
  clientIp(trustedProxies: readonly Given[], header: Given): NativeClientIp | Failed
  clientIpResolve(clientIp: Handle, peer: Given, lines: readonly string[]): string | Done
  clientIpWarning(clientIp: Handle, peer: Given, lines: readonly string[]): string | Done
  canonicalEmail(text: Given, dropTags: Given, dropGmailDots: Given): string | Failed
  canonicalUsername(text: Given): string | Failed
  notHeaders(): Failed
  rate(count: Given, period: Given): NativeRate | Failed
  rates(text: Given): string | Failed
  ratesMaxIn(text: string, span: Given): number | Failed
  attemptSuccess(
    attempt: Handle,
    forgive: readonly Given[],
    giveBack: readonly Given[],
    forgiveAddress: readonly Given[],
    now: Given,
  ): Done
  attemptFailure(attempt: Handle): Done
  attemptCancel(attempt: Handle, now: Given): Done
  attemptRelease(attempt: Handle, now: Given): Done
  attemptExtend(cost: Given, now: Given, attempt: Handle): Done
  span(duration: Given): number | Failed
  now(moment: Given): number | Failed
  unknownOption(name: string): Failed
}

function load(): Exports {
  const causes: unknown[] = []
  for (const platform of platforms()) {
    try {
      return require(`../doorkeep.${platform}.node`) as Exports
    } catch (cause) {
      causes.push(cause)
    }
  }
  throw new AggregateError(
    causes,
    `doorkeep has no native module that loads on ${process.platform}-${process.arch}: ${causes.map(String).join('; ')}`,
  )
}

/** Returns the suffixes of the binaries for this machine. Which C library Linux has is found by trying. */
function platforms(): string[] {
  const { platform, arch } = process
  if (platform === 'linux') return [`linux-${arch}-gnu`, `linux-${arch}-musl`]
  if (platform === 'win32') return [`win32-${arch}-msvc`]
  return [`${platform}-${arch}`]
}

function loadMatching(): Native {
  const loaded = load()
  const { version } = require('../../../package.json') as { version: string }
  if (loaded.version !== version) {
    throw new Error(
      `doorkeep ${version} found the native module of version ${loaded.version}: install the package again, or build it`,
    )
  }
  return loaded.open()
}

export const native: Native = loadMatching()
