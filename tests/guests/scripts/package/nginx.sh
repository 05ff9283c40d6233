#!/bin/sh
# PACKAGE0055 nginx: checks its configuration and serves files over a Unix socket, and reloads
mkdir www && echo hello >www/index.html
cat >nginx.conf <<'END'
pid /tmp/work/nginx.pid;
error_log /tmp/work/error.log;
worker_processes 2;
events { worker_connections 64; }
http { access_log /tmp/work/access.log; server { listen unix:/tmp/work/http.sock; root /tmp/work/www; location /status { return 204; } } }
END
chmod 755 /tmp/work
nginx -t -c /tmp/work/nginx.conf
nginx -c /tmp/work/nginx.conf
get() { printf 'GET %s HTTP/1.0\r\n\r\n' "$1" | nc -U -q 5 http.sock | tr -d '\r' | sed -n '1p;$p'; }
get /
get /nothing | head -1
get /status | head -1
pgrep -cx nginx
nginx -c /tmp/work/nginx.conf -s reload 2>/dev/null; sleep 2
get / | head -1
cut -d'"' -f2,3 access.log
nginx -c /tmp/work/nginx.conf -s quit 2>/dev/null
for try in 1 2 3 4 5 6 7 8 9 10; do pgrep -x nginx >/dev/null || break; sleep 1; done
pgrep -x nginx || echo ended
echo 'nonsense;' >bad.conf; nginx -t -c /tmp/work/bad.conf 2>&1 | sed "s/.*emerg. [0-9#: ]*//"
