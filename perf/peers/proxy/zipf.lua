-- Requests for 10,000 objects, the n-th most popular about n times rarer than the first: the rank is
-- 10,000 to the power of a uniform number. With OBJECTS=1 always the same one.
local objects = tonumber(os.getenv("OBJECTS") or "10000")
local order = os.getenv("ORDER") or "zipf"
local requests, picks, position = {}, {}, 0

function init(args)
  math.randomseed(7)
  for n = 1, objects do requests[n] = wrk.format("GET", "/object/" .. n) end
  for n = 1, 65536 do picks[n] = math.min(objects, math.floor(objects ^ math.random())) end
end

function request()
  position = position + 1
  if order == "all" then return requests[(position - 1) % objects + 1] end
  return requests[picks[(position - 1) % 65536 + 1]]
end
