/** What is specific to the guards of NestJS, over HTTP, on both of its platforms. */
import assert from 'node:assert/strict'
import { copyFile, cp, mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, it } from 'node:test'
import {
  Catch,
  Controller,
  HttpCode,
  HttpException,
  InternalServerErrorException,
  NotFoundException,
  ParseIntPipe,
  Post,
  Query,
  Req,
  Res,
  UnauthorizedException,
  UseFilters,
  UseGuards,
} from '@nestjs/common'
import { APP_GUARD } from '@nestjs/core'
import { ClientIp, ConfigError, Limiter, ManualClock, RateLimitExceeded, Rule, StrikeRule } from 'doorkeep'
import * as ofExpress from 'doorkeep/express'
import { addressGuard, attemptOf, CurrentAttempt, DoorkeepModule, Guarded, guard } from 'doorkeep/nestjs'
import { client, decorate, PLATFORMS, start } from './support/nest.mjs'

const ip = new Rule('login-ip', '1000/1m', { by: ['address'] })
const account = new StrikeRule('login-account', { threshold: 5, lockoutWindow: '15m', by: ['account'] })
const keys = (request) => account.key(request.body.email)
const ann = { email: 'ann@example.com' }
const clientIp = new ClientIp()

const limiter = () => new Limiter({ clock: new ManualClock(1000) })
const left = (one) => one.peekSync(account.key(ann.email)).remaining

class Outage extends Error {}

/** A controller with one route, `POST /login`. */
function route(handle, decorators, parameters = [Req()]) {
  class Login {
    login(...given) {
      return handle(...given)
    }
  }
  Controller()(Login)
  decorate(Login, 'login', [Post('login'), HttpCode(200), ...decorators], parameters)
  return Login
}

