/**
 * Clients whose address is lost, since they hang up immediately, and clients without one by nature, behind every guard.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rename, rm } from 'node:fs/promises'
import { IncomingMessage, request, ServerResponse } from 'node:http'
import https from 'node:https'
import net, { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { ClientIp, keysFor, Limiter, ManualClock, Rule, StrikeRule } from 'doorkeep'
import { addressLimit, clientAddress, guard } from 'doorkeep/express'
import * as ofFastify from 'doorkeep/fastify'
import express from 'express5'
import fastify from 'fastify'
import { frameworks } from './support/frameworks.mjs'
import { arrivals, posting, postingOverHttp2, reset, resetOverTls, SERVER_PSK } from './support/resets.mjs'

const ip = new Rule('login-ip', '5/1m', { by: ['address'] })
const pair = new StrikeRule('login-account-ip', { threshold: 5, lockoutWindow: '15m', by: ['account', 'address'] })
const account = new Rule('login-account', '20/1h', { by: ['account'] })
const guess = { email: 'ann@example.com', password: 'wrong' }
// A lost peer must not be taken for the proxy at the other end of a Unix socket.
const believing = new ClientIp({ trustedProxies: ['unix'] })
const forged = { 'x-forwarded-for': '198.51.100.7' }
const limiter = () => new Limiter({ clock: new ManualClock(1000) })
const many = (count, send) => Promise.all(Array.from({ length: count }, send))

async function socketPath(test) {
  const folder = await mkdtemp(join(tmpdir(), 'doorkeep-'))
  test.after(() => rm(folder, { recursive: true }))
  return join(folder, 'socket')
}

/** Posts over a Unix socket; returns the status and the text. */
async function postOver(path, url, body, headers = {}) {
  const text = JSON.stringify(body)
  const sent = request({
    socketPath: path,
    path: url,
    method: 'POST',
    // These first: where Node drops lines at the end, it must still accept the request.
    headers: { host: 'x', 'content-type': 'application/json', 'content-length': text.length, ...headers },
  })
  sent.end(text)
  const [response] = await once(sent, 'response')
  response.setEncoding('utf8')
  let answer = ''
  for await (const chunk of response) answer += chunk
  return { status: response.statusCode, text: answer }
}

