#!/bin/sh
# GUEST0104 Lua: closures, coroutines, tables, strings, files, another process
cat >test.lua <<'END'
local function fibonacci(n) if n < 2 then return n end return fibonacci(n - 1) + fibonacci(n - 2) end
print(_VERSION, fibonacci(20), 7 // 2, 7 / 2, 2^53, 1 << 40, math.maxinteger, -7 % 3)
local words = {}
for word in ("the quick brown fox jumps over the lazy dog"):gmatch("%a+") do words[#words + 1] = word end
table.sort(words, function(a, b) return #a < #b or (#a == #b and a < b) end)
print(table.concat(words, " "))
local producer = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i * i) end end)
print(producer(), producer(), producer())
local class = setmetatable({}, { __call = function(self, x) return x * 2 end, __index = function(_, key) return key .. "!" end })
print(class(21), class.hello, #"\u{4e2d}", utf8.len("\u{4e2d}x"))
print(pcall(error, { code = 5 }), select("#", pcall(error, "text", 0)), (select(2, pcall(error, "text", 0))))
print(string.format("%5.2f|%-5s|%05d|%q|%x", 3.14159, "ab", 42, "a\nb", 255), ("abc"):rep(3, "-"), ("hello"):upper():reverse())
local file = assert(io.open("data", "w"))
for i = 1, 1000 do file:write(i, "\n") end
file:close()
local sum = 0
for line in io.lines("data") do sum = sum + tonumber(line) end
print(sum, io.open("missing"))
file = io.open("data"); file:seek("end", -5); print(file:read("l"), file:read("a")); file:close()
local pipe = io.popen("echo from a shell; exit 3"); print(pipe:read("a"), pipe:close())
print(os.execute("exit 4"), os.getenv("HOME"), os.time({ year = 2000, month = 1, day = 1, hour = 12 }) > 0, os.rename("data", "moved"), os.remove("moved"), os.remove("moved"))
local big = {}
for i = 1, 200000 do big[i] = { i } end
big = nil
collectgarbage()
print(collectgarbage("count") < 2000, string.pack("<i4", 258):byte(1, -1))
os.exit(6)
END
LC_ALL=C lua5.4 test.lua
echo "status $?"
echo 'print(1 + 1)' | lua5.4 -
lua5.4 -e 'error("deliberate")' 2>&1 | head -n 1
