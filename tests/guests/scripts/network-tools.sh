#!/bin/sh
# GUEST0908 Debian's tools for networks agree with each other about the loopback
ip link set lo up
mkdir -p /tmp/tools && cd /tmp/tools
section() { echo "--- $1"; }
# Waits until a command succeeds.
until_done() { for try in $(seq 100); do "$@" >/dev/null 2>&1 && return; sleep 0.1; done; echo "never: $*"; }

cat >sockets.py <<'END_OF_PROGRAM'
import os, signal, socket
def at(kind, port, family=socket.AF_INET, host='127.0.0.1'):
    made = socket.socket(family, kind); made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((host, port)); return made
listener = at(socket.SOCK_STREAM, 7001); listener.listen(5)
six = at(socket.SOCK_STREAM, 7001, socket.AF_INET6, '::1'); six.listen(7)
client = at(socket.SOCK_STREAM, 7002); client.connect(('127.0.0.1', 7001))
server, _ = listener.accept(); client.send(b'unread')
waits = at(socket.SOCK_STREAM, 7003); waits.connect(('127.0.0.1', 7001))
half = at(socket.SOCK_STREAM, 7004); half.connect(('127.0.0.1', 7001))
other, _ = listener.accept(); third, _ = listener.accept(); half.shutdown(socket.SHUT_WR)
gone = at(socket.SOCK_STREAM, 7005); gone.connect(('127.0.0.1', 7001))
listener.accept()[0].close(); gone.close()
datagrams = at(socket.SOCK_DGRAM, 7006); datagrams.connect(('127.0.0.1', 7007))
free = at(socket.SOCK_DGRAM, 7008)
queued = socket.socket(socket.AF_INET, socket.SOCK_STREAM); queued.connect(('127.0.0.1', 7001))
open('ready', 'w').close()
signal.pause()
END_OF_PROGRAM
python3 sockets.py & server=$!
until_done test -e ready

section ss
# The backlog of a listener is shown where the module for such questions is loaded.
ss -Htan 'sport >= 7001 and sport <= 7005' | awk '$1 == "LISTEN" {$3 = "-"} $1 != "ESTAB" || $5 ~ /:700/ {print $1, $2, $3, $4, $5}' | sort
ss -Htlnp 'sport = :7001' | sed 's/pid=[0-9]*/pid=N/' | awk '{print $1, $2, $4, $6}' | sort
ss -Huan 'sport >= 7006 and sport <= 7008' | awk '{print $1, $4, $5}' | sort
ss -Htn state established 'dport = :7001' | awk '$4 == "127.0.0.1:7001" && $3 ~ /700/ {print $1, $2, $3}' | sort
ss -Hton state time-wait | awk '{print $3, $4}' | sort
ss -H6tln | awk '{print $4}'
section netstat
netstat -tan | awk '$4 ~ /:700[1-5]$/ && ($6 != "ESTABLISHED" || $5 ~ /:700/) {print $1, $2, $4, $5, $6}' | sort
netstat -tlnp | grep 7001 | awk '{print $1, $4, $6, $7}' | sed 's,[0-9]*/,N/,' | sort
netstat -uan | awk '$4 ~ /:700/ {print $1, $4, $5, $6}' | sort
netstat -rn | head -2
netstat -i | awk '{print $1, $2, NF}' | grep -v eth
section lsof
lsof -nP -a -p $server -i | awk 'NR > 1 {print $1, $4, $5, $8, $9, $10}' | sed 's/:[3-6][0-9][0-9][0-9][0-9]->/:N->/' | sort
lsof -nP -t -iTCP:7001 -sTCP:LISTEN | grep -c .
lsof -nP -iUDP:7008 -F n | grep ^n
kill $server; wait $server 2>/dev/null

section ip
before=$(cat /sys/class/net/lo/statistics/rx_packets)
ping -q -c 3 -i 0.2 127.0.0.1 | tail -2 | head -1 | cut -d, -f1-3
echo $(($(cat /sys/class/net/lo/statistics/rx_packets) - before))
ip -s link show lo | sed 's/[0-9][0-9]*/N/g; s/ *$//; s/  */ /g'
ip route get 127.0.0.1 | head -1 | sed 's/ uid.*//; s/ *$//'
ip addr add 10.9.8.7/24 dev lo; ip -4 -o addr show lo | awk '{print $4}'
ip addr add 10.9.8.7/24 dev lo 2>&1 | grep -o 'File exists'
ip addr del 10.9.8.7/24 dev lo; ip -4 -o addr show lo | awk '{print $4}'

section monitor
stdbuf -oL ip monitor address link >told & monitor=$!
until_done sh -c 'ip addr add 10.9.8.6/32 dev lo; ip addr del 10.9.8.6/32 dev lo; grep -q 10.9.8.6 told'
ip addr add 10.9.8.5/32 dev lo
ip link set lo mtu 4000
ip link set lo down
ip link set lo mtu 65536
ip link set lo up
ip addr del 10.9.8.5/32 dev lo
until_done grep -q 'Deleted.*10.9.8.5' told
kill $monitor; wait $monitor 2>/dev/null
grep '10.9.8.5' told | sed 's/ *$//; s/  */ /g'
grep -o 'lo: <.*> mtu [0-9]*' told | sort -u

section groups
cat >groups.py <<'END_OF_PROGRAM'
import errno, socket, struct, subprocess
LINK, ADDRESS, SIX = 1, 0x10, 0x100
def member(groups):
    made = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0); made.bind((0, groups)); made.settimeout(2); return made
