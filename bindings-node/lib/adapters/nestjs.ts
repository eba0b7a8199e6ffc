/**
 * Guards for NestJS 11 and 12, over Express and over Fastify: count an attempt before pipes and handler run.
 *
 * Does no arithmetic, reads no clock and opens no connection. Invariant: the bytes of an answer depend on the decision
 * alone, never on whether the account exists. Nest wraps a handler, so `giveBackOn` is applied as in `run`. Tested in
 * `tests/node/nestjs.test.mjs` and, with the guards of all frameworks, in `tests/node/guards.test.mjs`.
 */
import type { IncomingMessage } from 'node:http'
import {
  applyDecorators,
  type CallHandler,
  type CanActivate,
  createParamDecorator,
  type DynamicModule,
  type ExecutionContext,
  HttpException,
  Inject,
  Injectable,
  Module,
  type NestInterceptor,
  Optional,
  type Type,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common'
import { catchError, type Observable } from 'rxjs'
import { ConfigError } from '../errors.js'
import { answerTo, type GuardAnswer } from '../guards/answers.js'
import { identityOf } from '../guards/client-address.js'
import { counting, countingAddresses, type GuardResult } from '../guards/counting.js'
import {
  ADDRESSES,
  type AddressOptions,
  checkAddresses,
  checkKeys,
  checkLimiter,
  GUARD,
  type GuardOptions,
} from '../guards/options.js'
import { attemptOf as attemptIn, giveBackFor } from '../guards/requests.js'
import type { Attempt } from '../limiters/attempt.js'
import { Limiter } from '../limiters/limiter.js'
import { known } from '../options/options.js'

export { clientAddress } from '../guards/client-address.js'

/**
 * The request that a guard passes to `keys`, unless its type says otherwise: what Express and Fastify have in common.
 */
export interface GuardedRequest {
  readonly headers: IncomingMessage['headers']
  readonly socket: { readonly remoteAddress?: string | undefined }
  /** The address of the client, according to `trust proxy` of Express or `trustProxy` of Fastify. */
  readonly ip?: string
  /** The latest guard's attempt for this request, to be settled by the handler. */
  attempt?: Attempt
  /** What a parser made of the body, before any pipe. */
  // biome-ignore lint/suspicious/noExplicitAny: what it is depends on the parser
  body?: any
}

/** The options of {@link guard} and {@link Guarded}. */
export interface GuardedOptions<Request = GuardedRequest> extends Omit<GuardOptions<Request>, 'limiter'> {
  /** Decides; by default the limiter of {@link DoorkeepModule}. Guards of one limiter share one attempt per request. */
  readonly limiter?: Limiter | undefined
}

/** The options of {@link addressGuard}. */
export interface AddressGuardOptions extends Omit<AddressOptions, 'limiter'> {
  /** Decides; by default the limiter of {@link DoorkeepModule}. Guards of one limiter share one attempt per request. */
  readonly limiter?: Limiter | undefined
}

const MODULE: ReadonlySet<string> = new Set(['limiter'])

type Count = (request: GuardedRequest, identity: object) => Promise<GuardResult>

/**
 * Provides the limiter of guards that name none. Providing {@link Limiter} yourself, for example with a factory, has
 * the same effect.
 */
// biome-ignore lint/complexity/noStaticOnlyClass: to Nest a module is a class
export class DoorkeepModule {
  /**
   * Makes `limiter` the {@link Limiter} that is injected in all modules. The application owns it: nothing here closes
   * it.
   */
  static forRoot(options: { readonly limiter: Limiter }): DynamicModule {
    const { limiter } = known(options, MODULE)
    checkLimiter(limiter)
    const provider = { provide: Limiter, useValue: limiter }
    return { module: DoorkeepModule, global: true, providers: [provider], exports: [Limiter] }
  }
  static {
    Module({})(DoorkeepModule)
  }
}

/**
 * Counts an attempt under the keys of a request before the handler of a route, or the handlers of a controller, and
 * puts it on `request.attempt`, where {@link CurrentAttempt} finds it for the handler to settle.
 *
 * A denial is an `HttpException` of 429 with Retry-After (left out when the wait never ends). A closed limiter whose
 * store is unavailable is 503 with Retry-After: 1, an invalid key 400. Any other error of `keys` reaches the exception
 * filters.
 *
 * The attempt stays counted unless the handler settles it, whatever a pipe or the handler answers or throws. Only an
 * error that `giveBackOn` names gives it back, except what was counted on an address alone, and not when the client has
 * gone or has its answer. An {@link InvalidKeyError}, a {@link RateLimitExceeded} and an {@link AttemptDenied} become
 * the `HttpException` of a denial.
 *
 * Nest applies decorators from the bottom up: put it below a `@UseGuards(...)` that checks a password, or put
 * {@link guard} before that guard.
 *
 * @example
 * ```ts
 * @Post('login')
 * @Guarded({ keys: (request) => [loginIp.ipKey(request.ip), accountIp.key(request.body.email, network(request.ip))] })
 * async login(@Body() form: Login, @CurrentAttempt() attempt: Attempt) {
 *   if (!(await verify(form))) throw new UnauthorizedException()
 *   await attempt.success({ forgive: [accountIp] })
 * }
 * ```
 * @throws {@link ConfigError} when the function for the keys is missing, or an option is unknown.
 */
export function Guarded<Request = GuardedRequest>(options: GuardedOptions<Request>): MethodDecorator & ClassDecorator {
  const Guarding = guard(options)
  return applyDecorators(UseGuards(Guarding), UseInterceptors(Guarding))
}

/**
 * Makes the class that {@link Guarded} uses, for `UseGuards` where the order of guards matters. An error of a later
 * guard leaves the attempt counted. As an interceptor it also applies `giveBackOn` to what runs after all guards.
 *
 * @example
 * ```ts
 * @UseGuards(guard({ keys: loginKeys }), AuthGuard('local'))
 * ```
 * @throws {@link ConfigError} when the function for the keys is missing, or an option is unknown.
 */
export function guard<Request = GuardedRequest>(options: GuardedOptions<Request>): Type<CanActivate & NestInterceptor> {
  const { limiter: own, ...rest } = known(options, GUARD)
  // When the route is declared, rather than when the application has made its limiter.
  if (own) checkLimiter(own)
  checkKeys(rest)

  class Guarding implements CanActivate, NestInterceptor {
    readonly #limiter: Limiter
    readonly #count: Count

    constructor(injected?: Limiter) {
      this.#limiter = oneOf(own, injected)
      // The request is the application's, and so is its type.
      this.#count = counting({ ...rest, limiter: this.#limiter }) as unknown as Count
    }

    async canActivate(context: ExecutionContext): Promise<boolean> {
      await admit(context, this.#count)
      return true
    }

    intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
      const response = responseOf(context)
      const settled = async (error: unknown): Promise<never> => {
        // An inner guard of the same route has already handled its own answer.
        if (refusals.has(error as object)) throw error
        await giveBackFor(error, identityOf(requestOf(context)), response.raw ?? response, this.#limiter)
        const answer = answerTo(error)
        throw answer ? refusal(response, answer, error) : error
      }
      return next.handle().pipe(catchError(settled))
    }
  }
  return injectable(Guarding)
}

/**
 * Makes a guard that counts every request under rules on addresses: for controllers, or for all as an `APP_GUARD`. The
 * guards of routes continue the same attempt. A request that has no address by nature, as over a Unix socket, is let
 * through, with a warning each time; a client that hung up before its address was read is answered with 400. Denials
 * are answered as by {@link Guarded}.
 *
 * @example
 * ```ts
 * providers: [{ provide: APP_GUARD, useClass: addressGuard({ rules: [loginIp], clientIp: new ClientIp() }) }]
 * ```
 * @throws {@link ConfigError} when a rule is not `by` the address alone, or an option is unknown.
 */
export function addressGuard(options: AddressGuardOptions): Type<CanActivate> {
  const { limiter: own, ...rest } = known(options, ADDRESSES)
  if (own) checkLimiter(own)
  checkAddresses(rest)

  class Guarding implements CanActivate {
    readonly #count: Count

    constructor(injected?: Limiter) {
      this.#count = countingAddresses({ ...rest, limiter: oneOf(own, injected) })
    }

    async canActivate(context: ExecutionContext): Promise<boolean> {
      await admit(context, this.#count)
      return true
    }
  }
  return injectable(Guarding)
}

/**
 * Injects the attempt of the request as a parameter of the handler: that of the latest guard, or of a given limiter.
 *
 * @example
 * ```ts
 * async login(@Body() form: Login, @CurrentAttempt() attempt: Attempt) {}
 * ```
 */
export const CurrentAttempt: (limiter?: Limiter) => ParameterDecorator = createParamDecorator(
  (limiter: Limiter | undefined, context: ExecutionContext): Attempt | undefined => {
    const request = requestOf(context)
    return limiter ? attemptOf(request, limiter) : request.attempt
  },
)

/**
 * Returns the attempt that a guard of this limiter counted for the request, where there is no parameter to decorate.
 */
export function attemptOf(request: object, limiter: Limiter): Attempt | undefined {
  return attemptIn(identityOf(request), limiter)
}

async function admit(context: ExecutionContext, count: Count): Promise<void> {
  const request = requestOf(context)
  const { attempt, ...answer } = await count(request, identityOf(request))
  if (attempt) request.attempt = attempt
  const refused = refusal(responseOf(context), answer)
  if (refused) throw refused
}

interface NestResponse {
  /** The response of Node, where Fastify wraps it. */
  readonly raw?: { readonly headersSent: boolean }
  readonly headersSent: boolean
  header(name: string, value: string): unknown
}

/** Sets the header fields of an answer. Returns the exception to throw, if any. */
function refusal(response: NestResponse, { headers, denial }: GuardAnswer, cause?: unknown): HttpException | undefined {
  // An answer may have begun meanwhile, such as that of a middleware that times requests out.
  const isOpen = !(response.raw ?? response).headersSent
  if (isOpen) for (const [name, value] of Object.entries(headers)) response.header(name, value)
  if (!denial) return undefined
  const { status, body } = denial
  // A second copy of Nest, as when a module is both imported and required, knows the other's exceptions by this shape
  // alone.
  const shape = { statusCode: status, expose: true, message: body.error }
  const refused = Object.assign(new HttpException(body, status, { cause }), shape)
  refusals.add(refused)
  return refused
}

/** The exceptions that guards have thrown for a denial. */
const refusals = new WeakSet<object>()

function responseOf(context: ExecutionContext): NestResponse {
  return context.switchToHttp().getResponse()
}

function requestOf(context: ExecutionContext): GuardedRequest {
  if (context.getType() !== 'http') throw new ConfigError('a guard must stand before a route of HTTP')
  return context.switchToHttp().getRequest()
}

function oneOf(own: Limiter | undefined, injected: Limiter | undefined): Limiter {
  const limiter = own ?? injected
  if (!limiter) throw new ConfigError('a guard needs a limiter: its own, or that of DoorkeepModule.forRoot')
  return limiter
}

/** Does what decorators would do, without a compiler that writes the types of parameters into the code. */
function injectable<T extends Type>(guard: T): T {
  Injectable()(guard)
  Optional()(guard, undefined, 0)
  Inject(Limiter)(guard, undefined, 0)
  return guard
}
