/** Programs of tests, which must end on their own. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../../', import.meta.url))

/** Runs a program to its end, its arguments from `process.argv[1]` on: returns how it ended, and what it printed. */
export function runScript(code, ...given) {
  return new Promise((resolve) => {
    const options = { cwd: root, timeout: 20_000, killSignal: 'SIGKILL' }
    execFile(process.execPath, ['-e', code, ...given.map(String)], options, (error, stdout, stderr) => {
      resolve({ status: error === null ? 0 : (error.code ?? error.signal), stdout, stderr })
    })
  })
}