for (const { name, login, clientAddress } of frameworks) {
  describe(name, () => {
    const keysBy = (clientIp) => (req) =>
      keysFor([ip, pair, account], { address: clientAddress(req, clientIp), account: req.body.email })
    const portOf = ({ origin }) => Number(new URL(origin).port)

    it('a client that resets its connection is refused by its guard, and nothing is counted for the account', async (test) => {
      for (const clientIp of [new ClientIp(), believing]) {
        const arrived = arrivals(test)
        const one = limiter()
        const served = await login(test, {
          guards: [{ limiter: one, keys: keysBy(clientIp) }],
          handle: async () => 401,
        })
        await many(100, () => reset(portOf(served), posting('/login', guess, forged)))
        await arrived(100)
        assert.deepEqual([served.seen.verified, one.size], [0, 0])
        assert.equal((await served.post('/login', guess)).status, 401)
      }
    })

    it('a client that resets its connection is refused by rules on addresses in front', async (test) => {
      for (const clientIp of [new ClientIp(), believing]) {
        const arrived = arrivals(test)
        const one = limiter()
        const warned = warnings(test)
        const addresses = { limiter: one, rules: [ip], clientIp }
        const served = await login(test, { addresses, handle: async () => 401 })
        await many(100, () => reset(portOf(served), posting('/login', guess, forged)))
        await arrived(100)
        assert.deepEqual([served.seen.verified, one.size, warned], [0, 0, []])
      }
    })

    it('a client that resets its connection is refused even if the keys do not use its address', async (test) => {
      const arrived = arrivals(test)
      const one = limiter()
      const guards = [{ limiter: one, keys: (req) => account.key(req.body.email) }]
      const served = await login(test, { guards, handle: async () => 401 })
      await many(50, () => reset(portOf(served), posting('/login', guess)))
      await arrived(50)
      assert.deepEqual([served.seen.verified, one.size], [0, 0])
    })

    it('an address that was read in time stays the address of the request when the client has gone', async (test) => {
      const one = limiter()
      const seen = []
      const keys = async (req) => {
        await sleep(50)
        seen.push(clientAddress(req, new ClientIp()))
        return keysFor([ip], { address: seen.at(-1) })
      }
      const served = await login(test, { guards: [{ limiter: one, keys }], handle: async () => 401 })
      const socket = net.connect(portOf(served), '127.0.0.1')
      socket.on('error', () => {})
      socket.write(posting('/login', guess))
      await sleep(25)
      socket.resetAndDestroy()
      await sleep(75)
      assert.deepEqual(seen, ['127.0.0.1'])
      assert.equal(one.peekSync(ip.ipKey('127.0.0.1')).remaining, 4)
    })

    it('on a Unix socket the right password works, and the remaining rules count wrong ones', async (test) => {
      const path = await socketPath(test)
      const one = limiter()
      const few = new StrikeRule('login-account-strikes', { threshold: 3, lockoutWindow: '1h', by: ['account'] })
      const handle = async ({ body, attempt }) => {
        if (body.password !== 'right') return 401
        await attempt.success({ forgive: [pair, few], giveBack: [ip, account] })
        return 204
      }
      const keys = (req) =>
        keysFor([ip, pair, account, few], { address: clientAddress(req, new ClientIp()), account: req.body.email })
      await login(test, { listen: { path }, guards: [{ limiter: one, keys }], handle })
      const statuses = []
      for (const password of [
        'wrong',
        'wrong',
        'right',
        'wrong',
        'wrong',
        'right',
        'wrong',
        'wrong',
        'wrong',
        'right',
      ]) {
        statuses.push((await postOver(path, '/login', { ...guess, password })).status)
      }
      assert.deepEqual(statuses, [401, 401, 204, 401, 401, 204, 401, 401, 401, 429])
    })

    it('behind a proxy on a Unix socket the header is believed if the socket is trusted', async (test) => {
      const path = await socketPath(test)
      const addresses = { limiter: limiter(), rules: [ip], clientIp: believing }
      await login(test, { listen: { path }, addresses, handle: async () => 401 })
      const statuses = []
      for (let n = 0; n < 6; n += 1) statuses.push((await postOver(path, '/login', guess, forged)).status)
      assert.deepEqual(statuses, [401, 401, 401, 401, 401, 429])
      assert.equal((await postOver(path, '/login', guess, { 'x-forwarded-for': '198.51.100.8' })).status, 401)
    })

    it('behind a proxy on a Unix socket a request with more lines than Node keeps is refused, and nothing is counted', async (test) => {
      const padding = Object.fromEntries(Array.from({ length: 1000 }, (_, n) => [`x-${n}`, '1']))
      for (const clientIp of [believing, new ClientIp()]) {
        for (const where of ['guard', 'front']) {
          const path = await socketPath(test)
          const one = limiter()
          const counted =
            where === 'guard'
              ? { guards: [{ limiter: one, keys: keysBy(clientIp) }] }
              : { addresses: { limiter: one, rules: [ip], clientIp } }
          const served = await login(test, {
            listen: { path },
            ...counted,
            answersErrors: true,
            handle: async () => 401,
          })
          const answers = await many(6, () => postOver(path, '/login', guess, { ...padding, ...forged }))
          assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([400]))
          assert.deepEqual([served.seen.verified, one.size], [0, 0])
        }
      }
    })

    it('on a Unix socket rules on addresses in front warn each time that they count nothing', async (test) => {
      const path = await socketPath(test)
      const warned = warnings(test)
      const addresses = { limiter: limiter(), rules: [ip] }
      await login(test, { listen: { path }, addresses, handle: async () => 401 })
      for (let n = 0; n < 3; n += 1) assert.equal((await postOver(path, '/login', guess)).status, 401)
      assert.deepEqual(warned, Array(3).fill('DOORKEEP_NOT_COUNTED'))
    })
  })
}

