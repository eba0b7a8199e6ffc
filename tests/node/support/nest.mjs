/** Applications of NestJS over both of its platforms, behind a real server, without a compiler of decorators. */
import 'reflect-metadata'
import { once } from 'node:events'
import { Controller, HttpException, Module, Post, Req, Res, UseGuards, UseInterceptors } from '@nestjs/common'
import { BaseExceptionFilter, NestFactory } from '@nestjs/core'
import { ExpressAdapter } from '@nestjs/platform-express'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import { addressGuard, attemptOf, clientAddress, guard } from 'doorkeep/nestjs'

export const PLATFORMS = [
  { name: 'NestJS on Express', adapter: () => new ExpressAdapter() },
  { name: 'NestJS on Fastify', adapter: () => new FastifyAdapter({ forceCloseConnections: true }) },
]

/** The guarded login of `frameworks.mjs` on each platform. */
export const nest = PLATFORMS.map(({ name, adapter }) => ({
  name,
  attemptOf,
  clientAddress,
  login: (test, parts) => login(test, adapter, parts),
}))

/** Decorates a method as a compiler does: the lowest decorator first, and parameters before their method. */
export function decorate(target, method, decorators, parameters = []) {
  for (const [index, parameter] of parameters.entries()) parameter(target.prototype, method, index)
  const descriptor = Object.getOwnPropertyDescriptor(target.prototype, method)
  for (const decorator of decorators.toReversed()) decorator(target.prototype, method, descriptor)
}

/** Starts an application, which ends with the test; returns its origin, unless it listens on a path. */
export async function start(test, adapter, { controllers, imports = [], providers = [], path, unfiltered = false }) {
  class App {}
  Module({ controllers, imports, providers })(App)
  const app = await NestFactory.create(App, adapter(), { logger: false, abortOnError: false })
  if (!unfiltered) app.useGlobalFilters(new Failed(app.getHttpAdapter()))
  await (path ? listenOn(path, app) : app.listen(0, '127.0.0.1'))
  test.after(() => {
    app.getHttpServer().closeAllConnections()
    return app.close()
  })
  return `http://127.0.0.1:${app.getHttpServer().address().port}`
}

/** By its server itself: on Fastify, NestJS 11 accepts only ports. */
async function listenOn(path, app) {
  await app.init()
  await app.getHttpAdapter().getInstance().ready?.()
  await once(app.getHttpServer().listen(path), 'listening')
}

export function client(origin) {
  const post = async (path, body, headers = {}) => {
    const response = await fetch(origin + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }
  return { origin, post }
}

async function login(test, adapter, { addresses, guards = [], between = () => {}, handle, listen = {} }) {
  const seen = { verified: 0 }
  const pass = {
    canActivate: (context) => {
      between(context.switchToHttp().getRequest())
      return true
    },
  }
  const made = guards.map((options) => guard(options))
  class Login {
    async login(request, response) {
      seen.verified += 1
      response.status(await handle(request, response.raw ?? response)).send()
    }
    async open(_request, response) {
      response.status(204).send()
    }
  }
  Controller()(Login)
  if (addresses) UseGuards(addressGuard(addresses))(Login)
  const inOrder = [UseGuards(...made.flatMap((one) => [one, pass])), UseInterceptors(...made)]
  decorate(Login, 'login', [Post('login'), ...inOrder], [Req(), Res()])
  decorate(Login, 'open', [Post('open')], [Req(), Res()])
  return { seen, ...client(await start(test, adapter, { controllers: [Login], path: listen.path })) }
}

/** Anything that is not an answer is 500 with the message, as in the other frameworks' tests. */
class Failed extends BaseExceptionFilter {
  catch(error, host) {
    const answered = error instanceof HttpException
    super.catch(answered ? error : new HttpException({ failed: error.message }, 500), host)
  }
}
