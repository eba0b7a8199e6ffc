/**
 * The README's login and the examples behind a Unix socket, where no client has an address: they work and they count.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../', import.meta.url))
const preload = new URL('support/on-a-path.mjs', import.meta.url).href
const ANN = { email: 'ann@example.com', password: 'correct horse battery staple' }

/** Starts a program of this repository on a path; returns a function that posts JSON and returns status and body. */
async function start(test, program, env = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'doorkeep-'))
  const socketPath = join(folder, 'socket')
  const child = spawn(process.execPath, ['--import', preload, program], {
    cwd: root,
    env: { ...process.env, ...env, SOCKET_PATH: socketPath },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text) => {
    said += text
  })
  test.after(async () => {
    child.kill()
    await rm(folder, { recursive: true })
  })
  for (
    let n = 0;
    !(await access(socketPath).then(
      () => true,
      () => false,
    ));
    n += 1
  ) {
    assert.ok(n < 500 && child.exitCode === null, `the program did not start: ${said}`)
    await sleep(20)
  }
  const post = async (path, body) => {
    const sent = request({ socketPath, path, method: 'POST', headers: { 'content-type': 'application/json' } })
    sent.end(JSON.stringify(body))
    const [response] = await once(sent, 'response')
    response.setEncoding('utf8')
    let text = ''
    for await (const chunk of response) text += chunk
    return { status: response.statusCode, text }
  }
  return { post, warnings: () => said }
}

const statuses = async (times, ask) => {
  const seen = []
  for (let n = 0; n < times; n += 1) seen.push((await ask(n)).status)
  return seen
}

/** The rule on the account remains: 20 in parallel. */
async function holds({ post }) {
  assert.deepEqual(await post('/login', ANN), { status: 200, text: '{"welcome":"ann@example.com"}' })
  const wrong = await statuses(21, (n) => post('/login', { ...ANN, password: `guess ${n}` }))
  assert.deepEqual(wrong, [...Array(20).fill(401), 429])
  assert.equal((await post('/login', ANN)).status, 429)
  assert.equal((await post('/login', { password: 'x' })).status, 400)
}

it("the README's login in Express", async (test) => {
  const readme = await readFile(join(root, 'README.md'), 'utf8')
  const [, code] = readme.match(/```js\n(.*?from 'express'.*?)```/s)
  await mkdir(join(root, 'build'), { recursive: true })
  const folder = await mkdtemp(join(root, 'build', 'without-address-'))
  test.after(() => rm(folder, { recursive: true }))
  await writeFile(join(folder, 'login.mjs'), code)
  await holds(await start(test, join(folder, 'login.mjs')))
})

for (const name of ['express_login', 'fastify_login']) {
  it(`examples/${name}`, async (test) => {
    const program = await start(test, `examples/${name}/app.mjs`)
    await holds(program)
    const { post } = program
    assert.equal((await post('/otp', { email: ANN.email, code: '271828' })).status, 200)
    const codes = await statuses(6, (n) => post('/otp', { email: ANN.email, code: `00000${n}` }))
    assert.deepEqual(codes, [401, 401, 401, 401, 401, 429])
    assert.deepEqual(await statuses(2, () => post('/forgot-password', { email: ANN.email })), [202, 429])
    const billing = { client_id: 'billing', client_secret: 'secret of billing' }
    assert.equal((await post('/token', billing)).status, 200)
    assert.match(program.warnings(), /DOORKEEP_NOT_COUNTED/)
  })
}

it('examples/token_issuer_node', async (test) => {
  const { post } = await start(test, 'examples/token_issuer_node/app.mjs', { SIGNING_KEY: 'k'.repeat(32) })
  const billing = { client_id: 'billing', client_secret: 'secret of billing' }
  assert.equal((await post('/token', billing)).status, 200)
  assert.equal((await post('/token', { ...billing, client_secret: 'wrong' })).status, 401)
  assert.equal((await post('/guest', {})).status, 200)
})
