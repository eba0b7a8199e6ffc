// A service with the four endpoints that attackers guess at: login, forgotten password, one-time code, token.
//
// Run: PORT=3000 node examples/express_login/app.mjs. LOCKOUT_WINDOW is how long the fifth wrong password locks;
// TRUSTED_PROXIES lists the addresses and networks of your own proxies, separated by commas; REDIS_URL names the Redis in
// which several processes share one budget.
import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { ClientIp, canonicalEmail, keysFor, Limiter, presets, RedisStore, Rule, StrikeRule } from 'doorkeep'
import { addressLimit, answerErrors, clientAddress, guard } from 'doorkeep/express'
import express from 'express'
import { findAccount, sendReset, verifyClient, verifyCode, verifyPassword } from './accounts.mjs'

const {
  PORT = 3000,
  LOCKOUT_WINDOW: lockoutWindow = '15m',
  TRUSTED_PROXIES: proxies = '',
  REDIS_URL: redis,
} = process.env
const store = redis ? new RedisStore(redis, { prefix: 'express-login' }) : undefined
const limiter = new Limiter({ store })
const clientIp = new ClientIp({ trustedProxies: proxies.split(',').filter(Boolean) })

// A wide rule for everything that one address posts. Each endpoint has its own narrow rules.
const postIp = new Rule('post-ip', '600/1m', { by: ['address'] })
const loginAccountIp = new StrikeRule('login-account-ip', { threshold: 5, lockoutWindow, by: ['account', 'address'] })
// The client first: the rule on the account, which anybody can fill, must not be the first to deny.
const loginRules = [presets.loginIp, loginAccountIp, presets.loginAccount]

// Keys are built before any account is looked up. An invalid email is answered with 400.
const email = (req) => canonicalEmail(req.body?.email)
const address = (req) => clientAddress(req, clientIp)
const keysOf =
  (rules) =>
  (req, account = email(req)) =>
    keysFor(rules, { address: address(req), account, email: account })
const loginKeys = keysOf(loginRules)
const resetKeys = keysOf([presets.resetIp, presets.resetSend])
const codeKeys = keysOf([presets.otpIp, presets.otpVerify])

/** Returns the account, unless its stored name is denied: a database may find one account under several spellings. */
async function lookUp(req, keys) {
  const account = await findAccount(email(req))
  const { allowed } = await req.attempt.extend(keys(req, account?.email))
  return allowed ? account : undefined
}

const app = express()
app.disable('x-powered-by')
app.get('/', (_req, res) => res.sendFile(fileURLToPath(new URL('login.html', import.meta.url))))

const posts = express.Router()
posts.use(addressLimit({ limiter, rules: [postIp], clientIp }), express.json(), express.urlencoded({ extended: false }))
app.use(posts)

// The guard answers a denied attempt with 429 and Retry-After. In the handler the attempt is already counted.
posts.post('/login', guard({ limiter, keys: loginKeys }), async (req, res) => {
  const isForm = req.is('urlencoded') // sent by a browser without JavaScript, which is redirected back to the page
  const account = await lookUp(req, loginKeys)
  // A denied account costs a hash, like an unknown one: the answer must not reveal that it exists.
  // A wrong password needs no call: the attempt stays counted, as it does if the service fails.
  if (!(await verifyPassword(account, req.body.password))) {
    if (isForm) res.redirect(302, '/?wrong')
    else res.status(401).json({ error: 'wrong email or password' })
    return
  }
  // Forgive only what nobody else can have filled; the other rules get this one attempt back.
  await req.attempt.success({ forgive: [loginAccountIp], giveBack: [presets.loginIp, presets.loginAccount] })
  if (isForm) res.redirect(302, '/?welcome')
  else res.json({ welcome: account.email })
})

// The answer is the same for everybody, and there is nothing to settle: each requested mail counts.
posts.post('/forgot-password', guard({ limiter, keys: resetKeys }), async (req, res) => {
  const account = await lookUp(req, resetKeys)
  if (account) sendReset(account)
  res.status(202).json({ message: 'if there is such an account, a mail is on its way' })
})

posts.post('/otp', guard({ limiter, keys: codeKeys }), async (req, res) => {
  const account = await lookUp(req, codeKeys)
  if (!verifyCode(account, req.body.code)) {
    res.status(401).json({ error: 'wrong code' })
    return
  }
  // Give back, do not forgive: the owner's success must not hand a fresh budget to someone else who is guessing.
  await req.attempt.success({ giveBack: [presets.otpIp, presets.otpVerify] })
  res.json({ verified: account.email })
})

// Client secrets are long and random, so the wide rule is enough before they are checked. Their subject is counted
// after that: no other client can spend its budget.
const authenticate = async (req, res, next) => {
  req.subject = await verifyClient(req.body?.client_id, req.body?.client_secret)
  if (req.subject) next()
  else res.status(401).json({ error: 'unknown client' })
}
const subjectKeys = (req) => keysFor([presets.tokenIssue], { subject: req.subject })
posts.post('/token', authenticate, guard({ limiter, keys: subjectKeys }), async (req, res) => {
  await req.attempt.success({ giveBack: [postIp] }) // both guards share one attempt
  res.json({ access_token: randomBytes(32).toString('base64url'), token_type: 'Bearer' })
})

// answerErrors answers errors of doorkeep as a guard does. Any other failure leaves its attempt counted: no guard sets
// giveBackOn.
app.use(answerErrors())
app.use((error, _req, res, next) => {
  const status = error.status ?? 500
  if (res.headersSent) next(error)
  else res.status(status).json({ error: status < 500 ? 'bad request' : 'something went wrong' })
})

app.listen(PORT)
