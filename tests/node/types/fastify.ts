/** What the types of the Fastify adapter promise, for plain, typed and HTTP/2 applications. */
import { type Attempt, ClientIp, type Limiter, type Rule } from 'doorkeep'
import byDefault, {
  answerErrors,
  attemptOf,
  clientAddress,
  doorkeep,
  type GuardOptions,
  giveBack,
  guard,
} from 'doorkeep/fastify'
import fastify, { type FastifyRequest } from 'fastify'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const is = <A, B>(_same: Same<A, B>): void => {}

interface Login {
  Body: { email: string; password: string }
}

export async function routes(limiter: Limiter, rule: Rule): Promise<void> {
  const clientIp = new ClientIp()
  const app = fastify()
  await app.register(doorkeep, { limiter, rules: [rule], clientIp, cost: 1 })
  await app.register(byDefault, { limiter, rules: [rule] })
  app.post<Login>(
    '/login',
    {
      onRequest: guard({ limiter, keys: (request) => rule.ipKey(clientAddress(request, clientIp) ?? '') }),
      preHandler: [
        guard({ limiter, keys: async (request) => [rule.key(request.body.email)] }),
        guard({ limiter, keys: (request: FastifyRequest<Login>) => rule.key(request.body.email) }),
      ],
    },
    async (request) => {
      is<typeof request.attempt, Attempt | undefined>(true)
      is<ReturnType<typeof attemptOf>, Attempt | undefined>(true)
      await request.attempt?.success({ forgive: [rule] })
      return attemptOf(request, limiter)?.decision
    },
  )
  const options: GuardOptions = { limiter, keys: (request) => rule.key(request.body.email) }
  app.addHook('preHandler', guard(options))
  app.setErrorHandler(answerErrors())
  app.setErrorHandler(async (error, request, reply) => {
    await giveBack(error, request, reply)
    throw error
  })
  const overHttp2 = fastify({ http2: true })
  overHttp2.setErrorHandler(answerErrors())
  await overHttp2.register(doorkeep, { limiter, rules: [rule] })
  overHttp2.get('/', { preHandler: guard({ limiter, keys: () => rule.key('everybody') }) }, async () => 'in')

  // @ts-expect-error the rules are required
  await app.register(doorkeep, { limiter })
  // @ts-expect-error the keys are required
  guard({ limiter })
}
