// The login page of the examples in a real browser: it shows the wait of a denial and recovers when it is over.
//
// Each example is started with a lockout of seconds. Needs the browser that DOORKEEP_CHROMIUM names.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { chromium } from 'playwright-core'

const ROOT = path.join(import.meta.dirname, '..', '..')
const LOCKOUT_SECONDS = 4
const UVICORN = ['-m', 'uvicorn', 'app:app', '--no-proxy-headers', '--log-level', 'critical', '--port']
const EXAMPLES = {
  fastapi_login: (port) => [path.join(ROOT, '.venv', 'bin', 'python'), ...UVICORN, port],
  express_login: () => [process.execPath, 'app.mjs'],
  fastify_login: () => [process.execPath, 'app.mjs'],
}

let browser

before(async () => {
  assert.ok(process.env.DOORKEEP_CHROMIUM, 'DOORKEEP_CHROMIUM names no browser')
  // It makes an empty profile for itself, and removes it.
  browser = await chromium.launch({
    executablePath: process.env.DOORKEEP_CHROMIUM,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  })
})

after(() => browser?.close())

for (const [name, command] of Object.entries(EXAMPLES)) {
  describe(`the page of ${name}`, () => {
    let example
    let url
    let page

    before(async () => {
      ;({ example, url } = await start(name, command))
      page = await browser.newPage()
      await page.goto(url)
    })

    after(async () => {
      await page?.close()
      await stop(example)
    })

    it('says that a password is wrong', async () => {
      for (let n = 0; n < 5; n += 1) {
        assert.equal(await login(page, `guess ${n}`), 'Wrong email or password')
      }
    })

    it('counts down the wait of a denied attempt and cannot be sent meanwhile', async () => {
      const shown = await login(page, 'guess 5', /^Too many/)
      const [, seconds] = /^Too many attempts, try again in (\d+) s$/.exec(shown)
      assert.ok(1 <= Number(seconds) && Number(seconds) <= LOCKOUT_SECONDS)
      assert.ok(await page.locator('#submit').isDisabled())
      await page.waitForFunction((before) => document.getElementById('message').textContent !== before, shown)
    })

    it('becomes usable on its own when the wait is over, and then lets the owner in', async () => {
      await page.locator('#submit:enabled').waitFor({ timeout: 2 * LOCKOUT_SECONDS * 1000 })
      assert.equal(await page.locator('#message').textContent(), '')
      assert.equal(await login(page, 'correct horse battery staple'), 'Welcome, ann@example.com')
    })

    it('works without scripts, too', async () => {
      const context = await browser.newContext({ javaScriptEnabled: false })
      const plain = await context.newPage()
      await plain.goto(url)
      await fill(plain, 'wrong')
      await plain.waitForURL(`${url}?wrong`)
      await fill(plain, 'correct horse battery staple')
      await plain.waitForURL(`${url}?welcome`)
      await context.close()
    })
  })
}

/** Sends the form, and gives what the page says to it. */
async function login(page, password, said = /./) {
  await fill(page, password)
  const message = page.locator('#message', { hasText: said })
  await message.waitFor()
  return message.textContent()
}

async function fill(page, password) {
  await page.locator('#email').fill('ann@example.com')
  await page.locator('#password').fill(password)
  await page.locator('#submit').click()
}

async function start(name, command) {
  const port = String(await freePort())
  const [program, ...words] = command(port)
  const example = spawn(program, words, {
    cwd: path.join(ROOT, 'examples', name),
    env: { ...process.env, PORT: port, LOCKOUT_WINDOW: `${LOCKOUT_SECONDS}s` },
    stdio: 'inherit',
  })
  const url = `http://127.0.0.1:${port}/`
  for (const deadline = Date.now() + 30_000; ; ) {
    assert.equal(example.exitCode, null, `${name} ended`)
    assert.ok(Date.now() < deadline, `${name} did not come up`)
    if (await fetch(url).catch(() => undefined)) return { example, url }
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

async function stop(example) {
  if (!example || example.exitCode !== null) return
  const ended = once(example, 'exit')
  example.kill()
  await ended
}

async function freePort() {
  const listener = createServer().listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address()
  listener.close()
  await once(listener, 'close')
  return port
}
