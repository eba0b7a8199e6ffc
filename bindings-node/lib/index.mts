/** The same package for `import`: a re-export, so that the state of the native module exists once. */
export type * from './index.js'
export {
  AttemptDenied,
  AttemptLimiter,
  ConfigError,
  DoorkeepError,
  FixedWindow,
  InvalidKeyError,
  Limiter,
  LimiterUnavailable,
  ManualClock,
  network,
  Outcome,
  Rate,
  RateLimitExceeded,
  Rates,
  RedisStore,
  Rule,
  StrikeRule,
  TokenBucket,
} from './index.js'