function warnings(test) {
  const codes = []
  const remember = ({ code }) => codes.push(code)
  process.on('warning', remember)
  test.after(() => process.off('warning', remember))
  return codes
}

describe('behind servers other than HTTP/1', () => {
  it('a client of Express that resets its connection of TLS is refused', async (test) => {
    const arrived = arrivals(test)
    const one = limiter()
    let ran = 0
    const app = express()
    const keys = (req) => keysFor([ip, account], { address: clientAddress(req, believing), account: req.body.email })
    app.post('/login', express.json(), guard({ limiter: one, keys }), (_req, res) => {
      ran += 1
      res.sendStatus(401)
    })
    app.post('/open', addressLimit({ limiter: one, rules: [ip], clientIp: believing }), (_req, res) => {
      ran += 1
      res.sendStatus(204)
    })
    const server = https.createServer(SERVER_PSK, app).listen(0, '127.0.0.1')
    await once(server, 'listening')
    test.after(() => server.close())
    for (const path of ['/login', '/open']) {
      await many(10, () => resetOverTls(server.address().port, posting(path, guess, forged)))
    }
    await arrived(20)
    // TLS takes some turns of the loop, in which an address may be read in time: then it is counted.
    assert.equal(ran, 5 - one.peekSync(ip.ipKey('127.0.0.1')).remaining)
    assert.equal(one.peekSync(ip.ipKey('198.51.100.7')).remaining, 5)
    assert.ok(ran < 20)
  })

  it('a client of Fastify that resets its session of HTTP/2 is refused', async (test) => {
    const one = limiter()
    let [arrived, ran] = [0, 0]
    const app = fastify({ http2: true })
    test.after(() => app.close())
    app.addHook('onRequest', async () => {
      arrived += 1
    })
    const handle = async (_request, reply) => {
      ran += 1
      return reply.code(401).send()
    }
    const keys = (req) =>
      keysFor([ip, account], { address: ofFastify.clientAddress(req, believing), account: req.body.email })
    app.post('/login', { preHandler: ofFastify.guard({ limiter: one, keys }) }, handle)
    app.register(async (child) => {
      await child.register(ofFastify.doorkeep, { limiter: one, rules: [ip], clientIp: believing })
      child.post('/open', handle)
    })
    await app.listen({ port: 0, host: '127.0.0.1' })
    for (const path of ['/login', '/open']) {
      const bytes = await postingOverHttp2(path, guess)
      await many(20, () => reset(app.server.address().port, bytes))
    }
    await sleep(200)
    assert.ok(arrived >= 20, `${arrived} arrived`)
    assert.deepEqual([ran, one.size], [0, 0])
  })

  it('a request of HTTP/2 that is still there is counted by its address', async (test) => {
    const one = limiter()
    const app = fastify({ http2: true })
    test.after(() => app.close())
    await app.register(ofFastify.doorkeep, { limiter: one, rules: [ip] })
    app.post('/', async (_request, reply) => reply.code(204).send())
    await app.listen({ port: 0, host: '127.0.0.1' })
    const http2 = await import('node:http2')
    const session = http2.connect(`http://127.0.0.1:${app.server.address().port}`)
    test.after(() => session.destroy())
    const statuses = []
    for (let n = 0; n < 6; n += 1) {
      const stream = session.request({ ':method': 'POST', ':path': '/' })
      stream.end()
      const [headers] = await once(stream, 'response')
      statuses.push(headers[':status'])
      stream.resume()
    }
    assert.deepEqual(statuses, [204, 204, 204, 204, 204, 429])
  })
})

