/** What the types promise, checked by the compiler alone: every line that must not compile is marked. */
import {
  type At,
  type Attempt,
  AttemptDenied,
  AttemptLimiter,
  type Cancelled,
  ClientIp,
  type Decision,
  type FixedWindow,
  http,
  IssueGuard,
  type Key,
  keyFromClaims,
  Limiter,
  LimiterUnavailable,
  lint,
  ManualClock,
  network,
  Outcome,
  presets,
  Rate,
  type RateLimitProvider,
  Rates,
  type Reason,
  RedisStore,
  type Reservation,
  Rule,
  type Stats,
  type StoreEvent,
  StrikeRule,
  TokenBucket,
} from 'doorkeep'
import {
  addressLimit,
  answerErrors,
  attemptOf,
  clientAddress,
  type GuardOptions,
  giveBack,
  guard,
} from 'doorkeep/express'
import express, {
  type ErrorRequestHandler,
  type NextFunction,
  type Request,
  type RequestHandler,
  type Response,
} from 'express'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const is = <A, B>(_same: Same<A, B>): void => {}

export async function limiters(): Promise<void> {
  const clock = new ManualClock(0)
  const ip = new Rule('login-ip', '20/1m,200/1h', { ipv6Prefix: 64 })
  const rates = new Rule('login-account', new Rates([new Rate(50, '1h')]), { by: ['account'] })
  const pair = new StrikeRule('pair', { threshold: 5, lockoutWindow: '15m', by: ['account', 'address'] })
  const key: Key = pair.key('ann', network('203.0.113.9', 56))
  const limiter = new Limiter({ capacity: 100_000, clock, onError: undefined })

  const decision = await limiter.decide([ip.ipKey('203.0.113.9'), key], { cost: 1, now: 0 })
  is<typeof decision, Decision>(true)
  is<Decision['retryAfterMs'], number | null>(true)
  is<Decision['retryAfterSeconds'], number | null>(true)
  is<Decision['reason'], Reason | null>(true)
  is<Decision['rule'], string | null>(true)
  is<Decision['engaged'], readonly string[]>(true)
  is<Decision['outcome'], 0 | 1 | 2>(true)

  is<Promise<boolean>, ReturnType<typeof limiter.allow>>(true)
  is<boolean, ReturnType<typeof limiter.allowSync>>(true)
  const attempt: Attempt = limiter.attemptSync(key)
  is<Promise<boolean>, ReturnType<Attempt['failure']>>(true)
  is<boolean, ReturnType<Attempt['cancelSync']>>(true)
  await attempt.success({ forgive: [pair, 'login-ip'], giveBack: [rates], forgiveAddress: [], now: 0 })
  const { value } = await limiter.run(key, async (given) => given.allowed, { giveBackOn: [RangeError, TypeError] })
  is<typeof value, boolean | undefined>(true)
  const ran = limiter.runSync(key, () => 5)
  is<typeof ran.value, number | undefined>(true)
  const configured = Limiter.fromConfig({ rules: { a: '5/1m', b: { threshold: 5, lockoutWindow: 900_000 } } })
  is<(typeof configured.rules)[string], Rule | StrikeRule>(true)
  const { evicted }: Stats = limiter.stats()
  is<typeof evicted, number>(true)

  const strikes = new AttemptLimiter({ threshold: 5, lockoutWindow: '15m' })
  const at: At = { now: clock() }
  const outcome: Outcome = await strikes.attempt('ann', at)
  if (outcome === Outcome.Denied) return
  const { reservation } = strikes.reserveSync('ann', 5)
  is<typeof reservation, Reservation>(true)
  const cancelled: Cancelled = await strikes.cancel(reservation)
  is<typeof cancelled, 'nothing' | 'givenBack' | 'lifted'>(true)
  is<number | null, ReturnType<AttemptLimiter['retryAfterMsSync']>>(true)
  is<boolean, ReturnType<TokenBucket['allowSync']>>(true)
  is<Promise<Decision>, ReturnType<FixedWindow['consume']>>(true)
  const denied: AttemptDenied = new LimiterUnavailable(decision)
  is<typeof denied.code, 'DOORKEEP_DENIED' | 'DOORKEEP_UNAVAILABLE'>(true)
  is<typeof denied.headers, Readonly<Record<string, string>>>(true)
  is<typeof denied.keys, readonly Key[]>(true)
  throw new AttemptDenied(decision, { keys: [key], roundUp: '1m' })
}

