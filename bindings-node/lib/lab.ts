/**
 * The lab: attacks and honest logins against the very limiters of this package, by a clock that jumps.
 *
 * Everything is computed by the core. Invariant: a scenario and its seed give the same columns in every language.
 */
import { sound } from './failure.js'
import { type NativeColumns, native } from './native.js'
import type { Duration } from './options.js'

/** Columns of one length by name. Durations are seconds, and NaN says that there is nothing to tell. */
export type Columns = Readonly<Record<string, Float64Array>>

/** Columns of attackers or users: beside the numbers, what kind of actor each row is. */
export type ActorColumns = { readonly kind: readonly string[] } & { readonly [column: string]: Float64Array }

/** What came of a run; `docs/lab.md` says what each column means. */
export interface LabOutcome {
  /** One row: `complete`, `duration_s`, `events`, `degraded_percent`, `tracked_keys`, `tracked_keys_max`, `evicted`. */
  readonly run: Columns
  /** A row for each attacker: `guesses`, `opened`, `opened_expected`, `first_locked_s` and more. */
  readonly attackers: ActorColumns
  /** A row for each group of users: `logins`, `denied_percent`, `wait_p95_s`, `recovery_s` and more. */
  readonly users: ActorColumns
  /** A row for each equal part of the run: `start_s`, `attacker_0_admitted` and so on, `users_denied` and more. */
  readonly series: Columns
  /** The first guesses that were admitted, `run.record` of each attacker: `attacker`, `guess`, `at_s`. */
  readonly admissions: Columns
}

/** What a policy admits in spans from a minute to a year. */
export interface BoundColumns {
  /** The spans as text: `1m` to `365d`. */
  readonly span: readonly string[]
  /** The same in seconds. */
  readonly span_s: Float64Array
  /** The most that a greedy attacker gets. */
  readonly admitted: Float64Array
  /** The most that an attacker gets who is never denied. */
  readonly unnoticed: Float64Array
}

/** The closed forms and their arguments. Durations that come out are milliseconds, chances are 0 to 1. */
export interface ClosedForms {
  max_in: { policy: string; span: Duration }
  unnoticed: { policy: string; span: Duration }
  admitted_at: { rates: string; guess: number }
  botnet: { account_and_address: string; account: string; addresses: number; span: Duration }
  stuffing: { address: string; pairs: number; addresses: number }
  key_flood: { threshold: number; capacity: number; rate: string; span: Duration }
  honest_denial: { burst: number; load: number }
  codes: { digits: number; valid: number; guesses: number }
  replicas: { policy: string; replicas: number; span: Duration }
  opened: { guesses: number; bits?: number | undefined }
}

/**
 * Runs a scenario to its end and gives its columns.
 *
 * Keeps its thread meanwhile, about a second for two million attempts: a server runs it in a worker thread.
 *
 * @param scenario - TOML, JSON, or an object with the same fields. Numbers that stand for durations are seconds.
 * @throws {@link ConfigError} that names the field, and for TOML the line.
 *
 * @example
 * ```ts
 * const { attackers } = simulate({
 *   policy: { rules: ['preset:login-ip', 'preset:login-account'] },
 *   attackers: [{ kind: 'botnet', addresses: 50 }],
 * })
 * console.log(attackers.guesses[0], 'guesses a day')
 * ```
 */
export function simulate(scenario: string | object): LabOutcome {
  const text = typeof scenario === 'string' ? scenario : JSON.stringify(scenario)
  const tables = pairs(sound(native.labSimulate(text)), (columns) => read(columns as NativeColumns))
  return tables as unknown as LabOutcome
}

/**
 * What a policy admits in spans from a minute to a year.
 *
 * @param policy - Rates such as `5/1m,50/1h`, strikes as `s5/15m`, or a fixed window as `w100/1m`.
 * @throws {@link ConfigError} when the text is no policy.
 */
export function bounds(policy: string): BoundColumns {
  return read(sound(native.labBounds(policy))) as unknown as BoundColumns
}

/**
 * One closed form by its name: what need not be simulated.
 *
 * @throws {@link ConfigError} when the name or an argument is unknown, missing or out of its bounds.
 */
export function bound<Name extends keyof ClosedForms>(name: Name, values: ClosedForms[Name]): number {
  return sound(native.labBound(name, Object.keys(values), Object.values(values)))
}

function read(columns: NativeColumns): Record<string, Float64Array | readonly string[]> {
  return pairs(columns, (values) => (Array.isArray(values) ? values : new Float64Array(values as ArrayBuffer)))
}

/** Names and values by turns, as an object. */
function pairs<T>(turns: readonly unknown[], value: (given: unknown) => T): Record<string, T> {
  const entries: [string, T][] = []
  for (let i = 0; i < turns.length; i += 2) entries.push([turns[i] as string, value(turns[i + 1])])
  return Object.fromEntries(entries)
}
