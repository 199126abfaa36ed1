-- SPDX-License-Identifier: Apache-2.0
-- What wrk sends: one DynamoDB operation over and over on keys drawn before the clock runs, so that the
-- generator's own work is small. Every put has a number of its own, as one that changes nothing may be
-- answered without a write. Arguments: OPERATION TABLE REGION KEYS [RATE [PREFIX]], the rate in requests a
-- second for each connection; without one, or by 0, as fast as the answers come. Keys begin with PREFIX.

local NUMBER = "1000000000"
local requests, tails, at = {}, {}, 0
local pause_ms
local count = tonumber(NUMBER) + os.time() % 1000000 * 1000

local bodies = {
   get = function(t, key)
      return '{"TableName":"' .. t .. '","Key":{"pk":{"S":"' .. key .. '"},"sk":{"S":"00"}}}'
   end,
   put = function(t, key)
      return '{"TableName":"' .. t .. '","Item":{"pk":{"S":"' .. key .. '"},"sk":{"S":"00"},"n":{"N":"' .. NUMBER .. '"},"pad":{"S":"' ..
         string.rep("x", 160) .. '"}}}'
   end,
   update = function(t, key)
      return '{"TableName":"' .. t .. '","Key":{"pk":{"S":"' .. key .. '"},"sk":{"S":"00"}},"UpdateExpression":"SET n = n + :one",' ..
         '"ConditionExpression":"attribute_exists(pk) AND n >= :zero",' ..
         '"ExpressionAttributeValues":{":one":{"N":"1"},":zero":{"N":"0"}}}'
   end,
   query = function(t, key)
      return '{"TableName":"' .. t .. '","KeyConditionExpression":"pk = :p","Limit":20,' ..
         '"ExpressionAttributeValues":{":p":{"S":"q' .. tonumber(key:sub(2)) % 100 .. '"}}}'
   end,
}
local targets = { get = "GetItem", put = "PutItem", update = "UpdateItem", query = "Query" }

function init(arguments)
   local operation, table_name, region, keys = arguments[1], arguments[2], arguments[3], tonumber(arguments[4])
   math.randomseed(7)
   local prefix = arguments[6] or "k"
   if arguments[5] and tonumber(arguments[5]) > 0 then
      pause_ms = 1000 / tonumber(arguments[5])
      -- wrk asks for a delay only where the script has the function.
      delay = function()
         local whole = math.floor(pause_ms)
         return whole + (math.random() < pause_ms - whole and 1 or 0)
      end
   end
   local headers = {
      ["Content-Type"] = "application/x-amz-json-1.0",
      ["X-Amz-Target"] = "DynamoDB_20120810." .. targets[operation],
      ["X-Amz-Date"] = "20260101T000000Z",
      ["Authorization"] = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260101/" .. region ..
         "/dynamodb/aws4_request, SignedHeaders=host;x-amz-date;x-amz-target, Signature=" .. string.rep("0", 64),
   }
   for i = 1, 4096 do
      requests[i] = wrk.format("POST", "/", headers, bodies[operation](table_name, prefix .. math.random(0, keys - 1)))
      local first, last = requests[i]:find(NUMBER, 1, true)
      if first then
         requests[i], tails[i] = requests[i]:sub(1, first - 1), requests[i]:sub(last + 1)
      end
   end
end

function request()
   at = at % 4096 + 1
   if not tails[at] then
      return requests[at]
   end
   count = count + 1
   return requests[at] .. count .. tails[at]
end

-- An error answer is no work done: it must not pass for speed, so the count of errors is told too.
function done(summary, latency)
   io.write(string.format("RESULT %.1f %.3f %.3f %d\n", summary.requests / (summary.duration / 1e6),
      latency:percentile(50) / 1000, latency:percentile(99) / 1000,
      summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout))
end
