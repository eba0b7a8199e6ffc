/**
 * Real servers for tests, each on a free loopback port and ended with its test.
 *
 * Invariant: a test fails when there is no binary, since it would prove nothing without a server.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** The servers, and the variables that name their binaries. */
export const ENGINES = { Redis: 'DOORKEEP_REDIS_SERVER', Valkey: 'DOORKEEP_VALKEY_SERVER' }

const LONGEST_START_MS = 10_000

/** Starts a server that ends with the test. */
export async function startServer(test, engine = 'Redis', ...options) {
  const server = await launch(engine, ...options)
  test.after(() => server.stop())
  return server
}

/** Starts a server that the caller stops. */
export async function launch(engine, ...options) {
  for (let attempt = 0; attempt < 5; attempt += 1) {
    const server = new Server(engine, await freePort(), options)
    // Another process may have taken the port meanwhile.
    if (await server.start()) return server
    await server.stop()
  }
  return assert.fail(`${engine} does not start`)
}

/** Returns a port of the loopback interface that was free a moment ago. */
export async function freePort() {
  const listener = createServer().listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address()
  listener.close()
  await once(listener, 'close')
  return port
}

class Server {
  #engine
  #options
  #process

  constructor(engine, port, options) {
    this.#engine = engine
    this.port = port
    this.#options = options
  }

  get url() {
    return `redis://127.0.0.1:${this.port}/0`
  }

  /** Returns whether it came up. It is empty, whatever it contained before. */
  async start() {
    const variable = ENGINES[this.#engine]
    const binary = process.env[variable]
    assert.ok(binary, `${variable} names no server binary; make test sets it`)
    const fixed = ['--port', this.port, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']
    this.#process = spawn(binary, [...fixed, ...this.#options].map(String), { stdio: 'ignore' })
    const started = performance.now()
    while (performance.now() - started < LONGEST_START_MS && this.#process.exitCode === null) {
      if (await this.#answers()) return this.#process.exitCode === null
      await sleep(10)
    }
    return false
  }

  async #answers() {
    try {
      return (await this.ask('PING')) === '+PONG'
    } catch {
      return false
    }
  }

  /** Ends it immediately, as a crash would. */
  async stop() {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    this.#process.kill('SIGKILL')
    await once(this.#process, 'exit')
  }

  /** Suspends it, with its sockets open. */
  freeze() {
    this.#process.kill('SIGSTOP')
  }

  /** Resumes it. */
  thaw() {
    this.#process.kill('SIGCONT')
  }

  /** Sends one command; returns the first line of the reply. */
  async ask(...words) {
    return (await this.#exchange(words)).split('\r\n', 1)[0]
  }

  /** Returns the value of a bulk reply. */
  async text(...words) {
    const reply = await this.#exchange(words)
    return reply.slice(reply.indexOf('\r\n') + 2, -2)
  }

  /** Returns the names of its keys. */
  async keys() {
    const [, ...lines] = (await this.#exchange(['KEYS', '*'])).split('\r\n')
    return lines.filter((line) => line !== '' && !/^\$\d+$/.test(line))
  }

  async #exchange(words) {
    const socket = connect(this.port, '127.0.0.1')
    try {
      await once(socket, 'connect')
      const bulk = (word) => `$${Buffer.byteLength(String(word))}\r\n${word}\r\n`
      // The second command marks the end of the first one's reply.
      socket.write(`*${words.length}\r\n${words.map(bulk).join('')}*2\r\n$4\r\nECHO\r\n$3\r\nend\r\n`)
      let reply = ''
      while (!reply.endsWith('$3\r\nend\r\n')) reply += String((await once(socket, 'data'))[0])
      return reply.slice(0, -'$3\r\nend\r\n'.length)
    } finally {
      socket.destroy()
    }
  }
}
