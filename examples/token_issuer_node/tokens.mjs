// Signs and reads the tokens of the example. Knows nothing of HTTP or of client secrets.
//
// Invariant: nothing is signed before the guard has seen its claims, and reading a token asks no limiter.
import { randomUUID } from 'node:crypto'
import { errors, jwtVerify, SignJWT } from 'jose'

const ALGORITHM = 'HS256'
const LIFETIMES = { access: '5m', refresh: '1d' }

/** Issues pairs of an access token and a refresh token, and reads both. */
export class Tokens {
  #key
  #guard

  constructor(key, guard) {
    this.#key = key
    this.#guard = guard
  }

  /** Signs a pair of tokens, or rejects with RateLimitExceeded: two signatures, one token of the subject's budget. */
  async issue(claims) {
    await this.#guard.check(claims)
    return { access_token: await this.#sign(claims, 'access'), refresh_token: await this.#sign(claims, 'refresh') }
  }

  /** Exchanges a refresh token for a new pair. Draws on the budget of its subject, like `issue`. */
  async refresh(token) {
    const { sub } = await this.read(token, 'refresh')
    return this.issue(sub === undefined ? {} : { sub })
  }

  /** Returns the claims of a token of ours, current and for this use; rejects with a JOSEError otherwise. */
  async read(token, use) {
    const { payload } = await jwtVerify(token, this.#key, { algorithms: [ALGORITHM], requiredClaims: ['exp', 'use'] })
    if (payload.use !== use) throw new errors.JWTInvalid('a token for another use')
    return payload
  }

  #sign(claims, use) {
    return new SignJWT({ ...claims, use })
      .setProtectedHeader({ alg: ALGORITHM })
      .setIssuedAt()
      .setExpirationTime(LIFETIMES[use])
      .setJti(randomUUID())
      .sign(this.#key)
  }
}
