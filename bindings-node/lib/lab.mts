/** The lab for `import`: a re-export, so that native state exists once. */
export type * from './lab.js'
export { bound, bounds, simulate } from './lab.js'
