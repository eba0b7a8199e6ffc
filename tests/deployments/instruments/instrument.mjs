/**
 * Loaded before programs in Node: writes down each password that one of them really checks, and lets it listen on a socket.
 *
 * CHECKED names the file, to which every line adds one password. A wrong password that ends in "raises" throws, as all wrong
 * ones do in argon2.
 * SOCKET is a path to listen on, whatever port the program names. Knows nothing of doorkeep.
 */
import { appendFileSync } from 'node:fs'
import { Server } from 'node:net'

const { CHECKED, SOCKET } = process.env

class MismatchError extends Error {}

/** Wraps a check of a password, which is its last argument. */
globalThis.counted = (check) => {
  if (check.constructor.name === 'AsyncFunction') {
    return async (...args) => {
      const password = writeDown(args.at(-1))
      return judged(password, await check(...args))
    }
  }
  return (...args) => {
    const password = writeDown(args.at(-1))
    return judged(password, check(...args))
  }
}

/** Stands for a comparison that a page writes out. */
globalThis.matches = (sent, right) => {
  return judged(writeDown(sent), sent === right)
}

/** Writes down that a request was handled. */
globalThis.reached = writeDown

function writeDown(password) {
  appendFileSync(CHECKED, `${JSON.stringify(String(password))}\n`)
  return String(password)
}

function judged(password, isRight) {
  if (!isRight && password.endsWith('raises')) throw new MismatchError('the password does not match the supplied hash')
  return isRight
}

if (SOCKET) {
  const { listen } = Server.prototype
  Server.prototype.listen = function (...args) {
    const listening = args.filter((argument) => typeof argument === 'function')
    return listen.call(this, { path: SOCKET }, ...listening)
  }
}
