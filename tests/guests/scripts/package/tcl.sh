#!/bin/sh
# PACKAGE0026 tcl: evaluates scripts with events, files and processes
cat >program.tcl <<'END'
proc fib n { if {$n < 2} { return $n }; expr {[fib [incr n -1]] + [fib [incr n -1]]} }
puts [fib 15]
puts [expr {2 ** 100}] 
puts [lsort -integer {3 1 2}]; puts [dict get {a 1 b 2} b]
puts [exec echo hello | tr a-z A-Z]
after 100 { set done 1 }; vwait done; puts "event $done"
set f [open x w]; puts $f text; close $f; puts [file size x]
puts [regsub -all {[aeiou]} macadamia <&>]
coroutine c apply {{} { yield; yield 1; return 2 }}; puts [c][c]
if {[catch {error wrong} message]} { puts $message }
oo::class create Dog { method speak {} { return woof } }; puts [[Dog new] speak]
puts [encoding convertto utf-8 \u00e9]
exit 3
END
tclsh program.tcl
echo "status $?"
