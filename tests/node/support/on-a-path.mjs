/** Loaded before a program: its servers listen on the Unix socket at SOCKET_PATH, whatever they ask for. */
import { Server } from 'node:net'

const { listen } = Server.prototype

Server.prototype.listen = function listenOnPath(...given) {
  const done = given.at(-1)
  return listen.call(this, { path: process.env.SOCKET_PATH }, ...(typeof done === 'function' ? [done] : []))
}