for (const { name, adapter } of PLATFORMS) {
  const serve = async (test, parts) => client(await start(test, adapter, parts))

  describe(name, () => {
    it('takes back what was counted for a named error, and nothing for any other', async (test) => {
      const one = limiter()
      const errors = {
        crash: () => new Error('the database is gone'),
        500: () => new InternalServerErrorException(),
        text: () => 'not even an error',
        401: () => new UnauthorizedException(),
        404: () => new NotFoundException(),
        302: () => new HttpException('elsewhere', 302),
        foreign: () => Object.assign(new Error('too long'), { statusCode: 413 }),
        named: () => new Outage(),
        abort: () => AbortSignal.abort().reason,
      }
      const failing = async ({ body }) => {
        throw errors[body.how]()
      }
      const guarded = Guarded({ limiter: one, keys, giveBackOn: Outage })
      const { post } = await serve(test, { controllers: [route(failing, [guarded])] })
      const counted = {}
      for (const how of Object.keys(errors)) {
        one.resetSync(account.key(ann.email))
        await post('/login', { ...ann, how })
        counted[how] = left(one) === 4
      }
      assert.deepEqual(counted, {
        crash: true,
        500: true,
        text: true,
        401: true,
        404: true,
        302: true,
        foreign: true,
        named: false,
        abort: true,
      })
    })

    it('a named error leaves the guess counted once the answer has begun', async (test) => {
      const one = limiter()
      const begin = async (response) => {
        const raw = response.raw ?? response
        raw.writeHead(200)
        raw.end('your password is right')
        throw new Outage('the template is gone')
      }
      const guarded = Guarded({ limiter: one, keys, giveBackOn: Outage })
      const { post } = await serve(test, { controllers: [route(begin, [guarded], [Res()])] })
      assert.equal((await post('/login', ann)).text, 'your password is right')
      assert.equal(left(one), 4)
    })

    it('an error of doorkeep is an HttpException to filters, with the error as its cause', async (test) => {
      const thrown = new RateLimitExceeded()
      let caught
      const failing = () => {
        throw thrown
      }
      const remember = {
        catch: (error, host) => {
          caught = error
          const response = host.switchToHttp().getResponse()
          response.status(error.getStatus()).send(error.getResponse())
        },
      }
      class Remember {}
      Object.assign(Remember.prototype, remember)
      Catch(HttpException)(Remember)
      const guarded = [Guarded({ limiter: limiter(), keys }), UseFilters(new Remember())]
      const { post } = await serve(test, { controllers: [route(failing, guarded)] })
      const { status, text } = await post('/login', ann)
      assert.deepEqual([status, text, caught.cause], [429, '{"error":"too many attempts"}', thrown])
    })

    it('500 wrong passwords that the handler throws verify 5', async (test) => {
      let verified = 0
      const wrong = async () => {
        verified += 1
        throw new UnauthorizedException()
      }
      const { post } = await serve(test, { controllers: [route(wrong, [Guarded({ limiter: limiter(), keys })])] })
      const answers = await Promise.all(Array.from({ length: 500 }, () => post('/login', ann)))
      assert.equal(verified, 5)
      assert.equal(answers.filter(({ status }) => status === 429).length, 495)
    })

    it('a request that a pipe refuses is a counted guess, and so is a crash in it unless it is named', async (test) => {
      const one = limiter()
      const crashing = {
        transform: () => {
          throw new Outage('no memory')
        },
      }
      for (const [pipe, status, remains, giveBackOn] of [
        [ParseIntPipe, 400, 4],
        [crashing, 500, 3],
        [crashing, 500, 3, [Outage]],
      ]) {
        const controller = route(() => 'ok', [Guarded({ limiter: one, keys, giveBackOn })], [Query('page', pipe)])
        const { post } = await serve(test, { controllers: [controller] })
        assert.deepEqual([(await post('/login?page=x', ann)).status, left(one)], [status, remains])
      }
    })

    it('passes the handler the attempt of the latest guard, or of a given limiter', async (test) => {
      const [first, second] = [limiter(), limiter()]
      const handle = async (latest, named, request) => {
        assert.equal(latest, attemptOf(request, second))
        assert.equal(named, attemptOf(request, first))
        await latest.success({ forgive: [account] })
        return 'ok'
      }
      // Decorators are applied from the bottom up, so the lowest guard is the first.
      const guards = [Guarded({ limiter: second, keys }), Guarded({ limiter: first, keys })]
      const parameters = [CurrentAttempt(), CurrentAttempt(first), Req()]
      const { post } = await serve(test, { controllers: [route(handle, guards, parameters)] })
      assert.equal((await post('/login', ann)).status, 200)
      assert.deepEqual([left(first), left(second)], [4, 5])
    })

    it('counts with the limiter of its module, or with one that is provided otherwise', async (test) => {
      const one = limiter()
      const controllers = [route(() => 'ok', [Guarded({ keys })])]
      const imported = await serve(test, { controllers, imports: [DoorkeepModule.forRoot({ limiter: one })] })
      await imported.post('/login', ann)
      const provided = await serve(test, { controllers, providers: [{ provide: Limiter, useFactory: () => one }] })
      await provided.post('/login', ann)
      assert.equal(left(one), 3)
    })

    it('does not start without a limiter', async (test) => {
      const controllers = [route(() => 'ok', [Guarded({ keys })])]
      const without = 'a guard needs a limiter: its own, or that of DoorkeepModule.forRoot'
      await assert.rejects(start(test, adapter, { controllers }), new ConfigError(without))
    })

    it('a guard of addresses for all routes shares its attempt with the guards of routes, counted once', async (test) => {
      const one = limiter()
      const guards = []
      const remember = { canActivate: (context) => guards.push(context.switchToHttp().getRequest().attempt) > 0 }
      const both = { keys: (request) => [ip.ipKey(request.ip), keys(request)] }
      const { post } = await serve(test, {
        // The attempt of all routes, as it is before the guard of the route.
        controllers: [
          route((attempt) => String(attempt === guards[0]), [UseGuards(remember, guard(both))], [CurrentAttempt()]),
        ],
        imports: [DoorkeepModule.forRoot({ limiter: one })],
        providers: [{ provide: APP_GUARD, useClass: addressGuard({ rules: [ip], clientIp }) }],
      })
      assert.equal((await post('/login', ann)).text, 'true')
      assert.equal(one.peekSync(ip.ipKey('127.0.0.1')).remaining, 999)
      assert.equal(left(one), 4)
    })

    it('a guard that checks a password runs after a guard before it', async (test) => {
      let verified = 0
      const local = {
        canActivate: () => {
          verified += 1
          throw new UnauthorizedException()
        },
      }
      const one = limiter()
      const before = [UseGuards(guard({ limiter: one, keys }), local)]
      const below = [
        UseGuards(local),
        Guarded({ limiter: one, keys: (request) => account.key(`${request.body.email}.`) }),
      ]
      for (const decorators of [before, below]) {
        verified = 0
        const { post } = await serve(test, { controllers: [route(() => 'ok', decorators)] })
        const answers = await Promise.all(Array.from({ length: 20 }, () => post('/login', ann)))
        assert.equal(verified, 5)
        assert.equal(answers.filter(({ status }) => status === 401).length, 5)
      }
    })

    it('guards all routes of a controller, and an error that one of two guards names gives back what both counted', async (test) => {
      const one = limiter()
      const failing = () => {
        throw new Outage()
      }
      const inner = Guarded({ limiter: one, keys: (request) => ip.ipKey(request.ip) })
      const controller = route(failing, [inner])
      Guarded({ limiter: one, keys, giveBackOn: [Outage] })(controller)
      const { post } = await serve(test, { controllers: [controller] })
      await post('/login', ann)
      assert.deepEqual([left(one), one.peekSync(ip.ipKey('127.0.0.1')).remaining], [5, 999])
    })
  })
}

