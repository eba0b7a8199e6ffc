/** The package: limiters that protect login endpoints against guessing. Everything public is named here. */
export type { Attempt, SuccessOptions } from './attempt.js'
export {
  AttemptLimiter,
  type AttemptLimiterOptions,
  type Cancelled,
  type Reservation,
  type Reserved,
} from './attempt-limiter.js'
export { ClientIp, type ClientIpOptions, type RequestHeaders } from './client-ip.js'
export { ManualClock } from './clock.js'
export type { LimiterConfig, RuleConfig } from './config.js'
export { type Decision, Outcome, type Reason } from './decision.js'
export { AttemptDenied, type DeniedOptions, LimiterUnavailable } from './denied.js'
export {
  ConfigError,
  DoorkeepError,
  type ErrorCode,
  InvalidKeyError,
  RateLimitExceeded,
} from './errors.js'
export { FixedWindow, type FixedWindowOptions } from './fixed-window.js'
export * as http from './http.js'
export { canonicalEmail, canonicalUsername, type EmailOptions } from './identity.js'
export { IssueGuard, type IssueGuardOptions, type KeyOfClaims, keyFromClaims, type RateLimitProvider } from './issue.js'
export type { Key, Keys } from './key.js'
export { type KeyValues, keysFor } from './keys-for.js'
export type { ErrorClass } from './leaving.js'
export { Limiter, type LimiterOptions, type Ran, type RunOptions } from './limiter.js'
export { type LintOptions, lint } from './lint.js'
export { network } from './network.js'
export type { At, AtOptions, CallOptions, Clock, CommonOptions, Duration, OnError } from './options.js'
export * as presets from './presets.js'
export { Rate, Rates } from './rate.js'
export { type KeyRule, Rule, type RuleOptions, StrikeRule, type StrikeRuleOptions } from './rule.js'
export type { Stats } from './stats.js'
export { RedisStore, type RedisStoreOptions, type StoreEvent } from './store.js'
export { TokenBucket, type TokenBucketOptions } from './token-bucket.js'
