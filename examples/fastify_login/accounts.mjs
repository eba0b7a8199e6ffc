// The accounts and clients of the example; in a real service all of it is in a database.
import { scrypt, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'

/** The account of an email, or undefined. A database may find one account by several spellings; `email` is the stored one. */
export async function findAccount(email) {
  return accounts.get(email)
}

/** Whether this is the password of the account. Unknown accounts cost a hash, too, so that the time tells nothing. */
export async function verifyPassword(account, password) {
  const { salt, hash } = account ?? nobody
  return timingSafeEqual(await hashOf(text(password), salt), hash) && account !== undefined
}

/** Whether this is the one-time code that was sent to the account. */
export function verifyCode(account, code) {
  const sent = account?.code ?? nobody.code
  return timingSafeEqual(digits(code), digits(sent)) && account !== undefined
}

/** Sends a link to an account, after the answer, so that its time tells nothing either. */
export function sendReset(_account) {
  setImmediate(() => console.log('a link is on its way'))
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

const account = async (email, secret, code) => ({ email, salt: 'a salt', hash: await hashOf(secret, 'a salt'), code })
const nobody = { salt: 'no salt', hash: Buffer.alloc(64), code: '------' }
const ann = await account('ann@example.com', 'correct horse battery staple', '271828')
const bob = await account('bob@example.com', 'tall trees hold many birds', '314159')
const accounts = new Map([ann, bob].map((one) => [one.email, one]))
const clients = new Map([['billing', await account(undefined, 'secret of billing')]])
