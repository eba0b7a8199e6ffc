/** The adapter for `import`: a re-export, so that both kinds of module have the same class. */
export type * from './express-rate-limit.js'
export { DoorkeepStore } from './express-rate-limit.js'
