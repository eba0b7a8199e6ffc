/** Clients that send a whole request and reset the connection before their address is read. */
import assert from 'node:assert/strict'
import diagnostics from 'node:diagnostics_channel'
import { once } from 'node:events'
import http2 from 'node:http2'
import { connect } from 'node:net'
import { PassThrough } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import tls from 'node:tls'

/** Returns one request of HTTP/1 that posts JSON. */
export function posting(path, body, headers = {}) {
  const text = JSON.stringify(body)
  const fields = {
    host: 'x',
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    ...headers,
  }
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  return `POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n${text}`
}

/** Returns what a client of HTTP/2 sends for one request, as bytes. */
export async function postingOverHttp2(path, body) {
  const sent = []
  const wire = new PassThrough()
  wire.write = (bytes, ...rest) => {
    sent.push(Buffer.from(bytes))
    rest.at(-1)?.()
    return true
  }
  const session = http2.connect('http://x', { createConnection: () => wire })
  session.on('error', () => {})
  const stream = session.request({ ':method': 'POST', ':path': path, 'content-type': 'application/json' })
  stream.on('error', () => {})
  stream.end(JSON.stringify(body))
  await sleep(20)
  session.destroy()
  return Buffer.concat(sent)
}

/** Sends the bytes to a port of this machine and resets the connection. */
export async function reset(port, bytes) {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.write(bytes, () => socket.resetAndDestroy())
  await once(socket, 'close')
}

/** The same over TLS, whose two sides share a key instead of a certificate. */
export const PSK = { ciphers: 'PSK-AES128-GCM-SHA256', maxVersion: 'TLSv1.2', pskIdentityHint: 'test' }
const key = Buffer.alloc(16, 1)
export const SERVER_PSK = { ...PSK, pskCallback: () => key }

export async function resetOverTls(port, bytes) {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  const pskCallback = () => ({ psk: key, identity: 'test' })
  const secure = tls.connect({ socket, ...PSK, pskCallback, checkServerIdentity: () => undefined })
  secure.on('error', () => {})
  await once(secure, 'secureConnect')
  secure.write(bytes, () => setImmediate(() => socket.resetAndDestroy()))
  await once(socket, 'close')
}

/** Counts the requests of HTTP/1 that reach any server of this process. Returns a function that waits for as many. */
export function arrivals(test) {
  let arrived = 0
  const count = () => {
    arrived += 1
  }
  diagnostics.subscribe('http.server.request.start', count)
  test.after(() => diagnostics.unsubscribe('http.server.request.start', count))
  return async (number) => {
    for (let n = 0; arrived < number; n += 1) {
      assert.ok(n < 500, `${arrived} of ${number} requests arrived`)
      await sleep(5)
    }
    // What they do after their arrival.
    await sleep(50)
  }
}
