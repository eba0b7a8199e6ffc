/** The packed tarball as a user gets it: installed into an empty project with no compiler and no registry. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../../', import.meta.url))
const tool = (name) => join(root, 'node_modules', '.bin', name)

const LOGIN = `
  const strikes = new AttemptLimiter({ threshold: 5, lockoutWindow: '15m' })
  const outcomes = Array.from({ length: 7 }, () => strikes.attemptSync('ann'))
  console.log(JSON.stringify([outcomes, typeof guard, typeof doorkeep]))
`
const SAID = '[[1,1,1,1,2,0,0],"function","function"]\n'

describe('the tarball', () => {
  let folder
  let tarball
  let project

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'doorkeep-'))
    const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', folder], { cwd: root })
    tarball = join(folder, JSON.parse(stdout)[0].filename)
    project = join(folder, 'project')
    await mkdir(project)
    await writeFile(join(project, 'package.json'), '{ "name": "empty", "private": true }')
    await run('npm', ['install', '--offline', '--no-audit', '--no-fund', tarball], { cwd: project })
  })
  after(() => rm(folder, { recursive: true, force: true }))

  const node = (name, code) =>
    writeFile(join(project, name), code).then(() => run(process.execPath, [name], { cwd: project }))
  const installed = (...path) => join(project, 'node_modules', 'doorkeep', ...path)

  it('works from require', async () => {
    const code = `const { AttemptLimiter } = require('doorkeep'); const { guard } = require('doorkeep/express'); const { doorkeep } = require('doorkeep/fastify'); ${LOGIN}`
    assert.equal((await node('login.cjs', code)).stdout, SAID)
  })

  it('works from import', async () => {
    const code = `import { AttemptLimiter } from 'doorkeep'; import { guard } from 'doorkeep/express'; import { doorkeep } from 'doorkeep/fastify'; ${LOGIN}`
    assert.equal((await node('login.mjs', code)).stdout, SAID)
  })

  it('has no dependencies and is small', async () => {
    assert.deepEqual(
      (await readdir(join(project, 'node_modules'))).filter((name) => !name.startsWith('.')),
      ['doorkeep'],
    )
    assert.ok((await stat(tarball)).size < 4_000_000)
    const { dependencies, scripts } = JSON.parse(await readFile(installed('package.json'), 'utf8'))
    assert.equal(dependencies, undefined)
    assert.equal(scripts.install ?? scripts.postinstall, undefined)
  })

  it('contains its licence, and those of what is compiled into it', async () => {
    assert.match(await readFile(installed('LICENSE'), 'utf8'), /^MIT License/)
    assert.match(await readFile(installed('THIRD-PARTY-NOTICES'), 'utf8'), /\bnapi \d/)
  })

  it('lets a process with limiters and unsettled attempts end on its own', async () => {
    const code = `const { Limiter, StrikeRule } = require('doorkeep'); const limiter = new Limiter()
      const rule = new StrikeRule('login', { threshold: 5, lockoutWindow: '15m' })
      for (let n = 0; n < 1000; n += 1) limiter.attempt(rule.key('user' + n))`
    assert.deepEqual(await node('exit.cjs', code), { stdout: '', stderr: '' })
  })

  it('has types for both kinds of module, without the types of Node or Express for the limiters', async () => {
    const source = `import { Limiter, Rule, type Decision } from 'doorkeep'
      export const decision: Decision = new Limiter().decideSync(new Rule('login', '5/1m').key('ann'))`
    await writeFile(join(project, 'types.mts'), source)
    await writeFile(join(project, 'types.cts'), source)
    const flags = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2023']
    await run(tool('tsc'), [...flags, 'types.mts', 'types.cts'], { cwd: project })
  })

  for (const version of ['fastify5_0', 'fastify']) {
    it(`has types that hold for the oldest and the newest Fastify: ${version}`, async () => {
      const source = `import { Limiter, Rule } from 'doorkeep'
        import { doorkeep, guard } from 'doorkeep/fastify'
        import fastify from 'fastify'
        const [limiter, rule] = [new Limiter(), new Rule('login-ip', '5/1m', { by: ['address'] })]
        const app = fastify()
        app.register(doorkeep, { limiter, rules: [rule] })
        app.post<{ Body: { email: string } }>(
          '/login',
          { preHandler: guard({ limiter, keys: (request) => rule.key(request.body.email) }) },
          async (request) => request.attempt?.success(),
        )`
      const link = join(project, 'node_modules', 'fastify')
      await symlink(join(root, 'node_modules', version), link)
      try {
        await writeFile(join(project, 'fastify.mts'), source)
        const types = ['--types', 'node', '--typeRoots', join(root, 'node_modules', '@types')]
        const flags = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2023', ...types]
        await run(tool('tsc'), [...flags, 'fastify.mts'], { cwd: project })
      } finally {
        await rm(link)
      }
    })
  }

  it('has adapters that load with their frameworks, from both kinds of module', async () => {
    const adapted = ['@nestjs', '@opentelemetry', 'express-rate-limit', 'prom-client', 'rxjs']
    const links = adapted.map((name) => join(project, 'node_modules', name))
    await Promise.all(links.map((link, index) => symlink(join(root, 'node_modules', adapted[index]), link)))
    try {
      const paths = ['express-rate-limit', 'nestjs', 'prometheus', 'opentelemetry']
      const names = paths.map((path) => `'doorkeep/${path}'`)
      const required = names.map((name) => `require(${name})`)
      assert.deepEqual(await node('adapters.cjs', required.join('\n')), { stdout: '', stderr: '' })
      const imported = names.map((name) => `import ${name}`)
      assert.deepEqual(await node('adapters.mjs', imported.join('\n')), { stdout: '', stderr: '' })
    } finally {
      await Promise.all(links.map((link) => rm(link)))
    }
  })

  it('passes publint, and its types resolve in every mode of this decade', async () => {
    await run(tool('publint'), ['run', tarball, '--strict'])
    await run(tool('attw'), [tarball, '--no-definitely-typed', '--profile', 'node16', '--format', 'ascii'])
  })

  it('reports clearly that the native module and the package differ', async () => {
    const manifest = installed('package.json')
    const original = await readFile(manifest, 'utf8')
    await writeFile(manifest, JSON.stringify({ ...JSON.parse(original), version: '9.9.9' }))
    try {
      await assert.rejects(
        node('version.cjs', `require('doorkeep')`),
        /doorkeep 9\.9\.9 found the native module of version/,
      )
    } finally {
      await writeFile(manifest, original)
    }
  })

  it('reports clearly that there is no native module for the machine', async () => {
    const dist = installed('bindings-node', 'dist')
    const binaries = (await readdir(dist)).filter((name) => name.endsWith('.node'))
    assert.ok(binaries.length > 0)
    for (const name of binaries) {
      await copyFile(join(dist, name), join(folder, name))
      await rm(join(dist, name))
    }
    try {
      await assert.rejects(node('missing.cjs', `require('doorkeep')`), /doorkeep has no native module that loads on/)
    } finally {
      for (const name of binaries) await copyFile(join(folder, name), join(dist, name))
    }
  })
})
