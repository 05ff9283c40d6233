#!/bin/sh
# PACKAGE0025 ruby: runs a program with blocks, threads, processes and its modules
cat >program.rb <<'END'
require 'json'; require 'set'; require 'digest'; require 'socket'; require 'open3'; require 'erb'
Point = Struct.new(:x, :y) { def +(o) = Point.new(x + o.x, y + o.y) }
p Point.new(1, 2) + Point.new(3, 4), (1..10).each_slice(3).map(&:sum), 2**100
puts JSON.generate({ a: [1, nil, 2.5] }), Digest::SHA256.hexdigest('x')[0, 16]
puts (1..4).map { |n| Thread.new { n * n } }.map(&:value).inspect
output, status = Open3.capture2('tr a-z A-Z; exit 3', stdin_data: 'text')
p output, status.exitstatus
a, b = UNIXSocket.pair
pid = fork { b.write('child'); exit!(4) }
p a.read(5); Process.wait(pid); p $?.exitstatus
puts ERB.new("<% 3.times do |i| %><%= i %>,<% end %>").result
fiber = Fiber.new { Fiber.yield 1; 2 }
p fiber.resume, fiber.resume
begin; Integer('x'); rescue ArgumentError => e; puts e.message; end
GC.start; p ObjectSpace.count_objects[:TOTAL] > 1000
case { name: 'Ann', tags: [1, 2] }
in { name: String => n, tags: [*, 2] } then puts n
end
END
ruby program.rb
echo "status $?"
ruby -e 'raise "wrong"' 2>&1 | sed 's/.*: //'
printf 'b\na\n' | ruby -ne 'print $_.upcase'
