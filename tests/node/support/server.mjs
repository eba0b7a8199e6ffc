/** A real HTTP server on a free loopback port around an Express app, closed when the test ends. */
import { once } from 'node:events'
import { createServer } from 'node:http'

/** Serves `app`; returns the address and a function that posts JSON. */
export async function serve(test, app) {
  const server = createServer(app)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  test.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const origin = `http://127.0.0.1:${server.address().port}`
  const post = async (path, body) => {
    const response = await fetch(origin + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }
  return { origin, post }
}
