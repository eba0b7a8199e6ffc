/** Loaded before a service: some passwords make the password hash slow, or make it fail, as without memory. */
import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'

const { scrypt } = crypto

crypto.scrypt = (password, salt, length, answer) => {
  if (password === 'crash') return setImmediate(answer, new Error('no memory'))
  if (password === 'slow') return setTimeout(() => scrypt(password, salt, length, answer), 1000)
  return scrypt(password, salt, length, answer)
}
syncBuiltinESMExports()
