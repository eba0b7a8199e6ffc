// The accounts and clients of the example; in a real service all of it is in a database.
import { scrypt, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'

/** Whether this is the password of the account. Unknown accounts cost a hash, too, so that the time tells nothing. */
export async function verifyPassword(email, password) {
  const { salt, hash } = accounts.get(email) ?? nobody
  return timingSafeEqual(await hashOf(text(password), salt), hash) && accounts.has(email)
}

/** Whether this is the one-time code that was sent to the account. */
export function verifyCode(email, code) {
  const sent = accounts.get(email)?.code ?? nobody.code
  return timingSafeEqual(digits(code), digits(sent)) && accounts.has(email)
}

/** Sends a link if there is such an account, after the answer, so that its time tells nothing either. */
export function sendReset(email) {
  setImmediate(() => {
    if (accounts.has(email)) console.log('a link is on its way')
  })
}

/** The subject that a secret belongs to, or undefined. */
export async function verifyClient(id, secret) {
  const { salt, hash } = clients.get(id) ?? nobody
  return timingSafeEqual(await hashOf(text(secret), salt), hash) && clients.has(id) ? id : undefined
}

function hashOf(secret, salt) {
  return promisify(scrypt)(secret, salt, 64)
}

function digits(code) {
  return Buffer.from(text(code).slice(0, 6).padEnd(6, '-').replace(/\D/g, '-'))
}

// A body may hold anything where a text should be.
function text(value) {
  return typeof value === 'string' ? value : ''
}

const account = async (secret, code) => ({ salt: 'a salt', hash: await hashOf(secret, 'a salt'), code })
const nobody = { salt: 'no salt', hash: Buffer.alloc(64), code: '------' }
const accounts = new Map([
  ['ann@example.com', await account('correct horse battery staple', '271828')],
  ['bob@example.com', await account('tall trees hold many birds', '314159')],
])
const clients = new Map([['billing', await account('secret of billing')]])
