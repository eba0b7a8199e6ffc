/** The exporter for `import`: a re-export, so that both kinds of module fill the same meter. */
export type * from './opentelemetry.js'
export { instrument } from './opentelemetry.js'
