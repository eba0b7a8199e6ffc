/** Counters of a limiter, since it was made. */

/** What a limiter has counted since it was made. No name in it contains a key's value. */
export interface Stats {
  /** Admitted calls, by rule. */
  readonly allowed: Readonly<Record<string, number>>
  /** Denied calls, by the rule that denied and the reason. */
  readonly denied: Readonly<Record<string, Readonly<Record<string, number>>>>
  /** Calls for which the store could not be reached, by what was done instead. */
  readonly storeFailed: Readonly<Record<string, number>>
  /** Live entries dropped to make room. */
  readonly evicted: number
  /** Entries that this process keeps now. */
  readonly trackedKeys: number
}

/** Reads the counters that the native module wrote as text. */
export function statsFrom(text: string): Stats {
  return JSON.parse(text) as Stats
}
