// A service of NestJS that counts every request by its address, over the platform that PLATFORM names. Without a compiler.
import 'reflect-metadata'
import { Body, Controller, HttpCode, Module, Post } from '@nestjs/common'
import { APP_GUARD, NestFactory } from '@nestjs/core'
import { ExpressAdapter } from '@nestjs/platform-express'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import { ClientIp, Limiter, Rule } from 'doorkeep'
import { addressGuard } from 'doorkeep/nestjs'

const openIp = new Rule('open-ip', '5/1h', { by: ['address'] })
const clientIp = new ClientIp()

class Open {
  open(body) {
    globalThis.reached(body.password)
  }
}
Body()(Open.prototype, 'open', 0)
for (const decorator of [HttpCode(204), Post('open')]) {
  decorator(Open.prototype, 'open', Object.getOwnPropertyDescriptor(Open.prototype, 'open'))
}
Controller()(Open)

class App {}
const useClass = addressGuard({ limiter: new Limiter(), rules: [openIp], clientIp })
Module({ controllers: [Open], providers: [{ provide: APP_GUARD, useClass }] })(App)

const adapter = process.env.PLATFORM === 'fastify' ? new FastifyAdapter() : new ExpressAdapter()
const app = await NestFactory.create(App, adapter, { logger: false })
await app.listen(Number(process.env.PORT), '127.0.0.1')
