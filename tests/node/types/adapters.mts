/** The same names of the adapters resolve for `import` in an ES module, types included. */
import { Limiter, Rule } from 'doorkeep'
import { DoorkeepStore } from 'doorkeep/express-rate-limit'
import { Guarded } from 'doorkeep/nestjs'
import { instrument } from 'doorkeep/opentelemetry'
import { register } from 'doorkeep/prometheus'
import { rateLimit } from 'express-rate-limit'

const limiter = new Limiter()
const rule = new Rule('login', '5/1m')
export const used = [
  rateLimit({ store: new DoorkeepStore() }),
  Guarded({ limiter, keys: (request) => rule.ipKey(request.ip ?? '') }),
  register(limiter),
  instrument(limiter),
]
