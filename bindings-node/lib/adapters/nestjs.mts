/** The adapter for `import`: a re-export, so that both kinds of module find the same attempt on a request. */
export type * from './nestjs.js'
export { addressGuard, attemptOf, CurrentAttempt, clientAddress, DoorkeepModule, Guarded, guard } from './nestjs.js'
