-- The requests of one round, and one line of figures at its end.
--
--   PREFIX   beginning of every path; a number follows
--   ORDER    zipf: the n-th most popular object is about n times rarer than the first
--            uniform: every object equally often, at random
--            turn: one object after the other
--            unique: every path once; SALT distinguishes the rounds
--            mix: 80 % zipf, 15 % unique paths, 5 % objects under PASS, which must not be stored
--   OBJECTS  number of objects
--   FIELD    a header field, complete with its name; may be missing
--
-- prints: figures REQUESTS BYTES MICROSECONDS STATUS_ERRORS SOCKET_ERRORS
local objects = tonumber(os.getenv("OBJECTS") or "1")
local order, salt = os.getenv("ORDER"), os.getenv("SALT")
local prefix, pass, field = os.getenv("PREFIX"), os.getenv("PASS"), os.getenv("FIELD")
local position, picks, made, tail = 0, {}, {}, nil

local function text(path) return "GET " .. path .. tail end

local function stored(number)
  local found = made[number]
  if not found then
    found = text(prefix .. number)
    made[number] = found
  end
  return found
end

local function unique()
  position = position + 1
  return text(prefix .. salt .. position)
end

local function picked()
  position = position + 1
  return stored(picks[(position - 1) % 65536 + 1])
end

local function mixed()
  local dice = math.random(100)
  if dice <= 80 then return picked() end
  if dice <= 95 then return unique() end
  return text(pass .. math.random(1000))
end

local function in_turn()
  position = position + 1
  return stored((position - 1) % objects + 1)
end

function init(args)
  math.randomseed(7)
  tail = " HTTP/1.1\r\nHost: 127.0.0.1\r\n" .. (field and field .. "\r\n" or "") .. "\r\n"
  for n = 1, 65536 do
    if order == "uniform" then picks[n] = math.random(objects)
    else picks[n] = math.min(objects, math.floor(objects ^ math.random())) end
  end
  request = ({unique = unique, turn = in_turn, mix = mixed})[order] or picked
end

-- wrk looks for this function before `init` chooses another.
function request() return in_turn() end

function done(summary, latency, requests)
  local errors = summary.errors
  print(string.format("figures %d %d %d %d %d", summary.requests, summary.bytes, summary.duration,
    errors.status, errors.connect + errors.read + errors.write))
end
