// The accounts and clients of the example. A real service keeps them in a database.
import { scrypt, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'

/** Returns the account of an email, or undefined. A database may find it by several spellings; `email` is the stored one. */
export async function findAccount(email) {
  return accounts.get(email)
}

/** Returns whether this is the account's password. An unknown account costs a hash too, so that timing reveals nothing. */
export async function verifyPassword(account, password) {
  const { salt, hash } = account ?? nobody
  return timingSafeEqual(await hashOf(text(password), salt), hash) && account !== undefined
}

/** Returns whether this is the one-time code that was sent to the account. */
export function verifyCode(account, code) {
  const sent = account?.code ?? nobody.code
  return timingSafeEqual(digits(code), digits(sent)) && account !== undefined
}

/** Sends a link to an account, after the response, so that its timing reveals nothing either. */
export function sendReset(_account) {
  setImmediate(() => console.log('a link is on its way'))
}

/** Returns the client's id if this is its secret, or undefined. */
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

// A body may contain anything where a string is expected.
function text(value) {
  return typeof value === 'string' ? value : ''
}

const account = async (email, secret, code) => ({ email, salt: 'a salt', hash: await hashOf(secret, 'a salt'), code })
const nobody = { salt: 'no salt', hash: Buffer.alloc(64), code: '------' }
const ann = await account('ann@example.com', 'correct horse battery staple', '271828')
const bob = await account('bob@example.com', 'tall trees hold many birds', '314159')
const accounts = new Map([ann, bob].map((one) => [one.email, one]))
const clients = new Map([['billing', await account(undefined, 'secret of billing')]])
