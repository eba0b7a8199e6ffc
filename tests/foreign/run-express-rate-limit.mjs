/**
 * Runs express-rate-limit's own tests of its memory store and of its middleware with a DoorkeepStore in the place of its
 * MemoryStore, and fails when anything but the differences below fails. README.md here says how.
 *
 * Nothing of express-rate-limit is kept here: its copy is read where it was unpacked, and worked on in a temporary folder.
 */
import { spawnSync } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const VARIABLE = 'DOORKEEP_FOREIGN_EXPRESS_RATE_LIMIT'
const STORE = fileURLToPath(new URL('../../bindings-node/dist/adapters/express-rate-limit.js', import.meta.url))

/** Tests that must fail, as a part of their names, and why. */
const DIFFERENCES = [
  // Of the way in which the other store is made.
  ['clears the timer when', 'there is no timer'],
  ['automatically clear previously set intervals', 'there is no timer'],
  ['move clients from previous to current', 'there are no two generations of clients'],
  // Of what is promised.
  ['does not decrement the key below 0', 'a client that everything was given back to is forgotten, not kept at 0'],
  ['resetKey should remove the key', 'nothing is counted before the limit is known'],
  ['can run in electron', 'a window of -1 ms is refused'],
  ['allow max to be a function', 'a limit that is a function is refused'],
  ['calculate the remaining hits', 'a limit that is a function is refused'],
]

/** Limits are known to the middleware alone, so tests of the store give none; fake timers are seen through the clock. */
const SHIM = `
  const { DoorkeepStore } = require(${JSON.stringify(STORE)})
  export class MemoryStore extends DoorkeepStore {
    constructor() { super({ clock: () => Date.now() }) }
    init(options: any) { super.init({ limit: 1000, ...options }) }
  }
  export default MemoryStore
`

const CONFIG = {
  testEnvironment: 'node',
  testTimeout: 30_000,
  testMatch: ['**/memory-store-test.ts', '**/middleware-test.ts'],
  transform: {
    '^.+\\.ts$': [
      'ts-jest',
      { diagnostics: false, tsconfig: { target: 'es2022', module: 'commonjs', esModuleInterop: true } },
    ],
  },
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
}

const given = process.env[VARIABLE]
if (!given) {
  console.log(`skipped: ${VARIABLE} names no unpacked copy of express-rate-limit`)
  process.exit(0)
}

const folder = await mkdtemp(join(tmpdir(), 'doorkeep-foreign-'))
try {
  process.exitCode = report(await run(resolve(given), folder))
} finally {
  await rm(folder, { recursive: true, force: true })
}

async function run(copy, folder) {
  for (const part of ['source', 'test/library']) await cp(join(copy, part), join(folder, part), { recursive: true })
  await symlink(join(copy, 'node_modules'), join(folder, 'node_modules'))
  await writeFile(join(folder, 'source/memory-store.ts'), SHIM)
  await writeFile(join(folder, 'package.json'), JSON.stringify({ type: 'commonjs', jest: CONFIG }))
  const jest = join(folder, 'node_modules/jest/bin/jest.js')
  const results = join(folder, 'results.json')
  const words = [jest, '--ci', '--silent', '--json', '--outputFile', results]
  const { status, stderr } = spawnSync(process.execPath, words, { cwd: folder, encoding: 'utf8' })
  const text = await readFile(results, 'utf8').catch(() => {
    throw new Error(`jest did not run, status=${status}: ${stderr}`)
  })
  return JSON.parse(text).testResults
}

/** The exit code: 0 when exactly the known differences failed. */
function report(files) {
  const tests = files.flatMap(({ assertionResults }) => assertionResults)
  const failed = tests.filter(({ status }) => status !== 'passed')
  const why = ({ title }) => DIFFERENCES.find(([part]) => title.includes(part))?.[1]
  const unknown = failed.filter((test) => why(test) === undefined)
  const stale = DIFFERENCES.filter(([part]) => !failed.some(({ title }) => title.includes(part)))
  const broken = files.filter(({ assertionResults }) => assertionResults.length === 0)

  console.log(`${tests.length - failed.length} of ${tests.length} tests of express-rate-limit passed`)
  for (const test of failed) console.log(`  differs: ${test.title}: ${why(test) ?? 'UNKNOWN'}`)
  for (const { failureMessages } of unknown) console.log(failureMessages.join('\n'))
  for (const [part] of stale) console.log(`  passed, though it must differ: ${part}`)
  for (const { name, message } of broken) console.log(`  did not run: ${name}\n${message}`)
  return unknown.length + stale.length + broken.length === 0 && files.length === 2 ? 0 : 1
}
