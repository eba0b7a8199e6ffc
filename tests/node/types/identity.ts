/** What the types promise about clients, spellings and keys. */
import { ClientIp, canonicalEmail, canonicalUsername, type Key, keysFor, type Rule, type StrikeRule } from 'doorkeep'
import type { Request } from 'express'

/** Headers of every framework are accepted as they are, and the results fit into keys. */
export function clients(request: Request, fetched: Headers, rule: Rule | StrikeRule): Key[] {
  const clientIp = new ClientIp({ trustedProxies: ['10.0.0.0/8'], header: 'forwarded' })
  const address: string | null = clientIp.resolve(request.socket.remoteAddress, request.headers)
  clientIp.resolve(null, fetched)
  clientIp.resolve(undefined, [['forwarded', 'for=203.0.113.9']])
  // @ts-expect-error a list of names and values alternately has no pairs
  clientIp.resolve(null, request.rawHeaders)
  // @ts-expect-error the trusted proxies are fixed once it is made
  clientIp.header = 'x-real-ip'
  // @ts-expect-error the option has another name
  canonicalUsername('ann', { dropTags: true })
  return keysFor([rule], { address, account: canonicalEmail('Ann@example.com', { dropTags: true }) })
}
