/** P9: what the package weighs, in time to load and in bytes to download. */
import { execFileSync } from 'node:child_process'
import { readdirSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

import { installed, median, ratio, tell, turns } from './rounds.mjs'

const MEGABYTE = 1e6
const folder = fileURLToPath(installed)

/** Nanoseconds that a fresh process takes to load a module, its own start not included. */
function loading(module) {
  const clocked = `const a = process.hrtime.bigint(); require('${module}'); console.log(Number(process.hrtime.bigint() - a))`
  return Number(execFileSync(process.execPath, ['-e', clocked], { cwd: folder, encoding: 'utf8' }))
}

const [ours, theirs] = await turns([() => loading('doorkeep'), () => loading('rate-limiter-flexible')], 15)
const ms = (times) => `${(median(times) / 1e6).toFixed(1)} ms`
const beside = `${ms(ours)}, rate-limiter-flexible ${ms(theirs)}`
tell('P9', "require('doorkeep') vs require('rate-limiter-flexible')", 1, ratio(ours, theirs), beside)

const size = (path) => statSync(path).size
const weigh = (what, bytes) =>
  tell('P9', what, 4, bytes / MEGABYTE, `${bytes.toLocaleString('en')} bytes`, 'lower', 'MB')
weigh('the npm tarball', size(process.argv[2]))
const dist = `${folder}node_modules/doorkeep/bindings-node/dist/`
for (const binary of readdirSync(dist).filter((name) => name.endsWith('.node'))) weigh(binary, size(dist + binary))