def ip(words): subprocess.run(['ip'] + words.split(), check=True)
def told(member):
    bytes, (port, groups) = member.recvfrom(65536)
    length, kind = struct.unpack_from('=IH', bytes)
    return kind, port, groups
addresses, nothing = member(ADDRESS | SIX), member(0)
ip('addr add 10.9.8.4/32 dev lo'); ip('addr add fd00::4/128 dev lo nodad')
ip('addr del 10.9.8.4/32 dev lo'); ip('addr del fd00::4/128 dev lo')
print(sorted(told(addresses) for _ in range(4)))
nothing.settimeout(0.1)
try: nothing.recv(9)
except TimeoutError: print('nothing')
SOL_NETLINK, JOIN, LEAVE, LIST = 270, 1, 2, 9
addresses.setsockopt(SOL_NETLINK, LEAVE, 5); addresses.setsockopt(SOL_NETLINK, JOIN, 1)
print(int.from_bytes(addresses.getsockopt(SOL_NETLINK, LIST, 8), 'little'))
try: addresses.setsockopt(SOL_NETLINK, JOIN, 0)
except OSError as error: print(error.strerror)
# A member that reads nothing is told once that it has missed something.
slow = member(ADDRESS); slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
for _ in range(30): ip('addr add 10.9.8.4/32 dev lo'); ip('addr del 10.9.8.4/32 dev lo')
try: print(slow.recv(100))
except OSError as error: print(error.strerror)
print(told(slow))
END_OF_PROGRAM
python3 groups.py

section tcpdump
tcpdump -i lo -n -c 4 -w packets icmp 2>started & dump=$!
until_done grep -q listening started
ping -q -c 2 -i 0.2 127.0.0.1 >/dev/null
wait $dump
tcpdump -tnr packets 2>/dev/null | sed 's/id [0-9]*/id N/'
tcpdump -i lo -nt -l -c 3 'udp port 7100' >datagrams 2>started & dump=$!
until_done grep -q listening started
python3 -c "
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('127.0.0.1', 7101))
for length in (1, 100, 10000): s.sendto(b'x' * length, ('127.0.0.1', 7100))"
wait $dump; cat datagrams

section dig
cat >names.py <<'END_OF_PROGRAM'
import socket, struct, threading
def answer(question):
    number, = struct.unpack_from('>H', question)
    end = question.index(0, 12) + 5
    kind, = struct.unpack_from('>H', question, end - 4)
    name = question[12:end - 4]
    data = {1: bytes([127, 0, 0, 1]), 16: b'\x04text', 28: b'\0' * 15 + b'\1'}.get(kind)
    known = name.startswith(b'\x04here')
    records = [b'\xc0\x0c' + struct.pack('>HHIH', kind, 1, 60, len(data)) + data] if known and data else []
    return struct.pack('>HHHHHH', number, 0x8580 | (0 if known else 3), 1, len(records), 0, 0) + question[12:end] + b''.join(records)
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); udp.bind(('127.0.0.1', 53))
tcp = socket.create_server(('127.0.0.1', 53))
def streams():
    while True:
        stream, _ = tcp.accept()
        with stream:
            head = stream.recv(2)
            if len(head) == 2:
                reply = answer(stream.recv(struct.unpack('>H', head)[0])); stream.sendall(struct.pack('>H', len(reply)) + reply)
threading.Thread(target=streams, daemon=True).start()
open('names', 'w').close()
while True:
    question, peer = udp.recvfrom(2000); udp.sendto(answer(question), peer)
END_OF_PROGRAM
python3 names.py & names=$!
until_done test -e names
echo 'nameserver 127.0.0.1' >/etc/resolv.conf
dig +short here.test A; dig +short here.test TXT; dig +short +tcp here.test AAAA
dig there.test | grep -o 'status: [A-Z]*'
host here.test | sort
nslookup there.test | grep -o "can't find.*"
ping -c 1 here.test | tail -2 | head -1 | cut -d, -f1-3

section pages
mkdir -p www && seq 1 20000 >www/numbers
(cd www && exec python3 -m http.server --bind 127.0.0.1 8000 >/dev/null 2>&1) & web=$!
until_done curl -s http://127.0.0.1:8000/
wget -q -O - http://here.test:8000/numbers | cksum
curl -s http://here.test:8000/numbers | cksum
curl -sI http://127.0.0.1:8000/numbers | grep -i 'content-length' | tr -d '\r'
wget -q -O /dev/null http://127.0.0.1:8000/nothing; echo "status $?"
curl -sf http://127.0.0.1:8000/nothing; echo "status $?"
curl -s --max-time 5 http://127.0.0.1:8001/; echo "status $?"
kill $web $names; wait $web $names 2>/dev/null

section nc
nc -u -l 127.0.0.1 7200 >heard & hears=$!
until_done sh -c 'ss -Huln "sport = :7200" | grep -q 7200'
echo datagram | nc -u -q 0 127.0.0.1 7200
until_done grep -q datagram heard; cat heard
kill $hears; wait $hears 2>/dev/null
nc -zv 127.0.0.1 7201 2>&1 | grep -o 'refused'
nc -l -U /tmp/tools/socket >heard & sleep 0.5
echo local | nc -N -U /tmp/tools/socket; wait; cat heard

section traceroute
traceroute -n -q 1 -w 2 127.0.0.1 | tail -1 | awk '{print $1, $2, $4}'
traceroute -n -q 1 -w 2 -I 127.0.0.1 | tail -1 | awk '{print $1, $2, $4}'
section ethtool
ethtool lo | grep -o 'Link detected: [a-z]*'
ethtool no-such 2>&1 | grep -o 'No such device' | head -1
