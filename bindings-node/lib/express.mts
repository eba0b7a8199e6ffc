/** The same adapter for `import`: a re-export, so that both kinds of module find the same attempt on a request. */
export type * from './express.js'
export { addressLimit, attemptOf, clientAddress, guard } from './express.js'
