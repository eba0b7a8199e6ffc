/**
 * Whose address a request has: that of a client, none by nature, or one that was lost with its client.
 *
 * Knows no framework, and leaves the address to `ClientIp`. Invariant: a client that hangs up immediately is not taken
 * for one that never had an address, so no rule is left out for it and no header is believed. Tested through each
 * adapter, in `tests/node/lost-clients.test.mjs`.
 */
import { type IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { ConfigError, InvalidKeyError } from '../errors.js'
import { ClientIp } from '../identity/client-ip.js'

/** The parts of a request that an address is found in: a request of Node, of Express or of Fastify. */
export interface Addressed {
  readonly socket: { readonly remoteAddress?: string | undefined }
  readonly headers: IncomingHttpHeaders
  /** The request of Node, where Fastify wraps it. */
  readonly raw?: object
}

/** What is read of a request of Node, and of its substitutes in tests. */
interface Arrived {
  readonly httpVersionMajor?: number
  /** The header lines as they arrived, names and values alternately. */
  readonly rawHeaders?: readonly string[]
  readonly socket?: { readonly remoteAddress?: string | undefined; readonly server?: Listening } | null
}

interface Listening {
  readonly listening?: boolean
  readonly maxHeadersCount?: number | null
  address?(): unknown
}

// The addresses that were read in time: a socket has none any more once its client has gone.
const peers = new WeakMap<object, string>()

/**
 * Returns the address of the client of a request, or null when there is none by nature, as over a Unix socket. Believes
 * the proxies of `clientIp` alone, whatever the framework was configured to trust. When a request has more header lines
 * than Node keeps, 1000 unless the server has another `maxHeadersCount`, no header is believed: the peer is the client,
 * and a request without a peer, as over a Unix socket, is refused.
 *
 * @throws {@link InvalidKeyError} when the client hung up before its address was read, or when Node dropped header
 * lines and the connection has no address: answer 400.
 */
export function clientAddress(request: Addressed, clientIp: ClientIp): string | null {
  if (!(clientIp instanceof ClientIp)) throw new ConfigError('clientIp must be a ClientIp')
  const arrived = identityOf(request)
  const loss = lossOf(arrived)
  if (loss !== undefined) throw new InvalidKeyError(loss)
  return clientIp.resolve(peers.get(arrived), areCut(arrived) ? {} : request.headers)
}

/**
 * Returns the request of Node inside a framework's request: the object that all guards of one request have in common.
 */
export function identityOf(request: object): object {
  if (request instanceof IncomingMessage) return request
  return (request as { readonly raw?: object }).raw ?? request
}

/** Returns whether the address of a request of Node is lost. Remembers the address otherwise. */
export function isLost(request: object): boolean {
  return lossOf(request) !== undefined
}

// Why a request has lost its address; undefined when it has one, or none by nature.
function lossOf(request: Arrived): string | undefined {
  if (peers.has(request)) return undefined
  const { socket, httpVersionMajor = 1 } = request
  const address = socket?.remoteAddress
  if (address) {
    peers.set(request, address)
    return undefined
  }
  const server = socket?.server
  // A stream of HTTP/2 forgets its server together with its session. An injected request has neither.
  const hasPath =
    typeof server?.address === 'function' ? listensOnPath(server as Required<Listening>) : httpVersionMajor <= 1
  if (!hasPath) return 'the client hung up before its address was read'
  // Without a peer only the proxy knows whose request this is, and its line may be one of those that were dropped.
  return areCut(request)
    ? 'the request has more header lines than Node keeps, and its connection has no address'
    : undefined
}

function listensOnPath(server: Required<Listening>): boolean {
  const at = server.address()
  // A pipe that the server received as a file descriptor has no name.
  return typeof at === 'string' || (at === null && server.listening)
}

// Node drops the last lines silently. A proxy of ours may have written them, and the client those before them.
function areCut({ rawHeaders = [], socket }: Arrived): boolean {
  const kept = socket?.server?.maxHeadersCount ?? LINES_KEPT
  return kept > 0 && rawHeaders.length >= 2 * kept
}

/** How many lines Node keeps by default. */
const LINES_KEPT = 1000
