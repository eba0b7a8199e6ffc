/** A guarded login in each framework that has a guard, behind a real server, so that one suite tests all of them. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import * as ofExpress from 'doorkeep/express'
import * as ofFastify from 'doorkeep/fastify'
import express4 from 'express4'
import express5 from 'express5'
import fastify from 'fastify'
import fastify5_0 from 'fastify5_0'
import { client, nest } from './nest.mjs'

const LOOPBACK = { port: 0, host: '127.0.0.1' }

/**
 * Each serves `POST /login`: the rules on addresses, the guards in their order, then `handle`, which gets the request
 * and returns a status or throws, and `/open` behind the rules on addresses alone. The adapter answers what it throws
 * where the test says so or the framework has no other way; otherwise the answer is 500. Returns the origin, a function
 * that posts JSON, and how many requests reached the handler. Each also has the exports of its adapter.
 */
export const frameworks = [
  { name: 'Express 4', ...ofExpress, login: (test, parts) => onExpress(express4, test, parts) },
  { name: 'Express 5', ...ofExpress, login: (test, parts) => onExpress(express5, test, parts) },
  { name: 'Fastify 5.0', ...ofFastify, login: (test, parts) => onFastify(fastify5_0, test, parts) },
  { name: 'Fastify', ...ofFastify, login: (test, parts) => onFastify(fastify, test, parts) },
  ...nest,
]

async function onExpress(express, test, parts) {
  const { addresses, guards = [], between = () => {}, handle, listen = LOOPBACK, answersErrors = false } = parts
  const app = express()
  const seen = { verified: 0 }
  if (addresses) app.use(ofExpress.addressLimit(addresses))
  app.use(express.json())
  const pass = (req, _res, next) => {
    between(req)
    next()
  }
  app.post('/login', ...guards.flatMap((options) => [ofExpress.guard(options), pass]), async (req, res, next) => {
    try {
      seen.verified += 1
      res.sendStatus(await handle(req, res))
    } catch (error) {
      next(error)
    }
  })
  app.all('/open', (_req, res) => res.sendStatus(204))
  if (answersErrors) app.use(ofExpress.answerErrors())
  // Four arguments make it an error handler.
  app.use((error, _req, res, _next) => res.status(500).json({ failed: error.message }))
  const server = createServer(app)
  server.listen(listen)
  await once(server, 'listening')
  test.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { seen, ...client(`http://127.0.0.1:${server.address().port}`) }
}

async function onFastify(fastify, test, parts) {
  const { addresses, guards = [], between = () => {}, handle, listen = LOOPBACK, answersErrors = false } = parts
  const app = fastify({ forceCloseConnections: true })
  const seen = { verified: 0 }
  if (addresses) await app.register(ofFastify.doorkeep, addresses)
  app.setErrorHandler((error, _request, reply) => reply.code(500).send({ failed: error.message }))
  const preHandler = guards.flatMap((options) => [ofFastify.guard(options), async (request) => between(request)])
  // Its own error handler, which passes on to that of the instance above.
  app.register(async (routes) => {
    if (answersErrors) routes.setErrorHandler(ofFastify.answerErrors())
    routes.post('/login', { preHandler }, async (request, reply) => {
      seen.verified += 1
      return reply.code(await handle(request, reply.raw)).send()
    })
  })
  app.all('/open', (_request, reply) => reply.code(204).send())
  const origin = await app.listen(listen)
  test.after(() => app.close())
  return { seen, ...client(origin) }
}
