/** The package: limiters that protect login endpoints against guessing. Exports everything public. */

export {
  AttemptDenied,
  type DeniedOptions,
  type ExceededOptions,
  LimiterUnavailable,
  RateLimitExceeded,
} from './denied.js'
export {
  ConfigError,
  DoorkeepError,
  type ErrorCode,
  InvalidKeyError,
} from './errors.js'
export * as http from './http.js'
export { canonicalEmail, canonicalUsername, type EmailOptions } from './identity/canonical.js'
export { ClientIp, type ClientIpOptions, type RequestHeaders } from './identity/client-ip.js'
export { network } from './identity/network.js'
export { IssueGuard, type IssueGuardOptions, type KeyOfClaims, keyFromClaims, type RateLimitProvider } from './issue.js'
export type { Attempt, SuccessOptions } from './limiters/attempt.js'
export {
  AttemptLimiter,
  type AttemptLimiterOptions,
  type Cancelled,
  type Reservation,
  type Reserved,
} from './limiters/attempt-limiter.js'
export type { CommonOptions } from './limiters/common-options.js'
export type { LimiterConfig, RuleConfig } from './limiters/config.js'
export { type Decision, Outcome, type Reason } from './limiters/decision.js'
export { FixedWindow, type FixedWindowOptions } from './limiters/fixed-window.js'
export type { ErrorClass } from './limiters/give-back.js'
export { Limiter, type LimiterOptions, type Ran, type RunOptions } from './limiters/limiter.js'
export { ManualClock } from './limiters/manual-clock.js'
export type { Stats } from './limiters/stats.js'
export { TokenBucket, type TokenBucketOptions } from './limiters/token-bucket.js'
export type { At, AtOptions, CallOptions, Clock } from './options/call.js'
export type { Duration } from './options/options.js'
export type { Key, Keys } from './rules/key.js'
export { type KeyValues, keysFor } from './rules/keys-for.js'
export { type LintOptions, lint } from './rules/lint.js'
export * as presets from './rules/presets.js'
export { Rate, Rates } from './rules/rate.js'
export { type KeyRule, Rule, type RuleOptions, StrikeRule, type StrikeRuleOptions } from './rules/rule.js'
export type { OnError } from './store.js'
export { RedisStore, type RedisStoreOptions, type StoreEvent } from './store.js'
