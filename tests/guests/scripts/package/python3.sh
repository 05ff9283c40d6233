#!/bin/sh
# PACKAGE0003 python3: runs a program with classes, processes, threads, sockets and its own modules for text and data
cat >program.py <<'END'
import collections, concurrent.futures, dataclasses, decimal, hashlib, json, os, re, socket, sqlite3, subprocess, sys, tempfile, threading, zlib

@dataclasses.dataclass
class Point:
    x: int
    y: int = 2

print(Point(1), sum(range(10**6)), 2**200)
print(json.dumps({"a": [1, None, 2.5], "b": "é"}, sort_keys=True))
print(decimal.Decimal(1) / 7, hashlib.sha256(b"macadamia").hexdigest()[:16])
print(collections.Counter(re.findall(r"[a-z]", "unmodified programs")).most_common(3))
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    print(list(pool.map(lambda n: n * n, range(8))))
print(subprocess.run(["sh", "-c", "read line; echo got $line; exit 3"], input=b"text\n", stdout=subprocess.PIPE))
near, far = socket.socketpair()
thread = threading.Thread(target=lambda: far.sendall(far.recv(10)[::-1]))
thread.start(); near.sendall(b"abc"); print(near.recv(10)); thread.join()
database = sqlite3.connect(":memory:")
database.execute("create table t (a, b)")
database.executemany("insert into t values (?, ?)", [(n, n % 3) for n in range(30)])
print(database.execute("select b, sum(a) from t group by b").fetchall())
with tempfile.TemporaryDirectory() as directory:
    path = os.path.join(directory, "x")
    with open(path, "wb") as file:
        file.write(zlib.compress(b"text " * 1000))
    print(os.path.getsize(path), len(zlib.decompress(open(path, "rb").read())))
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    os.write(writer, b"from the child"); os._exit(7)
print(os.read(reader, 100), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(sys.platform, os.name)
END
python3 program.py
echo "status $?"
python3 -m venv --without-pip own && own/bin/python -c 'import sys; print(sys.prefix != sys.base_prefix)'
python3 -c 'import nothing'
echo "status $?"
python3 -m multiprocessing.resource_tracker </dev/null 2>/dev/null
cat >workers.py <<'END'
import multiprocessing
def square(n): return n * n
if __name__ == "__main__":
    with multiprocessing.Pool(3) as pool: print(pool.map(square, range(10)))
END
python3 workers.py
