// A service of Fastify that counts every request by its address.
import { ClientIp, Limiter, Rule } from 'doorkeep'
import { doorkeep } from 'doorkeep/fastify'
import fastify from 'fastify'

const openIp = new Rule('open-ip', '5/1h', { by: ['address'] })
const clientIp = new ClientIp()

const app = fastify()
await app.register(doorkeep, { limiter: new Limiter(), rules: [openIp], clientIp })
app.post('/open', async (request, reply) => {
  globalThis.reached(request.body.password)
  return reply.code(204).send()
})
await app.listen({ port: Number(process.env.PORT), host: '127.0.0.1' })
