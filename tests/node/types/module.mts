/** The same names resolve for `import` in an ES module, types included. */
import { type Decision, Limiter, Rule } from 'doorkeep'
import { guard } from 'doorkeep/express'

const limiter = new Limiter()
const rule = new Rule('login', '5/1m')
const decision: Decision = limiter.decideSync(rule.key('ann'))
export const handlers = decision.allowed ? [guard({ limiter, keys: (req) => rule.ipKey(req.ip ?? '') })] : []
