/**
 * How the guards of every framework identify clients and accounts, over HTTP: addresses, spellings, and whose success
 * it was.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { describe, it } from 'node:test'
import { ClientIp, canonicalEmail, keysFor, Limiter, ManualClock, StrikeRule } from 'doorkeep'
import { frameworks } from './support/frameworks.mjs'

const clientIp = new ClientIp({ trustedProxies: ['127.0.0.1', '10.0.0.0/8'] })
const strikes = (name, threshold, by, options) =>
  new StrikeRule(name, { threshold, lockoutWindow: '5m', by, ...options })

for (const { name, login, clientAddress } of frameworks) {
  describe(name, () => {
    /** A login whose handler answers `right`; returns a function that makes one attempt and returns its status. */
    const guarded = async (test, rule, right = async () => 401) => {
      const keys = (req) =>
        keysFor([rule], { address: clientAddress(req, clientIp), account: canonicalEmail(req.body.email) })
      const clock = new ManualClock(1000)
      const { post } = await login(test, { guards: [{ limiter: new Limiter({ clock }), keys }], handle: right })
      return async (forwarded, email = 'ann@example.com', rest = {}) =>
        (await post('/login', { email, ...rest }, { 'x-forwarded-for': forwarded })).status
    }
    const each = async (attempt, addresses) => {
      const statuses = []
      for (const address of addresses) statuses.push(await attempt(address))
      return statuses
    }
    const denials = (statuses) => statuses.filter((status) => status === 429).length

    it('a hundred addresses of one IPv6 network are one client', async (test) => {
      for (const by of [['address'], ['account', 'address']]) {
        const attempt = await guarded(test, strikes('by-64', 5, by))
        const rotated = Array.from({ length: 100 }, (_, n) => `2001:db8:0:1::${n.toString(16)}`)
        const statuses = await each(attempt, rotated)
        assert.deepEqual([denials(statuses.slice(0, 5)), denials(statuses.slice(5))], [0, 95])
        assert.equal(await attempt('2001:db8:0:2::1'), 401)

        const wide = await guarded(test, strikes('by-56', 5, by, { ipv6Prefix: 56 }))
        await each(wide, rotated.slice(0, 5))
        assert.equal(await wide('2001:db8:0:2::1'), 429)
        assert.equal(await wide('2001:db8:0:100::1'), 401)
      }
    })

    it('an IPv4 address is one client in every spelling', async (test) => {
      const attempt = await guarded(test, strikes('by-address', 4, ['address']))
      const same = [
        '::ffff:192.0.2.1',
        '[::FFFF:c000:201]:443',
        '0:0:0:0:0:ffff:c000:0201',
        '192.0.2.1:8080',
        '192.0.2.1',
      ]
      assert.deepEqual(await each(attempt, same), [401, 401, 401, 401, 429])
      assert.equal(await attempt('::ffff:192.0.2.2'), 401)
    })

    it('the walk from the right ends at the first address that is not trusted', async (test) => {
      const attempt = await guarded(test, strikes('by-address', 3, ['address']))
      const one = ['3.3.3.3', '1.2.3.4, 3.3.3.3', '5.6.7.8, 3.3.3.3, 10.0.0.7', '3.3.3.3, 10.0.0.7, 10.0.0.8']
      assert.deepEqual(await each(attempt, one), [401, 401, 401, 429])
      assert.deepEqual(await each(attempt, ['1.2.3.4', '5.6.7.8']), [401, 401])
      const malformed = ['203.0.113.9, garbage, 10.0.0.9', '10.0.0.9', ', 10.0.0.9', '1.2.3, 10.0.0.9']
      assert.deepEqual(await each(attempt, malformed), [401, 401, 401, 429])
    })

    it('no header is believed in a request with more header lines than Node keeps', async (test) => {
      const seen = []
      const rule = strikes('by-address', 100, ['address'])
      const keys = (req) => {
        seen.push(clientAddress(req, clientIp))
        return rule.ipKey(seen.at(-1))
      }
      const { origin } = await login(test, {
        guards: [{ limiter: new Limiter({ clock: new ManualClock(1000) }), keys }],
        handle: async () => 401,
      })
      const { host } = new URL(origin)
      for (const [lines, address] of [
        [900, '203.0.113.9'],
        [1000, '127.0.0.1'],
        [2500, '127.0.0.1'],
      ]) {
        const junk = Array.from({ length: lines }, () => ['a', '']).flat()
        const proxied = ['x-forwarded-for', '198.51.100.1', ...junk, 'x-forwarded-for', '203.0.113.9']
        const sent = request(`${origin}/login`, {
          method: 'POST',
          headers: ['host', host, 'content-type', 'application/json', 'content-length', '2', ...proxied],
        })
        sent.end('{}')
        const [response] = await once(sent, 'response')
        response.resume()
        assert.deepEqual([response.statusCode, seen.at(-1)], [401, address])
      }
    })

    it('an account is one in every spelling, and others stay distinct', async (test) => {
      const attempt = await guarded(test, strikes('by-account', 3, ['account']))
      const spelled = async (emails) => {
        const statuses = []
        for (const email of emails) statuses.push(await attempt('203.0.113.9', email))
        return statuses
      }
      const bob = [' Bob@Example.COM ', 'bob@example.com', '\uff42\uff4f\uff42@example.com', 'BOB@EXAMPLE.com']
      assert.deepEqual(await spelled(bob), [401, 401, 401, 429])
      const others = [
        'straße@example.com',
        'strasse@example.com',
        'ıce@example.com',
        'ice@example.com',
        'bob+x@example.com',
      ]
      assert.deepEqual(await spelled(others), [401, 401, 401, 401, 401])
      const odd = ['__proto__@example.com', 'constructor@example.com', '__proto__@example.com', 'to.string@example.com']
      assert.deepEqual(await spelled(odd), [401, 401, 401, 401])
    })

    it("an attacker's own successes between guesses give the address no fresh budget", async (test) => {
      const rule = strikes('by-address', 5, ['address'])
      const attempt = await guarded(test, rule, async ({ body, attempt }) => {
        if (!body.right) return 401
        await attempt.success({ [body.how]: [rule] })
        return 204
      })
      const statuses = []
      for (const right of [false, false, true, false, false, true, false, false]) {
        statuses.push(await attempt('203.0.113.9', undefined, { right, how: 'giveBack' }))
      }
      assert.deepEqual(statuses, [401, 401, 204, 401, 401, 204, 401, 429])
      // Forgiving an address is refused, unless it is requested explicitly.
      assert.equal(await attempt('203.0.113.10', undefined, { right: true, how: 'forgive' }), 500)
      assert.equal(await attempt('203.0.113.10', undefined, { right: true, how: 'forgiveAddress' }), 204)
    })
  })
}
