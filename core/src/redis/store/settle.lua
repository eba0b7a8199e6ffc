-- settle.lua   Takes back what calls counted, and forgets keys.
-- KEYS   one per act
-- ARGV   now in us or '' for the server's time, least TTL in ms, id of the settling (8 bytes),
--        then one packed act per key: kind byte, then big-endian doubles
--          f  forget the key
--          c  window, id (8 bytes)      cancel one attempt; only the engager lifts the lockout
--          r  window                    take back the oldest attempt of a key that is still counting
--          g  rates, then q, cost in whole us, cost in parts of q, taken at, value before (whole or -1, part),
--             born (8 bytes), serial (8 bytes)   for each rate: give back one charge
-- Replies {now, then 0 nothing | 1 done or given back | 2 lifted for each act}.
-- Never mends, and changes nothing that is not a sound state.
local pack, unpack_at = struct.pack, struct.unpack
-- The longest state, of 1024 strikes. A byte more is read, which no state has: a huge value at one of our keys is
-- neither copied nor sent.
local LONGEST = '8202'

local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000000 + tonumber(time[2])
end
local least_ttl, id = tonumber(ARGV[2]), ARGV[3]

local function write(key, value, ends)
  local ttl = math.ceil((ends - now) / 1000) + 1
  redis.call('SET', key, value, 'PX', string.format('%.0f', math.max(ttl, least_ttl)))
end

-- The strikes of a key, if they stand: locked, last, ids.
local function strikes(raw, window)
  if #raw < 10 or raw:byte(1) ~= 1 or (#raw - 10) % 8 ~= 0 then
    return
  end
  local locked, last = raw:byte(2), unpack_at('>d', raw, 3)
  if now < last + window then
    return locked, last, raw:sub(11)
  end
end

local function keep(key, locked, last, ids, window)
  if ids == '' then
    redis.call('DEL', key)
  else
    write(key, '\1' .. string.char(locked) .. pack('>d', last) .. ids, last + window)
  end
end

local acts = {}

function acts.f(key)
  redis.call('DEL', key)
  return 1
end

function acts.c(key, act, raw)
  local window, attempt = unpack_at('>dc8', act, 2)
  local locked, last, ids = strikes(raw, window)
  local at = locked and ids:find(attempt, 1, true)
  while at and at % 8 ~= 1 do
    at = ids:find(attempt, at + 1, true)
  end
  if not at then
    return 0
  end
  -- While locked the last id is the engager: nothing is counted on a locked key.
  local lifts = locked == 1 and at == #ids - 7
  keep(key, lifts and 0 or locked, last, ids:sub(1, at - 1) .. ids:sub(at + 8), window)
  return lifts and 2 or 1
end

function acts.r(key, act, raw)
  local window = unpack_at('>d', act, 2)
  local locked, last, ids = strikes(raw, window)
  if locked ~= 0 then
    return 0
  end
  keep(key, 0, last, ids:sub(9), window)
  return 1
end

function acts.g(key, act, raw)
  local rates = unpack_at('>d', act, 2)
  if #raw ~= 1 + 28 * rates or raw:byte(1) ~= 1 then
    return 0
  end
  local given, is_empty, stands, parts = 0, true, now, { '\1' }
  for rate = 1, rates do
    local q, cost, cost_part, taken_at, before, before_part, charge_born, charge_serial =
      unpack_at('>ddddddc8c8', act, 10 + 64 * (rate - 1))
    local whole, part, born, serial = unpack_at('>dI4c8c8', raw, 2 + 28 * (rate - 1))
    local is_past = whole < now or (whole == now and part == 0)
    if born == charge_born and not is_past then
      given = 1
      if serial == charge_serial then
        whole, part = before, before_part
      else
        -- What has refilled since is not given twice.
        local left = cost - math.max(0, now - taken_at)
        if left >= 0 then
          whole, part = whole - left, part - cost_part
          if part < 0 then
            whole, part = whole - 1, part + q
          end
        end
      end
      serial = id
      if whole < now or (whole == now and part == 0) then
        whole, part = 0, 0
      end
    end
    parts[rate + 1] = pack('>dI4c8c8', whole, part, born, serial)
    is_empty = is_empty and whole == 0 and part == 0
    stands = math.max(stands, part > 0 and whole + 1 or whole)
  end
  if given == 0 then
    return 0
  end
  -- A window that is merely past stands again when the clock steps back; one that was given back does not.
  if is_empty then
    redis.call('DEL', key)
  else
    write(key, table.concat(parts), stands)
  end
  return 1
end

local reply = { string.format('%.0f', now) }
for i, key in ipairs(KEYS) do
  local act = ARGV[i + 3]
  local kind = act:sub(1, 1)
  local raw = kind ~= 'f' and redis.pcall('GETRANGE', key, '0', LONGEST) or ''
  if type(raw) == 'table' then
    if not raw.err:find('WRONGTYPE', 1, true) then
      return raw
    end
    raw = ''
  end
  reply[i + 1] = acts[kind](key, act, raw)
end
return reply
