/** Clients behind proxies, spellings of accounts, and the keys that are made of them. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import http from 'node:http'
import { connect } from 'node:net'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'
import {
  AttemptLimiter,
  ClientIp,
  ConfigError,
  canonicalEmail,
  canonicalUsername,
  InvalidKeyError,
  keysFor,
  Limiter,
  network,
  Outcome,
  Rule,
  StrikeRule,
} from 'doorkeep'

const PROXY = '10.0.0.1'
const behind = new ClientIp({ trustedProxies: ['10.0.0.0/8'] })
const loginIp = new Rule('login-ip', '20/1m', { by: ['address'], ipv6Prefix: 56 })
const loginAccount = new Rule('login-account', '50/1h', { by: ['account'] })
const loginAccountIp = new StrikeRule('login-account-ip', {
  threshold: 5,
  lockoutWindow: '1m',
  by: ['account', 'address'],
})
const digests = (keys) => keys.map(({ rule, digest }) => `${rule} ${digest}`)

describe('the client', () => {
  const forms = {
    'headers of node:http': { 'x-forwarded-for': '1.2.3.4, 203.0.113.9' },
    'a record in any case': { 'X-Forwarded-For': '203.0.113.9' },
    'a list of lines': { 'x-forwarded-for': ['1.2.3.4', '203.0.113.9'] },
    'headers of fetch': new Headers([
      ['X-Forwarded-For', '1.2.3.4'],
      ['X-Forwarded-For', '203.0.113.9'],
    ]),
    'pairs in any case': [
      ['Host', 'a.b'],
      ['X-FORWARDED-FOR', '1.2.3.4'],
      ['x-forwarded-for', '203.0.113.9'],
    ],
    'a Map': new Map([['X-Forwarded-For', '203.0.113.9']]),
    'a record without a prototype': Object.assign(Object.create(null), { 'x-forwarded-for': '203.0.113.9' }),
  }
  for (const [form, headers] of Object.entries(forms)) {
    it(`is found in ${form}`, () => assert.equal(behind.resolve(PROXY, headers), '203.0.113.9'))
  }

  it('is found in a request over the wire, lines joined in order', async (t) => {
    const local = new ClientIp({ trustedProxies: ['127.0.0.1'] })
    const server = http.createServer((request, response) => {
      response.end(local.resolve(request.socket.remoteAddress, request.headers))
    })
    t.after(() => server.close())
    await new Promise((ready) => server.listen(0, '127.0.0.1', ready))
    const socket = connect(server.address().port, '127.0.0.1')
    const lines = ['X-Forwarded-For: 1.2.3.4', 'x-forwarded-for: [2001:db8::7]:443', 'Host: a', 'Connection: close']
    socket.end(`GET / HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`)
    let answer = ''
    for await (const chunk of socket) answer += chunk
    assert.ok(answer.includes('2001:db8::7'), answer)
  })

  it('is the peer without the header', () => {
    for (const headers of [{}, [], new Headers(), { host: 'a.b' }, { 'x-forwarded-for': undefined }]) {
      assert.equal(behind.resolve(PROXY, headers), PROXY)
    }
  })

  it('is nobody without a peer', () => {
    for (const peer of [undefined, null, '', 'testclient']) assert.equal(behind.resolve(peer, {}), null)
  })

  it('is the last trusted hop when a value contains no address', () => {
    const values = [
      5,
      Number.NaN,
      true,
      {},
      Symbol('x'),
      () => '1.2.3.4',
      Buffer.from('1.2.3.4'),
      ['1.2.3.4', 7],
      '\ud800',
    ]
    for (const value of values) assert.equal(behind.resolve(PROXY, { 'x-forwarded-for': value }), PROXY)
  })

  it('ignores what was put on Object.prototype', () => {
    const inherited = Object.create({ 'x-forwarded-for': '6.6.6.6' })
    assert.equal(behind.resolve(PROXY, inherited), PROXY)
    assert.equal(behind.resolve(PROXY, [['__proto__', '6.6.6.6']]), PROXY)
  })

  it('is refused for invalid headers, or a peer that is not a string', () => {
    const fault = (message) => (error) => error instanceof ConfigError && error.message === message
    for (const headers of [
      undefined,
      null,
      5,
      'x-forwarded-for',
      ['ab'],
      [['a']],
      [['a', 'b', 'c']],
      [5],
      ['host', 'a'],
    ]) {
      const message = 'headers must be a mapping of names to values, or pairs of them'
      assert.throws(() => behind.resolve(PROXY, headers), fault(message))
    }
    for (const peer of [5, {}, [PROXY], true]) {
      assert.throws(() => behind.resolve(peer, {}), fault('peer must be the text of an address, or none'))
    }
  })

  it('passes an error of a getter to the caller', () => {
    const broken = {
      get 'x-forwarded-for'() {
        throw new RangeError('gone')
      },
    }
    assert.throws(() => behind.resolve(PROXY, broken), RangeError)
    const list = new Proxy(['1.2.3.4'], {
      get: (target, name) => {
        if (name === '0') throw new RangeError('gone')
        return target[name]
      },
    })
    assert.throws(() => behind.resolve(PROXY, { 'x-forwarded-for': list }), RangeError)
    assert.equal(behind.resolve(PROXY, { 'x-forwarded-for': '203.0.113.9' }), '203.0.113.9')
  })

  it('is found quickly in a header of ten megabytes', () => {
    const pieces = ['10.0.0.2,', '1', '"', '\\', ';', ' ', 'é,', 'for=10.0.0.2,', 'for=10.0.0.2;', '=', '[', '\ud800']
    for (const header of ['x-forwarded-for', 'forwarded', 'x-real-ip']) {
      const clientIp = new ClientIp({ trustedProxies: ['10.0.0.0/8'], header })
      for (const piece of pieces) {
        const value = Buffer.from(piece.repeat(10_000_000 / piece.length), 'latin1').toString('latin1')
        const started = performance.now()
        assert.notEqual(clientIp.resolve(PROXY, { [header]: value }), null)
        assert.ok(performance.now() - started < 250)
      }
    }
  })

  it('stays in one bucket however it rotates the entry that it writes', () => {
    const strikes = new AttemptLimiter({ threshold: 3, lockoutWindow: '1m' })
    const outcomes = [1, 2, 3, 4, 5, 6].map((i) => {
      return strikes.attemptSync(behind.resolve(PROXY, { 'x-forwarded-for': `198.51.100.${i}, 203.0.113.9` }))
    })
    const { Denied, Allowed, AllowedLastAttempt } = Outcome
    assert.deepEqual(outcomes, [Allowed, Allowed, AllowedLastAttempt, Denied, Denied, Denied])
  })

  it('is found by a ClientIp that shows what it trusts', () => {
    const clientIp = new ClientIp({
      trustedProxies: ['10.0.0.0/8', '2001:DB8::1', '::ffff:192.0.2.0/120'],
      header: 'Forwarded',
    })
    assert.deepEqual(clientIp.trustedProxies, ['10.0.0.0/8', '2001:db8::1/128', '192.0.2.0/24'])
    assert.equal(clientIp.header, 'forwarded')
    assert.ok(Object.isFrozen(clientIp.trustedProxies))
    assert.deepEqual(new ClientIp().trustedProxies, [])
    assert.deepEqual(new ClientIp({ trustedProxies: '10.0.0.0/8' }).trustedProxies, ['10.0.0.0/8'])
  })

  it('is not found by a ClientIp with an invalid configuration', () => {
    for (const trustedProxies of [[5], [null], ['x'], [['10.0.0.0/8']], 5, {}, '*']) {
      assert.throws(() => new ClientIp({ trustedProxies }), ConfigError)
    }
    for (const header of [5, {}, '', 'a b']) assert.throws(() => new ClientIp({ header }), ConfigError)
    assert.throws(() => new ClientIp({ trustedProxys: [] }), ConfigError)
    assert.throws(() => new ClientIp('10.0.0.0/8'), ConfigError)
  })
})

describe('a warning', () => {
  async function warnings(code) {
    const script = `
      const { ClientIp, keysFor, Rule } = require('doorkeep')
      process.on('warning', ({ name, code, message }) => console.log(name, code, /1\\.2\\.3\\.4|127\\.0/.test(message)))
      const headers = { 'x-real-ip': '1.2.3.4' }
      ${code}`
    const { stdout } = await promisify(execFile)(process.execPath, ['--no-warnings', '-e', script])
    return stdout
  }

  it('is given once for a proxy that was not configured, without the address', async () => {
    const code = `const c = new ClientIp(); c.resolve('203.0.113.9', headers); c.resolve('127.0.0.1', {})
      for (let i = 0; i < 9; i += 1) c.resolve('127.0.0.1', headers)`
    assert.equal(await warnings(code), 'DoorkeepWarning DOORKEEP_UNTRUSTED_PROXY false\n')
  })

  it('is not given for a configured proxy', async () => {
    const code = "new ClientIp({ trustedProxies: ['10.0.0.0/8'], header: 'x-real-ip' }).resolve('127.0.0.1', headers)"
    assert.equal(await warnings(code), '')
  })

  it('is given once when rules on the address are left out', async () => {
    const code = `const rules = [new Rule('a', '5/1m', { by: ['address'] }), new Rule('b', '5/1m', { by: ['account'] })]
      for (let i = 0; i < 9; i += 1) keysFor(rules, { address: null, account: 'ann' })`
    assert.equal(await warnings(code), 'DoorkeepWarning DOORKEEP_NO_ADDRESS false\n')
  })
})

describe('the spelling', () => {
  it('of one account gives one key, and other accounts have their own', () => {
    const key = (text) => loginAccount.key(canonicalEmail(text)).digest
    const same = [' Bob@Example.COM ', 'bob@example.com', '\uff42\uff4f\uff42\uff20example.com'].map(key)
    assert.equal(new Set(same).size, 1)
    const apart = ['straße@a.b', 'strasse@a.b', 'ian@a.b', '\u0131an@a.b', '\u0130an@a.b'].map(key)
    assert.equal(new Set(apart).size, apart.length)
  })

  it('of a value that is not a string is refused', () => {
    for (const bad of [undefined, null, 5, {}, ['ann@a.b'], Symbol('x'), Buffer.from('ann@a.b')]) {
      assert.throws(() => canonicalEmail(bad), { code: 'DOORKEEP_INVALID_KEY', message: 'an email must be text' })
      assert.throws(() => canonicalUsername(bad), { code: 'DOORKEEP_INVALID_KEY', message: 'a username must be text' })
    }
  })

  it('accepts only booleans as options, and only known names', () => {
    for (const dropTags of [1, 'yes', {}]) assert.throws(() => canonicalEmail('a@b.c', { dropTags }), ConfigError)
    assert.throws(() => canonicalEmail('a@b.c', { drop_tags: true }), ConfigError)
    assert.equal(canonicalEmail('a+b@c.d', { dropTags: true, dropGmailDots: undefined }), 'a@c.d')
  })

  it('of ten megabytes is refused quickly', () => {
    for (const text of ['@', ' ', '\ufdfa', '\ud800'].map((piece) => piece.repeat(10_000_000))) {
      const started = performance.now()
      assert.throws(() => canonicalEmail(text), InvalidKeyError)
      assert.throws(() => canonicalUsername(text), InvalidKeyError)
      assert.ok(performance.now() - started < 500)
    }
  })
})

describe('the keys of a request', () => {
  const address = '2001:db8:0:12ff::1'
  const account = 'ann@example.com'
  const rules = [loginIp, loginAccount, loginAccountIp]
  const expected = [loginIp.ipKey(address), loginAccount.key(account), loginAccountIp.key(account, network(address))]

  it('are made of the fields in `by` of their rules', () => {
    assert.deepEqual(digests(keysFor(rules, { address, account, unused: 'x' })), digests(expected))
    assert.deepEqual(digests(keysFor(new Set(rules), { address, account })), digests(expected))
    assert.deepEqual(digests(keysFor(loginAccount, { account })), digests([expected[1]]))
    const rule = new Rule('device', '5/1m', { by: ['user-id', 'address'], ipv6Prefix: 48 })
    const [key] = keysFor([rule], { address: '2001:db8:1:2::3', 'user-id': '7' })
    assert.equal(key.digest, rule.key('7', '2001:db8:1::/48').digest)
  })

  it('may be more than a limiter accepts, in the order of the rules', () => {
    const many = Array.from(
      { length: 40 },
      (_, n) => new Rule(`rule-${n}`, '5/1m', { by: n % 2 ? ['account'] : ['address'] }),
    )
    const keys = keysFor(many, { address, account })
    assert.deepEqual(digests(keys), digests(many.map((rule, n) => (n % 2 ? rule.key(account) : rule.ipKey(address)))))
    assert.deepEqual(
      keysFor(many, { address: null, account }).map(({ rule }) => rule),
      many.filter(({ by }) => by[0] === 'account').map(({ name }) => name),
    )
  })

  it('of an address may not be forgiven', async () => {
    const attempt = await new Limiter().attempt(keysFor([loginIp], { address }))
    await assert.rejects(attempt.success({ forgive: [loginIp] }), ConfigError)
  })

  it('leave out the address when there is none', () => {
    assert.deepEqual(digests(keysFor(rules, { address: null, account })), digests([expected[1]]))
    assert.throws(
      () => keysFor([loginIp, loginAccountIp], { address: null, account }),
      /^InvalidKeyError: no key is left/,
    )
    assert.throws(() => keysFor([], { account }), InvalidKeyError)
  })

  it('name the field that has no string', () => {
    for (const bad of [undefined, null, '', 5, {}]) {
      assert.throws(() => keysFor([loginAccountIp], { address, account: bad }), {
        code: 'DOORKEEP_INVALID_KEY',
        message: 'a key needs a text for each word of its rule, rule=`login-account-ip`, word=`account`',
      })
    }
    const odd = new Rule('odd', '5/1m', { by: ['constructor'] })
    assert.throws(() => keysFor([odd], {}), InvalidKeyError)
  })

  it('refuse an invalid address', () => {
    const refusal = { code: 'DOORKEEP_INVALID_KEY', message: 'not an IPv4 or IPv6 address' }
    for (const junk of ['', 'junk', 'testclient', 5]) {
      assert.throws(() => keysFor([loginIp], { address: junk }), refusal)
      assert.throws(() => keysFor([loginAccountIp], { address: junk, account }), refusal)
    }
  })

  it('need an address, or an explicit null', () => {
    for (const values of [{ account }, { account, address: undefined }, { account, ip: address }]) {
      assert.throws(() => keysFor(rules, values), {
        code: 'DOORKEEP_CONFIG',
        message: 'a rule keyed by the address needs an address, or none by name, rule=`login-ip`',
      })
    }
  })

  it('are made by rules', () => {
    for (const odd of [[undefined], ['login-ip'], [loginIp, {}]]) {
      assert.throws(() => keysFor(odd, { address, account }), {
        code: 'DOORKEEP_CONFIG',
        message: 'rules must be made by Rule or StrikeRule',
      })
    }
  })

  it('need rules with `by`', () => {
    const plain = new Rule('plain', '5/1m')
    assert.throws(() => keysFor([plain], { account }), {
      code: 'DOORKEEP_CONFIG',
      message: 'a rule must say what it is keyed by, rule=`plain`',
    })
  })
})
