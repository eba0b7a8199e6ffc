/**
 * Ready rules, each with the claim that it keeps and the source of the claim.
 *
 * To give one a secret, make your own from it: `new Rule(p.name, p.rates, { secret, by: p.by })`.
 *
 * No preset claims NIST SP 800-63B's "no more than 100 consecutive failures": that count never expires, and every state
 * here has an end. The numbers come from the core. Invariant: they never change under a preset's name.
 */
import { native } from '../native/binding.js'
import { unwrap } from '../native/failure.js'
import { Rule, StrikeRule } from './rule.js'

/**
 * Logins by address: `20/1m,200/1h,1000/1d`; at most 39 in a minute, 399 in an hour, 1,999 in a day.
 *
 * Short windows against bursts and long ones against patience, as the OWASP Authentication Cheat Sheet recommends.
 */
export const loginIp = rates('login-ip')

/**
 * Logins by the wider network of the address, an IPv6 /48: `100/1m,1000/1h,5000/1d`, five times {@link loginIp}, for
 * use with it in one call: the owner of a /48 has 65,536 networks of /64, and each counts there as a separate client.
 * At most 199 in a minute, 1,999 in an hour, 9,999 in a day.
 */
export const loginNetwork = rates('login-network')

/**
 * Logins by account and address: `5/1m,20/1h,40/1d`; at most 9 in a minute, 39 in an hour, 79 in a day.
 *
 * Never use it alone: an attacker with many addresses has a fresh budget for each of them.
 */
export const loginAccountIp = rates('login-account-ip')

/**
 * Logins by account: `20/1h,50/1d`; at most 20 in a minute, 39 in an hour, 99 in a day.
 *
 * OWASP ASVS 4.0.3, V2.2.1: at most 100 failed attempts an hour on one account.
 */
export const loginAccount = rates('login-account')

/**
 * Logins by account, the loosest that keeps ASVS: `50/1h`; at most 99 in an hour, 1,249 in a day.
 *
 * OWASP ASVS 4.0.3, V2.2.1. `100/1h` does not keep it: 199 pass in the first hour.
 */
export const loginAccountAsvs = rates('login-account-asvs')

/** Logins by account, for accounts worth the effort: `10/1h,20/1d,60/30d`; at most 19 in an hour, 39 in a day. */
export const loginAccountStrict = rates('login-account-strict')

/**
 * Strikes by account: 10, then 30 minutes; at most 480 in a day.
 *
 * PCI DSS 4.0, 8.3.4: lock out after not more than 10 attempts, for at least 30 minutes. Anyone can cause the lockout:
 * put a rule on the client before it.
 */
export const pciDss4 = strikes('pci-dss-4')

/**
 * Logins by account: `5/5m`; at most 9 in five minutes, 64 in an hour, 1,444 in a day.
 *
 * Cyber Essentials: no more than 10 guesses in 5 minutes.
 */
export const cyberEssentials = rates('cyber-essentials')

/**
 * Strikes by account: 5, then 15 minutes; at most 20 in an hour, 480 in a day.
 *
 * CIS Microsoft Windows benchmarks: lock out after 5 or fewer attempts, for 15 minutes or more.
 */
export const cisWindows = strikes('cis-windows')

/** Strikes by account: 5, then 15 minutes, the defaults of HashiCorp Vault's user lockout. */
export const vault = strikes('vault')

/**
 * Strikes by account: 3, then 15 minutes; at most 12 in an hour, 288 in a day.
 *
 * DISA STIG: lock out after 3 failed attempts within 15 minutes.
 */
export const stig = strikes('stig')

/** Checks of one-time passwords by account: `5/10m,10/1h,20/1d`; at most 19 in an hour, 39 in a day. */
export const otpVerify = rates('otp-verify')

/** One-time passwords sent to one email address: `1/1m,5/1h,10/1d`; at most 9 in an hour, 19 in a day. */
export const otpSend = rates('otp-send')

/** Links that reset a password, sent to one email address: `1/1m,5/1h,10/1d`. */
export const resetSend = rates('reset-send')

/** One-time passwords requested or checked by one address: `10/1m,50/1h`; at most 19 in a minute, 99 in an hour. */
export const otpIp = rates('otp-ip')

/** Password resets requested by one address: `10/1m,50/1h`. */
export const resetIp = rates('reset-ip')

/** Tokens issued to one subject: `100/1m`, as a {@link TokenBucket} by default. */
export const tokenIssue = rates('token-issue')

function rates(name: string): Rule {
  const { rates, ipv6Prefix, by } = unwrap(native.preset(name))
  return new Rule(name, rates, { ipv6Prefix, by: [...by] })
}

function strikes(name: string): StrikeRule {
  const { threshold, lockoutWindowMicros, by } = unwrap(native.preset(name))
  return new StrikeRule(name, { threshold, lockoutWindow: lockoutWindowMicros / 1000, by: [...by] })
}
