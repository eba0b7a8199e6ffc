/** Processes and threads that end with a store: none late, none under a pending login, none by a crash. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { Worker } from 'node:worker_threads'
import { Limiter, Rule } from 'doorkeep'
import { freePort, startServer } from './support/redis.mjs'
import { runScript } from './support/scripts.mjs'
import { many, openStore } from './support/stores.mjs'

const SETUP = `
  const { AttemptLimiter, Limiter, RedisStore, Rule } = require('doorkeep')
  const store = new RedisStore(url, { timeout: '2s' })
  const rule = new Rule('login', '100000/1w')
  const limiter = new Limiter({ store });
`
const PROGRAM = `const url = process.argv[1]; ${SETUP}`
const THREAD = `const { parentPort, workerData: url } = require('node:worker_threads'); ${SETUP}`
/** Returns how many milliseconds passed between the last line of a program and its end. */
const SAYS_HOW_LATE = `
  const end = performance.now()
  process.on('exit', () => console.log(Math.round(performance.now() - end)))
`
const ended = { status: 0, stderr: '' }
const CLEAN_TRIALS = 4

/** Returns how many attempts the server counted for `ann`. */
async function counted(test, server) {
  const limiter = new Limiter({ store: openStore(test, server.url, { onError: 'closed' }).store })
  return 100_000 - (await limiter.peek(new Rule('login', '100000/1w').key('ann'))).remaining
}

it('a program that makes three attempts with the server down and closes ends with 0', async () => {
  const { status, stdout, stderr } = await runScript(
    `${PROGRAM}
    const strikes = new AttemptLimiter({ threshold: 3, lockoutWindow: '1h', name: 'strikes', store })
    ;(async () => {
      for (let n = 0; n < 3; n += 1) console.log(await strikes.attempt('ann'))
      await store.close()
    })()`,
    `redis://user:sesame@127.0.0.1:${await freePort()}/0`,
  )
  assert.deepEqual([status, stdout], [0, '1\n1\n2\n'])
  assert.equal(stderr.match(/DOORKEEP_/g).length, 1)
  assert.match(stderr, /\[DOORKEEP_STORE_DOWN\] DoorkeepWarning: store at 127\.0\.0\.1:\d+ does not answer: /)
  assert.doesNotMatch(stderr, /sesame|ann/)
})

it('a script that makes 1000 attempts and ends without a close counts all of them, and exits cleanly and promptly', async (test) => {
  const server = await startServer(test)
  const { stdout, ...how } = await runScript(
    `${PROGRAM} for (let n = 0; n < 1000; n += 1) limiter.attempt(rule.key('ann')); ${SAYS_HOW_LATE}`,
    server.url,
  )
  assert.deepEqual(how, ended)
  assert.ok(Number(stdout) < 1000, `${stdout} ms`)
  assert.equal(await counted(test, server), 1000)
})

it('an idle store, used or not, keeps no process alive', async (test) => {
  const server = await startServer(test)
  for (const use of ['', 'await limiter.decide(rule.key("ann"));']) {
    const { stdout, ...how } = await runScript(
      `${PROGRAM} (async () => { ${use} ${SAYS_HOW_LATE} })(); setTimeout(() => console.log('held'), 1500).unref()`,
      server.url,
    )
    assert.deepEqual(how, ended)
    assert.ok(Number(stdout) < 1000, stdout)
  }
})

it('an outage keeps no process alive while the store looks for the server', async () => {
  const { stdout, status } = await runScript(
    `${PROGRAM} limiter.decide(rule.key('ann')).then(({ degraded }) => { console.log(degraded) })`,
    `redis://127.0.0.1:${await freePort()}/0`,
  )
  assert.deepEqual([status, stdout], [0, 'true\n'])
})

it('F25 process.exit with calls in flight is clean', async (test) => {
  const server = await startServer(test)
  const flood = `for (let n = 0; n < 2000; n += 1) limiter.attempt(rule.key('ann'))`
  for (let trial = 0; trial < CLEAN_TRIALS; trial += 1) {
    const exits = [
      `${PROGRAM} ${flood}; process.exit(0)`,
      `${PROGRAM} ${flood}; setTimeout(() => process.exit(0), ${trial})`,
      `${PROGRAM} ${flood}; limiter.decide(rule.key('bob')).then(() => process.exit(0))`,
    ]
    for (const code of exits) assert.deepEqual(await runScript(code, server.url), { ...ended, stdout: '' })
  }
})

it('F25 a program that gets a signal ends by it', async (test) => {
  const server = await startServer(test)
  const code = `${PROGRAM}
    const go = () => limiter.attempt(rule.key('ann')).then(go)
    for (let n = 0; n < 100; n += 1) go()
    setTimeout(() => process.kill(process.pid, 'SIGTERM'), 50)`
  assert.equal((await runScript(code, server.url)).status, 'SIGTERM')
})

/** Runs a thread to its end: returns what it printed and how it ended. */
function thread(code, url) {
  return new Promise((resolve, reject) => {
    const said = []
    const worker = new Worker(code, { eval: true, workerData: url })
    worker.on('message', (message) => said.push(message)).on('error', reject)
    worker.on('exit', (status) => resolve({ status, said }))
  })
}

it('worker threads have their own bridge and end on their own, and no call is lost', async (test) => {
  const server = await startServer(test)
  const code = `${THREAD}
    for (let n = 0; n < 250; n += 1) limiter.attempt(rule.key('ann')).then(({ allowed }) => parentPort.postMessage(allowed))`
  const threads = await many(4, () => thread(code, server.url))
  for (const { status, said } of threads) assert.deepEqual([status, said], [0, Array(250).fill(true)])
  assert.equal(await counted(test, server), 1000)
})

const TERMINATED = `
  const { Worker } = require('node:worker_threads')
  const run = (wait) => new Promise((resolve, reject) => {
    const worker = new Worker(${JSON.stringify(`${THREAD}
      const go = () => limiter.attempt(rule.key('ann')).then(go)
      for (let n = 0; n < 200; n += 1) go()
      parentPort.postMessage('ready')`)}, { eval: true, workerData: process.argv[1] })
    worker.on('error', reject)
    worker.once('message', () => setTimeout(() => worker.terminate().then(resolve), wait))
  })
  ;(async () => { for (let n = 0; n < 10; n += 1) await Promise.all([run(n), run(2 * n)]) })()
`

it('F25 a thread can be terminated with calls in flight, whether it loaded the module first or not', async (test) => {
  const server = await startServer(test)
  for (const first of ['', `const doorkeep = require('doorkeep');`]) {
    assert.deepEqual(await runScript(first + TERMINATED, server.url), { ...ended, stdout: '' })
  }
  const mine = new Limiter({ store: openStore(test, server.url, { timeout: '2s' }).store })
  assert.equal((await mine.decide(new Rule('mine', '5/1h').key('ann'))).degraded, false)
})
