// A service that issues tokens: each subject has a budget, and each address a limit on wrong secrets.
//
// Run: PORT=3000 node examples/token_issuer_node/app.mjs. The environment selects what keeps the budget:
// PROVIDER is bucket (the default), window or quota; WINDOW is the time in which a bucket refills; REDIS_URL shares the
// budget; ADDRESS_RATES limits wrong secrets per address.
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { ClientIp, IssueGuard, Limiter, RateLimitExceeded, RedisStore, Rule, TokenBucket } from 'doorkeep'
import { addressLimit } from 'doorkeep/express'
import express from 'express'
import { errors } from 'jose'
import { DailyQuota, SharedWindow } from './providers.mjs'
import { Tokens } from './tokens.mjs'

const rate = 100 // tokens for each subject in each WINDOW
const {
  WINDOW: window = '1m',
  REDIS_URL: redis,
  SIGNING_KEY: signingKey = randomBytes(32).toString('hex'),
} = process.env
const store = redis ? new RedisStore(redis, { prefix: 'token-issuer' }) : undefined

// Client secrets are long and random, so a wide rule is enough: it keeps the noise down. A password needs the presets.
const tokenIp = new Rule('token-ip', process.env.ADDRESS_RATES ?? '600/1m', { by: ['address'] })
const limiter = new Limiter({ store })
const clientIp = new ClientIp() // { trustedProxies: ['10.0.0.0/8'] } behind your own proxies

const tokens = new Tokens(Buffer.from(signingKey), new IssueGuard(provider()))
const app = express()
app.disable('x-powered-by')
app.use(express.json())
// Counts only the address: the subject is not known before its secret is checked. Answers a denial with 429 and
// Retry-After. Over a Unix socket no client has an address: such a request passes with a warning, and has no attempt.
const admitted = addressLimit({ limiter, rules: [tokenIp], clientIp })

// A wrong secret stays counted on the address.
app.post('/token', admitted, async (req, res) => {
  const { client_id: id, client_secret: secret } = req.body ?? {}
  if (!known(id, secret)) {
    res.status(401).json({ error: 'unknown client' })
    return
  }
  await req.attempt?.success({ giveBack: [tokenIp] })
  res.json(await tokens.issue({ sub: id }))
})

// Draws on the same budget as /token.
app.post('/refresh', admitted, async (req, res) => {
  const issued = await tokens.refresh(String(req.body?.refresh_token))
  await req.attempt?.success({ giveBack: [tokenIp] })
  res.json(issued)
})

// Claims without a subject are not a key, so only the address is counted.
app.post('/guest', admitted, async (_req, res) => {
  res.json(await tokens.issue({}))
})

// Reading is never limited: every request of every service does it.
app.get('/whoami', async (req, res) => {
  const token = req.get('authorization')?.replace(/^Bearer /, '')
  const { sub = null } = await tokens.read(String(token), 'access')
  res.json({ sub })
})

app.use((error, _req, res, next) => {
  if (error instanceof RateLimitExceeded) {
    res.status(429).set(error.headers).json({ error: 'too many tokens' }) // a provider answers yes or no, so there is no Retry-After
  } else if (error instanceof errors.JOSEError) {
    res.status(401).json({ error: 'bad token' })
  } else if (error.status < 500) {
    res.status(error.status).json({ error: 'bad request' }) // without repeating it: it may contain a secret
  } else {
    next(error)
  }
})

function provider() {
  const { PROVIDER: name = 'bucket' } = process.env
  if (name === 'bucket') return new TokenBucket({ rate, window, name: 'token-bucket', store })
  if (name === 'window' && store) return new SharedWindow(rate, window, store)
  if (name === 'quota') return new DailyQuota(rate)
  throw new Error('PROVIDER must be bucket, window (with REDIS_URL) or quota')
}

// Compares secrets by digest and in constant time, even for unknown clients.
function known(id, secret) {
  const stored = clients.get(id)
  return timingSafeEqual(digest(String(secret)), stored ?? nobody) && stored !== undefined
}

function digest(secret) {
  return createHash('sha256').update(secret).digest()
}

// A real service has the digests in its database; the secrets are random, and only the clients have them.
const nobody = Buffer.alloc(32)
const clients = new Map(['billing', 'reports'].map((name) => [name, digest(`secret of ${name}`)]))

app.listen(process.env.PORT ?? 3000)
