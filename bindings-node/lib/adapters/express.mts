/** The adapter for `import`: a re-export, so that both kinds of module find the same attempt on a request. */
export type * from './express.js'
export { addressLimit, answerErrors, attemptOf, clientAddress, giveBack, guard } from './express.js'
