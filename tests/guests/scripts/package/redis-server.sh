#!/bin/sh
# PACKAGE0054 redis-server: serves data structures, scripts and a queue over a Unix socket and keeps them in a file
redis-server --port 0 --unixsocket /tmp/work/redis.sock --daemonize yes --dir /tmp/work --save '' --logfile log >/dev/null
r() { redis-cli -s /tmp/work/redis.sock "$@"; }
for try in 1 2 3 4 5 6 7 8 9 10; do r ping 2>/dev/null | grep -q PONG && break; sleep 1; done
r set key value; r get key; r incrby n 41; r incr n
r rpush list a b c; r lrange list 0 -1
r zadd set 2 two 1 one; r zrange set 0 -1 withscores
r eval 'return redis.call("get", KEYS[1]) .. ARGV[1]' 1 key x
r blpop queue 20 >popped & sleep 1; r rpush queue job; wait; cat popped
seq 1 500 | sed 's/.*/set k& v&/' | r --pipe | tail -1
r dbsize
r bgsave >/dev/null; for try in 1 2 3 4 5 6 7 8 9 10; do [ -f dump.rdb ] && break; sleep 1; done; ls dump.rdb
r expire key 1; sleep 2; r exists key
r shutdown nosave
sleep 1
r ping 2>&1 | cut -d: -f1
