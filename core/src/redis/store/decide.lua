-- decide.lua   Tests every check of a call and, when all allow and commit is 1, writes them all.
-- KEYS   one per check
-- ARGV   now in us or '' for the server's time, commit 1|0, least TTL in ms, id of the call (8 bytes),
--        then one packed policy per check: kind byte, then big-endian doubles
--          g  rates, then period, q, cost in whole us, cost in parts of q   for each rate
--          s  threshold, window
--          w  limit, window
-- Replies {1|0, now, each state as it was found}: '' when absent, and what is longer than a state can be is cut. The
-- caller reads the rest from the states.
-- All or nothing: when any check denies, nothing is written, but for states that had to be mended.
-- No product and no quotient of more than 2^53 anywhere, so doubles and Lua 5.4 integers agree.
local pack, unpack_at = struct.pack, struct.unpack
local LIMIT = 9007199254740992
-- The longest state, of 1024 strikes. A byte more is read, which no state has: a huge value at one of our keys is
-- neither copied nor sent.
local LONGEST = '8202'

local now = tonumber(ARGV[1])
if not now then
  -- Once: TIME moves inside a script on Redis 7.0.
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000000 + tonumber(time[2])
end
local commit, least_ttl, id = ARGV[2] == '1', tonumber(ARGV[3]), ARGV[4]

local function is_time(x)
  -- NaN fails every comparison.
  return x >= 0 and x < LIMIT and x % 1 == 0
end

local function write(call, key, value, ends)
  local ttl = math.ceil((ends - now) / 1000) + 1
  return call('SET', key, value, 'PX', string.format('%.0f', math.max(ttl, least_ttl)))
end

-- Each kind: (raw, policy) -> allows, value and end if all allow, value and end to mend with if not.
local kinds = {}

-- One rate of a state: period, q, cost and its part, then whole, part, born, serial as they count, and whether they
-- had to be mended for that.
local function load_rate(raw, sound, policy, rate)
  local period, q, cost, cost_part = unpack_at('>dddd', policy, 10 + 32 * (rate - 1))
  if raw == '' then
    return period, q, cost, cost_part, 0, 0, id, id, false
  end
  local whole, part, born, serial = 0, q, id, id
  if sound then
    whole, part, born, serial = unpack_at('>dI4c8c8', raw, 2 + 28 * (rate - 1))
  end
  if part < q and is_time(whole) and whole <= now + 2 * period then
    return period, q, cost, cost_part, whole, part, born, serial, false
  end
  -- Too far in the future, or not ours: fully spent from now. A birth, so that no charge from before it is given back.
  return period, q, cost, cost_part, now + period, 0, id, id, true
end

local function mended_rates(raw, sound, policy, rates)
  local parts, ends = { '\1' }, now
  for rate = 1, rates do
    local _, _, _, _, whole, part, born, serial = load_rate(raw, sound, policy, rate)
    parts[rate + 1] = pack('>dI4c8c8', whole, part, born, serial)
    ends = math.max(ends, part > 0 and whole + 1 or whole)
  end
  return table.concat(parts), ends
end

function kinds.g(raw, policy)
  local rates = unpack_at('>d', policy, 2)
  local sound = #raw == 1 + 28 * rates and raw:byte(1) == 1
  local allows, mend, counted, ends = true, false, '\1', now
  for rate = 1, rates do
    local period, q, cost, cost_part, whole, part, born, _, mended = load_rate(raw, sound, policy, rate)
    mend = mend or mended
    if whole < now or (whole == now and part == 0) then
      whole, part, born = now, 0, id
    end
    whole, part = whole + cost, part + cost_part
    if part >= q then
      whole, part = whole + 1, part - q
    end
    local full_at = part > 0 and whole + 1 or whole
    allows = allows and full_at <= now + period
    if allows then
      counted = counted .. pack('>dI4c8c8', whole, part, born, id)
      ends = math.max(ends, full_at)
    end
  end
  if mend then
    return allows, counted, ends, mended_rates(raw, sound, policy, rates)
  end
  return allows, counted, ends
end

function kinds.s(raw, policy)
  local threshold, window = unpack_at('>dd', policy, 2)
  local locked, last, ids, mend = 0, 0, '', false
  if raw ~= '' then
    local version, flag, count = raw:byte(1), raw:byte(2), (#raw - 10) / 8
    local sound = version == 1 and (flag == 0 or flag == 1) and count % 1 == 0 and count >= 0
      and count <= threshold and count + flag > 0
    if sound then
      last = unpack_at('>d', raw, 3)
      sound = is_time(last)
    end
    if not sound then
      locked, last, mend = 1, now, true
    elseif now < last + window then
      locked, ids = flag, raw:sub(11)
      if last > now + window then
        last, mend = now, true
      end
    else
      last = 0
    end
  end
  local at = ids:find(id, 1, true)
  while at and at % 8 ~= 1 do
    at = ids:find(id, at + 1, true)
  end
  local mended = mend and '\1' .. string.char(locked) .. pack('>d', last) .. ids
  if at then
    -- A call repeated after a lost reply: admitted, and nothing changes.
    return true, false, 0, mended, last + window
  end
  if locked == 1 then
    return false, false, 0, mended, last + window
  end
  ids = ids .. id
  local engages = #ids >= threshold * 8 and 1 or 0
  local latest = math.max(last, now)
  return true, '\1' .. string.char(engages) .. pack('>d', latest) .. ids, latest + window, mended, last + window
end

function kinds.w(raw, policy)
  local limit, window = unpack_at('>dd', policy, 2)
  local start, count, mend = now, 0, false
  if raw ~= '' then
    local sound = #raw == 13 and raw:byte(1) == 1
    if sound then
      start, count = unpack_at('>dI4', raw, 2)
      sound = is_time(start) and count <= limit
    end
    if not sound then
      start, count, mend = now, limit, true
    elseif start > now + window then
      start, mend = now, true
    elseif now >= start + window then
      start, count = now, 0
    end
  end
  local ends = start + window
  return count < limit, '\1' .. pack('>dI4', start, count + 1), ends, mend and '\1' .. pack('>dI4', start, count), ends
end

local reply, allowed, steps = { 1, string.format('%.0f', now) }, true, {}
for i, key in ipairs(KEYS) do
  local raw = redis.pcall('GETRANGE', key, '0', LONGEST)
  -- Missing, or empty.
  if raw == '' then raw = redis.pcall('GET', key) end
  if type(raw) == 'table' then
    if not raw.err:find('WRONGTYPE', 1, true) then
      return raw
    end
    -- A value of another type is a corrupt state: fully spent from now.
    raw = '!'
  end
  -- An empty text is no state of ours either; it must not pass for a missing one.
  raw = raw == '' and '!' or raw or ''
  reply[i + 2] = raw
  local policy = ARGV[i + 4]
  local step = { kinds[policy:sub(1, 1)](raw, policy) }
  allowed = allowed and step[1]
  steps[i] = step
end
if not allowed then
  reply[1] = 0
end
if commit then
  for i, step in ipairs(steps) do
    local counted, counted_end, mended, mended_end = step[2], step[3], step[4], step[5]
    if allowed and counted then
      write(redis.call, KEYS[i], counted, counted_end)
    elseif not allowed and mended then
      -- The answer stands even where the server refuses the write.
      write(redis.pcall, KEYS[i], mended, mended_end)
    end
  end
end
return reply