describe('with two copies of Nest, as when one module is imported and required', () => {
  it('a denial and an error of doorkeep keep their status', async (test) => {
    // An installation of doorkeep with its own copy of Nest, next to everything else that is installed.
    const folder = await mkdtemp(join(tmpdir(), 'doorkeep-'))
    test.after(() => rm(folder, { recursive: true }))
    const ours = createRequire(import.meta.url)
    const origin = dirname(ours.resolve('doorkeep/package.json'))
    const installed = join(dirname(ours.resolve('@nestjs/common/package.json')), '..', '..')
    const modules = join(folder, 'node_modules')
    await mkdir(join(modules, '@nestjs'), { recursive: true })
    await cp(join(installed, '@nestjs', 'common'), join(modules, '@nestjs', 'common'), { recursive: true })
    const apart = new Set(['@nestjs', 'doorkeep'])
    for (const name of await readdir(installed)) {
      if (!apart.has(name)) await symlink(join(installed, name), join(modules, name))
    }
    const dist = join('bindings-node', 'dist')
    await cp(join(origin, dist), join(modules, 'doorkeep', dist), { recursive: true })
    await copyFile(join(origin, 'package.json'), join(modules, 'doorkeep', 'package.json'))
    const require = createRequire(join(folder, 'app.cjs'))
    const [other, otherNest] = [require('doorkeep'), require('doorkeep/nestjs')]
    assert.notEqual(require('@nestjs/common').HttpException, HttpException)

    for (const { adapter } of PLATFORMS) {
      const rule = new other.StrikeRule('login-account', { threshold: 2, lockoutWindow: '15m', by: ['account'] })
      const guarded = otherNest.Guarded({ limiter: new other.Limiter(), keys: ({ body }) => rule.key(body.email) })
      const exceeded = () => {
        throw new other.RateLimitExceeded()
      }
      const plain = { unfiltered: true, controllers: [route(exceeded, [guarded])] }
      const { post } = client(await start(test, adapter, plain))
      for (const [email, status] of [
        ['', 400],
        ['ann', 429],
        ['ann', 429],
        ['ann', 429],
      ]) {
        const answer = await post('/login', { email })
        assert.equal(answer.status, status)
        const message = status === 400 ? 'invalid key' : 'too many attempts'
        assert.deepEqual(JSON.parse(answer.text), { statusCode: status, message })
      }
      assert.equal((await post('/login', { email: 'ann' })).headers.get('retry-after'), '900')
    }
  })
})

describe('Guarded', () => {
  it('refuses unknown options', () => {
    for (const make of [Guarded, guard]) {
      assert.throws(() => make(), ConfigError)
      assert.throws(() => make({ limiter: limiter() }), new ConfigError('keys must be a function'))
      assert.throws(
        () => make({ keys, giveBackOn: ['Outage'] }),
        new ConfigError('giveBackOn must list classes of errors'),
      )
      assert.throws(() => make({ keys, limit: 5 }), ConfigError)
    }
    assert.throws(() => guard({ keys, limiter: {} }), new ConfigError('limiter must be a Limiter'))
    assert.throws(() => new (guard({ keys }))({}), new ConfigError('limiter must be a Limiter'))
    assert.throws(() => addressGuard({ rules: [ip], clientIp, keys }), ConfigError)
  })

  it('works on HTTP routes only', async () => {
    const Guarding = guard({ keys, limiter: limiter() })
    const refused = new ConfigError('a guard must stand before a route of HTTP')
    await assert.rejects(new Guarding().canActivate({ getType: () => 'rpc' }), refused)
  })

  it('continues the attempt that a middleware of Express counted', async (test) => {
    const one = limiter()
    const { adapter } = PLATFORMS[0]
    const express = adapter()
    express.use(ofExpress.addressLimit({ limiter: one, rules: [ip], clientIp }))
    const controllers = [route((attempt) => attempt.cancel(), [Guarded({ limiter: one, keys })], [CurrentAttempt()])]
    const { post } = client(await start(test, () => express, { controllers }))
    assert.equal((await post('/login', ann)).text, 'true')
    assert.deepEqual([left(one), one.peekSync(ip.ipKey('127.0.0.1')).remaining], [5, 1000])
  })
})