export async function told(decision: Decision, key: Key): Promise<void> {
  is<ReturnType<typeof http.status>, number>(true)
  const headers = http.headers(decision, { keys: [key], roundUp: '1m', rateLimit: true })
  is<typeof headers, Record<string, string>>(true)
  is<typeof presets.loginIp, Rule>(true)
  is<typeof presets.pciDss4, StrikeRule>(true)
  is<ReturnType<typeof lint>, string[]>(true)
  lint([presets.loginIp, presets.stig], { forgive: [presets.stig, 'login-ip'] })
  const provider: RateLimitProvider = new TokenBucket()
  await new IssueGuard(provider, { key: (claims: { tenant: string }) => claims.tenant }).check({ tenant: 'acme' })
  new IssueGuard({ allow: () => true, reset() {}, close() {} }).checkSync({ sub: keyFromClaims({}) })
  // @ts-expect-error a decision that is not awaited is not a decision
  http.status(Promise.resolve(decision))
  // @ts-expect-error a provider answers yes or no
  new IssueGuard({ allow: () => 'yes', reset() {}, close() {} })
}

export async function stores(): Promise<void> {
  const onEvent = (event: StoreEvent): void => {
    if (event.type === 'store_down') is<typeof event.why, string>(true)
  }
  await using store = new RedisStore('redis://127.0.0.1/0', {
    prefix: 'shop',
    timeout: '200ms',
    clock: 'server',
    onEvent,
  })
  const disposable: AsyncDisposable = store
  const strikes = new AttemptLimiter({ threshold: 5, lockoutWindow: '15m', name: 'login', store, onError: 'closed' })
  is<Promise<Outcome>, ReturnType<typeof strikes.attempt>>(true)
  const limiter = Limiter.fromConfig({ redis: 'redis://127.0.0.1/0', prefix: 'shop', timeout: 200, onError: 'open' })
  is<typeof limiter.store, RedisStore | undefined>(true)
  await store.close()
  await disposable[Symbol.asyncDispose]()
}

export function mistakes(limiter: Limiter, rule: Rule): void {
  // @ts-expect-error both are required
  new AttemptLimiter({ threshold: 5 })
  // @ts-expect-error there is no such option
  new TokenBucket({ rat: 5 })
  // @ts-expect-error a key has at least one part
  rule.key()
  // @ts-expect-error a string is not a key
  limiter.decideSync('ann')
  // @ts-expect-error an object that looks like a key was not made by a rule
  limiter.decideSync({ rule: 'login', digest: '00', toJSON: () => ({ rule: 'login', digest: '00' }) })
  // @ts-expect-error not a store
  new Limiter({ store: {} })
  // @ts-expect-error the URL is required
  new RedisStore()
  // @ts-expect-error there is no such mode
  new RedisStore('redis://127.0.0.1/0', { onError: 'deny' })
  // @ts-expect-error a decision is read, not written
  limiter.decideSync(rule.key('a')).remaining = 5
}

export function routes(limiter: Limiter, rule: Rule): void {
  const app = express()
  const clientIp = new ClientIp({ trustedProxies: ['10.0.0.0/8'] })
  app.use(addressLimit({ limiter, rules: [rule], clientIp, cost: 2, rateLimit: true }))
  express.Router().use(addressLimit({ limiter, rules: [rule] }), (req) => {
    is<ReturnType<typeof clientAddress>, string | null>(true)
    clientAddress(req, clientIp)
  })
  const options: GuardOptions = { limiter, keys: (req) => rule.key(req.body.email) }
  app.use(guard(options))
  const typed: RequestHandler = guard({ limiter, keys: (req: Request) => rule.ipKey(req.ip ?? '') })
  app.post(
    '/login',
    typed,
    guard({ limiter, keys: async (req) => [rule.key(req.body.email)], cost: 2, roundUp: '1m', giveBackOn: RangeError }),
    (req, res) => {
      is<typeof req.attempt, Attempt | undefined>(true)
      is<ReturnType<typeof attemptOf>, Attempt | undefined>(true)
      res.json(attemptOf(req, limiter)?.decision)
    },
  )
  app.use(answerErrors())
  const handler: ErrorRequestHandler = answerErrors()
  app.use(handler, async (error: Error, req: Request, res: Response, next: NextFunction) => {
    is<ReturnType<typeof giveBack>, Promise<void>>(true)
    await giveBack(error, req, res)
    next(error)
  })
  // @ts-expect-error the wait of an address is not rounded
  addressLimit({ limiter, rules: [rule], roundUp: '1m' })
}
