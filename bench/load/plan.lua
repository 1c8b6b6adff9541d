-- Sends the requests of a plan (bench/load/plan.py): wrk --script plan.lua URL -- PLAN LANES
-- PLAN is the plan as a Lua file, LANES the number of lanes of each thread, which is that of its connections.

local threads = {}

function setup(thread)
  thread:set("thread_number", #threads)
  thread:set("failure", "")
  table.insert(threads, thread)
end

local plan, next_request
local ready = {}  -- Lanes that wait for a connection, first in first out.
local first_ready, last_ready = 1, 0
local lanes = {}
local spellings = {}

local function make_ready(lane)
  last_ready = last_ready + 1
  ready[last_ready] = lane
end

local function filled(step, values)
  local pieces = step.pieces
  if #pieces == 1 then
    return pieces[1]
  end
  local parts = {}
  for index = 1, #pieces do
    parts[index] = index % 2 == 0 and values[pieces[index]] or pieces[index]
  end
  return table.concat(parts)
end

local function step_of(lane)
  return lane.first[lane.position] or plan.cycle[lane.position - #lane.first]
end

local function advance(lane)
  lane.position = lane.position + 1
  if lane.position > #lane.first + #plan.cycle then
    lane.position = #lane.first + 1
    lane.number = lane.number + 1
    lane.values.number = string.format("%08d", lane.number)
  end
end

-- Names of headers are spelled differently by different servers, but always the same by one.
local function header(headers, name)
  local spelling = spellings[name]
  if spelling == nil or headers[spelling] == nil then
    for one in pairs(headers) do
      if one:lower() == name then
        spelling = one
        spellings[name] = one
      end
    end
  end
  return headers[spelling or name]
end

local function quoted(text)
  return (text:gsub("[^%w%-%._~]", function(character)
    return string.format("%%%02X", character:byte())
  end))
end

local function keep(step, values, headers, body)
  for _, kept in ipairs(step.kept) do
    local value
    if kept.header ~= "" then
      value = header(headers, kept.header)
    else
      value = body:match("<" .. kept.element .. ">([^<]*)<")
    end
    if value == nil then
      return "an answer has no " .. kept.name
    end
    values[kept.name] = kept.quoted and quoted(value) or value
  end
end

local function fail(text)
  if failure == "" then
    failure = text
  end
end

local function take_answer(status, headers, body)
  local lane = lanes[header(headers, "x-ms-client-request-id")]
  if lane == nil then
    return fail("answered with " .. status .. " and no client request id: " .. body:sub(1, 300))
  end
  local step = step_of(lane)
  if status ~= step.status then
    fail("answered with " .. status .. " instead of " .. step.status .. ": " .. body:sub(1, 300))
    lane.position = #lane.first
  else
    local problem = keep(step, lane.values, headers, body)
    if problem then
      fail(problem)
    end
  end
  advance(lane)
  make_ready(lane)
end

local function next_independent()
  local lane = ready[1]
  local text = filled(step_of(lane), lane.values)
  advance(lane)
  return text
end

local function next_of_a_lane()
  local lane = ready[first_ready]
  ready[first_ready] = nil
  first_ready = first_ready + 1
  return filled(step_of(lane), lane.values)
end

local function new_lane(number, position)
  local name = string.format("%02d", number)
  local lane = {first = plan.first, position = position, number = 0, values = {lane = name, number = "00000000"}}
  lanes[name] = lane
  make_ready(lane)
end

function init(arguments)
  plan = dofile(arguments[1])
  local count = tonumber(arguments[2])
  if plan.independent then
    new_lane(thread_number, thread_number * plan.stride % #plan.cycle + 1)
    next_request = next_independent
  else
    for number = 0, count - 1 do
      new_lane(thread_number * count + number, 1)
    end
    next_request = next_of_a_lane
    response = take_answer
  end
  io.stderr:write("ready\n")
end

local is_verified = false

function request()
  if thread_number == 0 and not is_verified then
    is_verified = true  -- wrk parses one request before it begins, and does not send that.
    return filled(step_of(ready[1]), ready[1].values)
  end
  return next_request()
end

-- Lines that bench/load/wrk.py reads. Latencies are some percentiles, 50 and 99 among them, in microseconds. Each of
-- them costs a pass over all that wrk has counted.
function done(summary, latency)
  local errors = summary.errors
  local figures = {summary.requests, summary.duration, errors.connect, errors.read, errors.write, errors.status, errors.timeout}
  local quantiles = {}
  for percent = 1, 99, 7 do
    table.insert(quantiles, latency:percentile(percent))
  end
  local found = ""
  for _, thread in ipairs(threads) do
    if found == "" then
      found = thread:get("failure")
    end
  end
  io.write("\nfigures ", table.concat(figures, " "), "\nlatencies ", table.concat(quantiles, " "), "\n")
  io.write("failure ", (found:gsub("%s+", " ")), "\n")
end
