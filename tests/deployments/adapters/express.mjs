// A service of Express that counts every request by its address.
import { ClientIp, Limiter, Rule } from 'doorkeep'
import { addressLimit } from 'doorkeep/express'
import express from 'express'

const openIp = new Rule('open-ip', '5/1h', { by: ['address'] })
const clientIp = new ClientIp()

const app = express()
app.use(addressLimit({ limiter: new Limiter(), rules: [openIp], clientIp }))
app.post('/open', express.json(), (req, res) => {
  globalThis.reached(req.body.password)
  res.sendStatus(204)
})
app.listen(process.env.PORT)
