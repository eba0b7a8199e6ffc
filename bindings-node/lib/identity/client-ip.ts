/**
 * The client behind trusted proxies: from the headers of any framework to the text of an address.
 *
 * Decides nothing. Invariant: no input from a client throws, and only the end of a long line is passed on.
 */
import { type Handle, native } from '../native/binding.js'
import { raise, unwrap } from '../native/failure.js'
import { known } from '../options/options.js'

/** The options of a {@link ClientIp}. */
export interface ClientIpOptions {
  /**
   * Addresses and networks such as `10.0.0.0/8`; by default none. A client that connects from there can claim any
   * address. `unix` trusts a peer without an address, such as the proxy at the other end of a Unix socket.
   */
  readonly trustedProxies?: readonly string[] | undefined
  /**
   * The header that they write: `x-forwarded-for` (the default), `forwarded` (RFC 7239), or any header with one
   * address, such as `cf-connecting-ip` or `x-real-ip`.
   */
  readonly header?: string | undefined
}

/** Headers of a request: those of `node:http`, of `fetch`, or pairs of names and values. Names may be in any case. */
export type RequestHeaders =
  | { readonly [name: string]: string | readonly string[] | undefined }
  | Iterable<readonly [name: string, value: string]>

const CLIENT_IP: ReadonlySet<string> = new Set(['trustedProxies', 'header'])

/**
 * Finds the address of the client behind proxies that you trust.
 *
 * Starts at the peer of the socket and walks to the left through one header: while a hop is trusted, the one before it
 * is checked. The first hop that is not trusted is the client; if all are trusted, the leftmost. A hop that is not an
 * address ends the walk at the last trusted one. Without proxies the peer is the client and headers are ignored. At
 * most 64 hops and 16 KiB of the header are read, counted from its end.
 *
 * @example
 * ```ts
 * const clientIp = new ClientIp({ trustedProxies: ['10.0.0.0/8'] })
 * const address = clientAddress(req, clientIp) // of the adapter for your framework
 * ```
 * @throws {@link ConfigError} when a proxy is neither an address nor a network, has bits set beyond its prefix, or the
 * header is not a valid name.
 */
export class ClientIp {
  /** The trusted networks, as canonical strings. */
  readonly trustedProxies: readonly string[]
  /** The name of the header, in lower case. */
  readonly header: string
  readonly #handle: Handle
  readonly #names: ReadonlySet<string>
  readonly #reach: number

  constructor(options?: ClientIpOptions) {
    const { trustedProxies, header } = known(options, CLIENT_IP)
    const made = unwrap(native.clientIp(list(trustedProxies), header))
    this.trustedProxies = Object.freeze(words(made.trustedProxies))
    this.header = made.header
    this.#handle = made.handle
    this.#names = new Set(words(made.headerNames))
    this.#reach = made.reach
  }

  /**
   * Returns the address of the client of one request as canonical text; null when the peer is not an address, as on a
   * Unix socket. For a request of Node call `clientAddress` of an adapter: the socket of a client that hung up has no
   * address either, and must not be taken for a Unix socket.
   *
   * Warns once, with `process.emitWarning`, when a forwarding header comes from a private address although no proxy is
   * trusted.
   *
   * @param peer - the address of the socket's other end, such as `req.socket.remoteAddress`
   * @throws {@link ConfigError} when the peer is neither a string nor missing, or the headers are invalid: a bug in the
   * program.
   */
  resolve(peer: string | undefined | null, headers: RequestHeaders): string | null {
    const lines = this.#lines(headers)
    const address = unwrap(native.clientIpResolve(this.#handle, peer, lines)) ?? null
    if (this.trustedProxies.length === 0 && lines.length > 0) {
      const warning = unwrap(native.clientIpWarning(this.#handle, peer, lines))
      if (warning !== undefined)
        process.emitWarning(warning, { type: 'DoorkeepWarning', code: 'DOORKEEP_UNTRUSTED_PROXY' })
    }
    return address
  }

  /** Returns the lines of the headers that the core reads, in the order in which they arrived. */
  #lines(headers: unknown): string[] {
    const lines: string[] = []
    for (const [name, value] of entries(headers)) {
      if (typeof name !== 'string' || !this.#names.has(name.toLowerCase())) continue
      if (value === undefined || value === null) continue
      for (const line of Array.isArray(value) ? value : [value]) {
        // A value of another type is not an address.
        lines.push(typeof line === 'string' ? line.slice(-this.#reach) : '')
      }
    }
    return lines
  }
}

function* entries(headers: unknown): Iterable<readonly unknown[]> {
  if (typeof headers !== 'object' || headers === null) raise(native.notHeaders())
  if (!(Symbol.iterator in headers)) {
    yield* Object.entries(headers)
    return
  }
  for (const pair of headers as Iterable<unknown>) {
    if (!Array.isArray(pair) || pair.length !== 2) raise(native.notHeaders())
    yield pair
  }
}

function list(proxies: readonly string[] | undefined): readonly string[] {
  return proxies === undefined || proxies === null
    ? []
    : Array.isArray(proxies)
      ? proxies
      : [proxies as unknown as string]
}

function words(text: string): string[] {
  return text === '' ? [] : text.split(',')
}
