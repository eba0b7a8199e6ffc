// Providers decide how many tokens a subject gets. A provider is anything with allow, reset and close.
//
// TokenBucket is one. The two here are written for this service: they show the interface RateLimitProvider.
// Invariant: a call to allow checks and counts in one step.
import { FixedWindow } from 'doorkeep'

/** A fixed window in Redis: all replicas of the service draw on one budget. */
export class SharedWindow {
  #window

  constructor(limit, window, store) {
    // Without its server it issues nothing: a provider answers yes or no, and "unavailable" is a no.
    this.#window = new FixedWindow({ limit, window, name: 'token-issue', store, onError: 'closed' })
  }

  async allow(key) {
    return (await this.#window.consume(key)).allowed
  }

  async reset(key) {
    await this.#window.reset(key)
  }

  /** Leaves the store open: it belongs to the caller who created it. */
  close() {}
}

/**
 * A number of tokens per calendar day in UTC, counted in this process without doorkeep.
 *
 * Keeps an entry for each subject of the day, which come from claims that the service has checked. Keys that a stranger
 * can choose need a table with a cap.
 */
export class DailyQuota {
  #limit
  #day = today()
  #used = new Map()

  constructor(limit) {
    this.#limit = limit
  }

  allow(key) {
    if (this.#day !== today()) {
      this.#day = today()
      this.#used.clear()
    }
    const used = this.#used.get(key) ?? 0
    if (used >= this.#limit) return false
    this.#used.set(key, used + 1)
    return true
  }

  reset(key) {
    this.#used.delete(key)
  }

  close() {}
}

function today() {
  return new Date().toISOString().slice(0, 'YYYY-MM-DD'.length)
}
