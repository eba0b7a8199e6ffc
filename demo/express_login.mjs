// A login endpoint in Express that doorkeep guards, its attempts counted in memory or in the Redis at REDIS_URL.
// Run by `make demo`, which attacks it. By hand: PORT=8000 node demo/express_login.mjs
import { setTimeout as sleep } from 'node:timers/promises'
import { Limiter, network, RedisStore, Rule, StrikeRule } from 'doorkeep'
import { guard } from 'doorkeep/express'
import express from 'express5' // express, under the name by which this repository installs version 5

const loginIp = new Rule('login-ip', '20/1m,200/1h', { by: ['address'] })
const loginAccountIp = new StrikeRule('login-account-ip', {
  threshold: 5,
  lockoutWindow: '15m',
  by: ['account', 'address'],
})
const loginAccount = new Rule('login-account', '50/1h', { by: ['account'] })

// REDIS_URL is the same in every service that shall share these rules.
const { REDIS_URL: redis, DEMO_PREFIX: prefix = 'demo', DEMO_ON_ERROR: onError = 'local' } = process.env
const store = redis ? new RedisStore(redis, { prefix, onError }) : undefined
const limiter = new Limiter({ store, capacity: Number(process.env.DEMO_CAPACITY ?? 100_000) })

const app = express()

const loginKeys = (req) => {
  const address = clientAddress(req)
  const { email } = req.body
  return [loginIp.ipKey(address), loginAccountIp.key(email, network(address)), loginAccount.key(email)]
}

// The guard answers denied attempts: 429 with Retry-After, 503 when the store is unavailable.
app.post('/login', express.json(), guard({ limiter, keys: loginKeys }), async (req, res) => {
  const { email, password } = req.body
  verified.alone += Number(req.attempt.decision.degraded)
  if (!(await verify(email, password))) {
    res.status(401).json({ error: 'wrong email or password' })
    return
  }
  await req.attempt.success({ forgive: [loginAccountIp], giveBack: [loginIp, loginAccount] })
  res.json({ welcome: email })
})

function clientAddress(req) {
  // A real service takes the address of the socket's peer, req.socket.remoteAddress: anybody can write a header.
  // The demo trusts one because its attacker plays thousands of clients from one machine.
  return req.get('x-demo-client')
}

const passwords = new Map([['ann@example.com', 'correct horse battery staple']])
const verified = { right: 0, wrong: 0, alone: 0 }

// Stands in for a slow password hash, and counts how many passwords were really looked at.
async function verify(email, password) {
  await sleep(5)
  const right = passwords.get(email) === password
  verified[right ? 'right' : 'wrong'] += 1
  return right
}

// Tells the attacker what its attack came to.
app.get('/demo', (_req, res) => {
  const unanswered = Object.values(limiter.stats().storeFailed).reduce((sum, calls) => sum + calls, 0)
  res.json({ ...verified, held: limiter.size, unanswered })
})

const server = app.listen(Number(process.env.PORT ?? 0), '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`)
})
