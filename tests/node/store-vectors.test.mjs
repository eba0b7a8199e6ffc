/** Every vector over real servers, to the microsecond, except those that need a bounded table. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { RedisStore } from 'doorkeep'
import { cases, LIMITER_FILES } from './support/corpus.mjs'
import { ENGINES, launch } from './support/redis.mjs'
import { isRoomy, runCase } from './support/steps.mjs'

const all = LIMITER_FILES.flatMap(cases).filter(isRoomy)

it('the corpus was found', () => assert.ok(all.length > 200, `${all.length} cases`))

for (const engine of Object.keys(ENGINES)) {
  describe(engine, () => {
    let server
    before(async () => {
      server = await launch(engine)
    })
    after(() => server.stop())

    for (const [index, described] of all.entries()) {
      it(described.name, async () => {
        // Each has its own prefix, so that cases cannot see each other's keys.
        const run = async (prefix, mode) => {
          const store = new RedisStore(server.url, { prefix: `${prefix}-${index}`, timeout: '5s', onError: 'closed' })
          await runCase(described, { sync: false, store, ...mode })
          await store.close()
        }
        await run('whole')
        if (described.limiter.kind === 'attempt_limiter') await run('outcome', { outcomeAlone: true })
      })
    }
  })
}
