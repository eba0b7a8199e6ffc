/** The same adapter for `import`: a re-export, so that both kinds of module find the same attempt on a request. */
export type * from './fastify.js'
export { attemptOf, clientAddress, doorkeep, doorkeep as default, guard } from './fastify.js'
