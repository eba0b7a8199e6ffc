/** A proxy between a store and its server that imitates network faults. Knows no protocol. */
import { once } from 'node:events'
import { connect, createServer } from 'node:net'

/**
 * Faults: `pass`, `stall` forwards nothing, `cut` ends every connection, `drop-down` drops what is sent to the client.
 */
export async function startProxy(test, port) {
  let fault = 'pass'
  let accepted = 0
  const pairs = new Set()
  const listener = createServer((client) => {
    accepted += 1
    if (fault === 'cut') return client.resetAndDestroy()
    const server = connect(port, '127.0.0.1')
    const pair = [client, server]
    pairs.add(pair)
    const end = () => {
      pairs.delete(pair)
      client.destroy()
      server.destroy()
    }
    for (const socket of pair) socket.on('error', end).on('close', end)
    client.on('data', (bytes) => fault !== 'stall' && server.write(bytes))
    server.on('data', (bytes) => fault === 'pass' && client.write(bytes))
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const cut = () => {
    for (const [client] of pairs) client.resetAndDestroy()
  }
  test.after(() => {
    cut()
    listener.close()
  })
  return {
    url: `redis://127.0.0.1:${listener.address().port}/0`,
    /** Sets the fault for current and later connections. */
    set(next) {
      fault = next
      if (next === 'cut') cut()
    },
    /** Returns how many connections were made. */
    get accepted() {
      return accepted
    },
  }
}