describe('the address of a client', () => {
  const from = (fields, socket = {}) => Object.assign(new IncomingMessage(Object.assign(new Socket(), socket)), fields)
  const server = (at, listening = true) => ({ address: () => at, listening })
  const tcp = server({ address: '127.0.0.1', family: 'IPv4', port: 80 })

  it('is lost when a server of TCP has none, and there is none by nature on a path, or without a server', () => {
    const lost = { code: 'DOORKEEP_INVALID_KEY', message: 'the client hung up before its address was read' }
    for (const clientIp of [new ClientIp(), believing]) {
      assert.throws(() => clientAddress(from({ headers: forged }, { server: tcp }), clientIp), lost)
      // A server that was closed while its last clients were connected.
      assert.throws(() => clientAddress(from({ headers: forged }, { server: server(null, false) }), clientIp), lost)
      // A stream of HTTP/2 whose session has gone.
      assert.throws(() => clientAddress(from({ headers: forged, httpVersionMajor: 2 }), clientIp), lost)
    }
    for (const socket of [{}, { server: server('/run/app.sock') }, { server: server(null) }, { server: {} }]) {
      assert.equal(clientAddress(from({ headers: forged }, socket), new ClientIp()), null)
      assert.equal(clientAddress(from({ headers: forged }, socket), believing), '198.51.100.7')
    }
  })

  it('is lost without a peer when Node dropped lines of the header that the proxy may have written', () => {
    const socket = { server: server('/run/app.sock') }
    const rawHeaders = Array(1000).fill(['x', '1']).flat()
    for (const clientIp of [new ClientIp(), believing]) {
      assert.throws(() => clientAddress(from({ headers: forged, rawHeaders }, socket), clientIp), {
        code: 'DOORKEEP_INVALID_KEY',
        message: 'the request has more header lines than Node keeps, and its connection has no address',
      })
    }
    const few = from({ headers: forged, rawHeaders: rawHeaders.slice(2) }, socket)
    assert.equal(clientAddress(few, believing), '198.51.100.7')
  })

  it('stays the one that the first call found', () => {
    const request = from({ headers: {} }, { server: tcp })
    Object.defineProperty(request.socket, 'remoteAddress', { value: '203.0.113.9', configurable: true })
    assert.equal(clientAddress(request, new ClientIp()), '203.0.113.9')
    Object.defineProperty(request.socket, 'remoteAddress', { value: undefined })
    assert.equal(clientAddress(request, new ClientIp()), '203.0.113.9')
  })

  it('needs a ClientIp', () => {
    for (const odd of [undefined, null, {}, ['10.0.0.0/8']]) {
      assert.throws(() => clientAddress(from({ headers: {} }), odd), { message: 'clientIp must be a ClientIp' })
    }
  })

  it('of an injected request is the injected one', async (test) => {
    const one = limiter()
    const app = fastify()
    test.after(() => app.close())
    await app.register(ofFastify.doorkeep, { limiter: one, rules: [ip] })
    app.get('/', async () => 'in')
    const statuses = []
    for (let n = 0; n < 6; n += 1) statuses.push((await app.inject('/')).statusCode)
    assert.deepEqual(statuses, [200, 200, 200, 200, 200, 429])
  })

  it('is missing in a request that no server has received, which only rules without it decide', async () => {
    const one = limiter()
    const keys = (req) => keysFor([ip, account], { address: clientAddress(req, new ClientIp()), account: 'ann' })
    const request = from({ headers: {} })
    await promisify((done) => guard({ limiter: one, keys })(request, new ServerResponse(request), done))()
    assert.deepEqual({ ...one.stats().allowed }, { 'login-account': 1 })
  })
})

it('a server that received its socket as a file descriptor, as from systemd, has no addresses by nature', async (test) => {
  const path = await socketPath(test)
  const owner = net.createServer().listen(`${path}-bound`)
  await once(owner, 'listening')
  const script = `
    const { createServer } = require('node:http')
    const { ClientIp } = require('doorkeep')
    const { clientAddress } = require('doorkeep/express')
    const server = createServer((req, res) => res.end(String(clientAddress(req, new ClientIp()))))
    server.listen({ fd: 3 }, () => console.log('listening'))`
  const stdio = ['ignore', 'pipe', 'inherit', owner._handle.fd]
  const child = spawn(process.execPath, ['-e', script], { cwd: dirname(fileURLToPath(import.meta.url)), stdio })
  test.after(() => child.kill())
  await once(child.stdout, 'data')
  // Under another name, so that closing it here leaves it to the child.
  await rename(`${path}-bound`, path)
  owner.close()
  assert.deepEqual(await postOver(path, '/', {}), { status: 200, text: 'null' })
})
