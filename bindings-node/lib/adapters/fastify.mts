/** The adapter for `import`: a re-export, so that both kinds of module find the same attempt on a request. */
export type * from './fastify.js'
export { answerErrors, attemptOf, clientAddress, doorkeep, doorkeep as default, giveBack, guard } from './fastify.js'
