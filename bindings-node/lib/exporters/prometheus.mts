/** The exporter for `import`: a re-export, so that both kinds of module fill the same registry. */
export type * from './prometheus.js'
export { register } from './prometheus.js'
