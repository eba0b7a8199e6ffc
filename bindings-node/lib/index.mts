/** The same package for `import`: a re-export, so that the state of the native module exists once. */
export * from './index.js'
