#!/bin/sh
# GUEST0901 programs of Debian talk over the loopback: python3, nc, redis, nginx and curl, ip, ss
ip link set lo up
mkdir -p /tmp/loopback && cd /tmp/loopback
section() { echo "--- $1"; }

section ip
ip -o addr show lo | sed 's/ *$//'
ip -o link show lo | grep -o 'lo: <[A-Z,_]*>'
cat /proc/sys/net/ipv4/ip_unprivileged_port_start

section python3
cat >talk.py <<'END'
import http.server, selectors, socket, threading, urllib.request, urllib.error
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == '/no':
            return self.send_error(404)
        body = b'x' * 100000
        self.send_response(200); self.send_header('Content-Length', str(len(body))); self.end_headers()
        self.wfile.write(body)
    def log_message(self, *words): pass
class Six(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6
for kind, host, shown in ((http.server.ThreadingHTTPServer, '127.0.0.1', '127.0.0.1'), (Six, '::1', '[::1]')):
    server = kind((host, 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f'http://{shown}:{server.server_address[1]}'
    print(shown, sum(len(urllib.request.urlopen(url).read()) for _ in range(10)))
    try: urllib.request.urlopen(url + '/no')
    except urllib.error.HTTPError as error: print(error.code)
    server.shutdown(); server.server_close()
    try: socket.create_connection((host, server.server_address[1]))
    except OSError as error: print(error.strerror)
a, b = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
a.bind(('127.0.0.1', 0)); a.settimeout(10)
b.sendto(b'datagram', a.getsockname()); print(a.recvfrom(100)[0])
b.connect(('127.0.0.1', 9)); b.send(b'to nobody')
try: b.recv(10)
except OSError as error: print(error.strerror)
listener = socket.create_server(('127.0.0.1', 0)); listener.setblocking(False)
client = socket.socket(); client.setblocking(False)
print(client.connect_ex(listener.getsockname()) in (0, 115))
with selectors.EpollSelector() as s:
    s.register(client, selectors.EVENT_WRITE); print(len(s.select(10)))
    s.register(listener, selectors.EVENT_READ); print(len([1 for k, _ in s.select(10) if k.fileobj is listener]))
    server, _ = listener.accept()
    client.send(b'half'); client.shutdown(socket.SHUT_WR); server.settimeout(10)
    print(server.recv(100), server.recv(100)); server.send(b'other half'); server.close()
    client.settimeout(10); print(client.recv(100), client.recv(100))
print([(i[0].name, i[4]) for i in socket.getaddrinfo('localhost', 80, type=socket.SOCK_STREAM, family=socket.AF_INET)])
END
python3 talk.py

section nc
nc -l 127.0.0.1 5001 >received & sleep 1
seq 1 20000 | nc -N 127.0.0.1 5001
wait
cksum <received
nc 127.0.0.1 5001 </dev/null; echo "status $?"

section redis
redis-server --bind 127.0.0.1 ::1 --port 6379 --daemonize yes --dir /tmp/loopback --save '' --logfile log >/dev/null
for try in 1 2 3 4 5 6 7 8 9 10; do redis-cli ping 2>/dev/null | grep -q PONG && break; sleep 1; done
redis-cli set key value; redis-cli -h ::1 get key
seq 1 2000 | sed 's/.*/set k& v&/' | redis-cli --pipe | tail -1
redis-cli dbsize
ss -Htln 'sport = :6379' | awk '{print $1, $4}' | sort
redis-cli shutdown nosave

section nginx
mkdir www && seq 1 50000 >www/numbers
cat >nginx.conf <<'END'
pid /tmp/loopback/nginx.pid;
error_log /tmp/loopback/error.log;
worker_processes 2;
events { worker_connections 64; }
http { sendfile on; access_log off; server { listen 127.0.0.1:8080; listen [::1]:8080; root /tmp/loopback/www; } }
END
chmod 755 /tmp/loopback
nginx -c /tmp/loopback/nginx.conf
curl -s http://127.0.0.1:8080/numbers | cksum
curl -s 'http://[::1]:8080/numbers' | cksum
curl -s -o /dev/null -w '%{http_code}\n' http://127.0.0.1:8080/nothing
for i in 1 2 3 4 5 6 7 8 9 10; do echo "url = http://127.0.0.1:8080/numbers"; done >urls
curl -s -K urls | cksum
nginx -c /tmp/loopback/nginx.conf -s quit 2>/dev/null
for try in 1 2 3 4 5 6 7 8 9 10; do pgrep -x nginx >/dev/null || break; sleep 1; done
curl -s http://127.0.0.1:8080/; echo "status $?"

section ping
ping -c 2 -i 0.2 127.0.0.1 | tail -2 | head -1 | cut -d, -f1-3
ping -c 1 ::1 | tail -2 | head -1 | cut -d, -f1-3
