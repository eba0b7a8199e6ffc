/**
 * What the types of the adapters promise, checked by the compiler alone, together with the types of their frameworks.
 */
import { type CanActivate, type NestInterceptor, type Type, UseGuards } from '@nestjs/common'
import { metrics } from '@opentelemetry/api'
import { ClientIp, Limiter, Rule, TokenBucket } from 'doorkeep'
import { DoorkeepStore } from 'doorkeep/express-rate-limit'
import { addressGuard, CurrentAttempt, DoorkeepModule, Guarded, guard } from 'doorkeep/nestjs'
import { instrument } from 'doorkeep/opentelemetry'
import { register } from 'doorkeep/prometheus'
import { rateLimit, type Store } from 'express-rate-limit'
import type { FastifyRequest } from 'fastify'
import { type OpenMetricsContentType, Registry } from 'prom-client'

const limiter = new Limiter()
const rule = new Rule('login', '5/1m', { by: ['address'] })

export const store: Store = new DoorkeepStore({ capacity: 1000 })
export const limited = rateLimit({ limit: 5, store: new DoorkeepStore() })
// @ts-expect-error the limit is an option of rateLimit
new DoorkeepStore({ limit: 5 })

export const decorators: (MethodDecorator & ClassDecorator)[] = [
  Guarded({ keys: (request) => rule.ipKey(request.ip ?? '') }),
  Guarded({ limiter, keys: async (request: FastifyRequest) => [rule.ipKey(request.ip)], giveBackOn: RangeError }),
  // @ts-expect-error the keys are required
  Guarded({ limiter }),
  // @ts-expect-error a key is made by a rule
  Guarded({ keys: () => 'ann' }),
  UseGuards(guard({ keys: (request) => rule.key(request.body.email), cost: 2, giveBackOn: [RangeError] })),
]
export const parameters: ParameterDecorator[] = [CurrentAttempt(), CurrentAttempt(limiter)]
export const guards: Type<CanActivate>[] = [addressGuard({ rules: [rule], clientIp: new ClientIp() })]
export const interceptor: Type<NestInterceptor> = guard({ keys: () => rule.key('a') })
DoorkeepModule.forRoot({ limiter })
// @ts-expect-error a module without a limiter provides nothing
DoorkeepModule.forRoot({})

register(limiter)
register(new TokenBucket(), { registry: new Registry(), name: 'tokens' })
register(limiter, { registry: new Registry<OpenMetricsContentType>() })
// @ts-expect-error a rule has no counters
register(rule)
instrument(limiter, { meter: metrics.getMeter('login'), name: 'login' })
// @ts-expect-error not a meter
instrument(limiter, { meter: new Registry() })
