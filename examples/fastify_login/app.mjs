// A service with the four endpoints that attackers guess at: login, forgotten password, one-time code, token.
//
// Run: PORT=3000 node examples/fastify_login/app.mjs. LOCKOUT_WINDOW is how long the fifth wrong password locks;
// TRUSTED_PROXIES lists the addresses and networks of your own proxies, separated by commas; REDIS_URL names the Redis in
// which several processes share one budget.
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { ClientIp, canonicalEmail, keysFor, Limiter, presets, RedisStore, Rule, StrikeRule } from 'doorkeep'
import { clientAddress, doorkeep, guard } from 'doorkeep/fastify'
import fastify from 'fastify'
import { findAccount, sendReset, verifyClient, verifyCode, verifyPassword } from './accounts.mjs'

const {
  PORT = 3000,
  LOCKOUT_WINDOW: lockoutWindow = '15m',
  TRUSTED_PROXIES: proxies = '',
  REDIS_URL: redis,
} = process.env
const store = redis ? new RedisStore(redis, { prefix: 'fastify-login' }) : undefined
const limiter = new Limiter({ store })
const clientIp = new ClientIp({ trustedProxies: proxies.split(',').filter(Boolean) })

// A wide rule for everything that one address posts. Each endpoint has its own narrow rules.
const postIp = new Rule('post-ip', '600/1m', { by: ['address'] })
const loginAccountIp = new StrikeRule('login-account-ip', { threshold: 5, lockoutWindow, by: ['account', 'address'] })
// The client first: the rule on the account, which anybody can fill, must not be the first to deny.
const loginRules = [presets.loginIp, loginAccountIp, presets.loginAccount]

// Keys are built before any account is looked up. An invalid email is answered with 400.
const email = (request) => canonicalEmail(request.body?.email)
const address = (request) => clientAddress(request, clientIp)
const keysOf =
  (rules) =>
  (request, account = email(request)) =>
    keysFor(rules, { address: address(request), account, email: account })
const loginKeys = keysOf(loginRules)
const resetKeys = keysOf([presets.resetIp, presets.resetSend])
const codeKeys = keysOf([presets.otpIp, presets.otpVerify])

/** Returns the account, unless its stored name is denied: a database may find one account under several spellings. */
async function lookUp(request, keys) {
  const account = await findAccount(email(request))
  const { allowed } = await request.attempt.extend(keys(request, account?.email))
  return allowed ? account : undefined
}

const app = fastify()
const page = await readFile(new URL('login.html', import.meta.url), 'utf8')
app.get('/', (_request, reply) => reply.type('text/html; charset=utf-8').send(page))

const isForm = (request) => request.headers['content-type']?.startsWith('application/x-www-form-urlencoded')
app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, async (_request, body) =>
  Object.fromEntries(new URLSearchParams(body)),
)

app.register(async (posts) => {
  // In onRequest, so addresses are counted before a body is read. The guards of the routes continue the same attempt.
  await posts.register(doorkeep, { limiter, rules: [postIp], clientIp })

  // The guard answers a denied attempt with 429 and Retry-After. In the handler the attempt is already counted.
  posts.post('/login', { preHandler: guard({ limiter, keys: loginKeys }) }, async (request, reply) => {
    const { attempt, body } = request
    const account = await lookUp(request, loginKeys)
    // A denied account costs a hash, like an unknown one: the answer must not reveal that it exists.
    // A wrong password needs no call: the attempt stays counted, as it does if the service fails.
    if (!(await verifyPassword(account, body.password))) {
      // A browser without JavaScript is redirected back to the page. A redirect is not a success.
      if (isForm(request)) return reply.redirect('/?wrong', 302)
      return reply.code(401).send({ error: 'wrong email or password' })
    }
    // Forgive only what nobody else can have filled; the other rules get this one attempt back.
    await attempt.success({ forgive: [loginAccountIp], giveBack: [presets.loginIp, presets.loginAccount] })
    return isForm(request) ? reply.redirect('/?welcome', 302) : { welcome: account.email }
  })

  // The answer is the same for everybody, and there is nothing to settle: each requested mail counts.
  posts.post('/forgot-password', { preHandler: guard({ limiter, keys: resetKeys }) }, async (request, reply) => {
    const account = await lookUp(request, resetKeys)
    if (account) sendReset(account)
    return reply.code(202).send({ message: 'if there is such an account, a mail is on its way' })
  })

  posts.post('/otp', { preHandler: guard({ limiter, keys: codeKeys }) }, async (request, reply) => {
    const account = await lookUp(request, codeKeys)
    if (!verifyCode(account, request.body.code)) return reply.code(401).send({ error: 'wrong code' })
    // Give back, do not forgive: the owner's success must not hand a fresh budget to someone else who is guessing.
    await request.attempt.success({ giveBack: [presets.otpIp, presets.otpVerify] })
    return { verified: account.email }
  })

  // Client secrets are long and random, so the wide rule is enough before they are checked. Their subject is counted
  // after that: no other client can spend its budget.
  posts.decorateRequest('subject', undefined)
  const authenticate = async (request, reply) => {
    request.subject = await verifyClient(request.body?.client_id, request.body?.client_secret)
    return request.subject ? undefined : reply.code(401).send({ error: 'unknown client' })
  }
  const subjectKeys = (request) => keysFor([presets.tokenIssue], { subject: request.subject })
  posts.post('/token', { preHandler: [authenticate, guard({ limiter, keys: subjectKeys })] }, async (request) => {
    await request.attempt.success({ giveBack: [postIp] }) // both guards share one attempt
    return { access_token: randomBytes(32).toString('base64url'), token_type: 'Bearer' }
  })
})

// A failure leaves its attempt counted. If a guard sets giveBackOn, call giveBack here.
app.setErrorHandler(async (error, _request, reply) => {
  const status = error.statusCode ?? 500
  return reply.code(status).send({ error: status < 500 ? 'bad request' : 'something went wrong' })
})

await app.listen({ port: Number(PORT), host: '127.0.0.1' })
