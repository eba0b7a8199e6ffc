/**
 * Makes decisions over Redis from Node, as many as it can.
 *
 * Reads lines `subject shape in-flight milliseconds` and answers each with the decisions a second. `shapes.json` says
 * what a shape asks.
 */
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

import { require } from '../node/rounds.mjs'

const { Limiter, RedisStore, Rule } = require('doorkeep')
const { Redis } = require('ioredis')
const { RateLimiterRedis } = require('rate-limiter-flexible')

const shapes = JSON.parse(readFileSync(new URL('shapes.json', import.meta.url), 'utf8'))
const [url] = process.argv.slice(2)

const subjects = {
  doorkeep(shape) {
    const { keys: count, rules } = shapes[shape]
    const limiter = new Limiter({ store: new RedisStore(url, { prefix: 'bench', timeout: '2s', onError: 'closed' }) })
    const made = Object.entries(rules).map(([name, rates]) => new Rule(name, rates))
    const keys = Array.from({ length: count }, (_, i) => made.map((rule, at) => rule.key(`${(i * (at + 1)) % count}`)))
    return async (turn) => {
      const { reason } = await limiter.decide(keys[turn % count])
      if (reason === 'unavailable') throw new Error('the store did not answer')
    }
  },
  'rate-limiter-flexible'(shape) {
    const { keys: count } = shapes[shape]
    const limiter = new RateLimiterRedis({ storeClient: new Redis(url), points: 60_000_000, duration: 604_800 })
    const keys = Array.from({ length: count }, (_, i) => `user-${i}`)
    return (turn) => limiter.consume(keys[turn % count])
  },
}

async function measure(call, inFlight, milliseconds) {
  let [turn, done] = [0, 0]
  const start = performance.now()
  const work = async () => {
    while (performance.now() - start < milliseconds) {
      await call(turn++)
      done += 1
    }
  }
  await Promise.all(Array.from({ length: inFlight }, work))
  return done / ((performance.now() - start) / 1000)
}

const calls = new Map()
for await (const line of createInterface({ input: process.stdin })) {
  const [subject, shape, inFlight, milliseconds] = line.split(' ')
  const name = `${subject} ${shape}`
  if (!calls.has(name)) calls.set(name, subjects[subject](shape))
  console.log(await measure(calls.get(name), Number(inFlight), Number(milliseconds)))
}
process.exit()
