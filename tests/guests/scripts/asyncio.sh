#!/bin/sh
# GUEST0903 Python's asyncio over the loopback: streams, datagrams, names, timeouts, files sent
ip link set lo up
cat >talk.py <<'PYTHON'
import asyncio, hashlib, os, socket

def content(number, size):
    return hashlib.shake_128(str(number).encode()).digest(size)

async def echo(reader, writer):
    while data := await reader.read(10000):
        writer.write(data)
        await writer.drain()
    writer.write_eof()
    writer.close()

async def client(host, port, number):
    reader, writer = await asyncio.open_connection(host, port)
    sent = content(number, 100000 + number)
    async def send():
        writer.write(sent)
        await writer.drain()
        writer.write_eof()
    got, _ = await asyncio.gather(reader.read(-1), send())
    writer.close()
    await writer.wait_closed()
    return got == sent

async def streams():
    for host in '127.0.0.1', '::1', 'localhost':
        server = await asyncio.start_server(echo, host, 0, family=socket.AF_INET if host == 'localhost' else 0)
        port = server.sockets[0].getsockname()[1]
        print(host, sum(await asyncio.gather(*(client(host, port, n) for n in range(100)))))
        server.close()
        await server.wait_closed()
        try:
            await asyncio.open_connection(host, port, family=socket.AF_INET if host == 'localhost' else 0)
        except ConnectionRefusedError:
            print('refused')

async def lines():
    async def answer(reader, writer):
        async for line in reader:
            writer.write(line.upper())
        writer.close()
    server = await asyncio.start_server(answer, '127.0.0.1', 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    right = 0
    for number in range(1000):
        writer.write(b'line %d\n' % number)
        right += await reader.readline() == b'LINE %d\n' % number
    print('lines', right)
    try:
        await asyncio.wait_for(reader.readline(), 0.05)
    except asyncio.TimeoutError:
        print('timeout')
    writer.write_eof()
    print(await reader.read())
    server.close()

async def datagrams():
    class Server(asyncio.DatagramProtocol):
        def connection_made(self, transport): self.transport = transport
        def datagram_received(self, data, address): self.transport.sendto(data[::-1], address)
    class Client(asyncio.DatagramProtocol):
        def __init__(self): self.got, self.lost = asyncio.Queue(), asyncio.Queue()
        def datagram_received(self, data, address): self.got.put_nowait(data)
        def error_received(self, error): self.lost.put_nowait(error)
    loop = asyncio.get_running_loop()
    server, _ = await loop.create_datagram_endpoint(Server, local_addr=('127.0.0.1', 0))
    transport, talk = await loop.create_datagram_endpoint(Client, remote_addr=server.get_extra_info('sockname'))
    right = 0
    for number in range(200):
        sent = content(number, number * 40)
        transport.sendto(sent)
        right += not sent or await asyncio.wait_for(talk.got.get(), 10) == sent[::-1]
    print('datagrams', right)
    server.close()
    await asyncio.sleep(0)
    transport.sendto(b'lost')
    print(type(await asyncio.wait_for(talk.lost.get(), 10)).__name__)

async def file():
    with open('file', 'wb') as out:
        out.write(content('file', 3000000))
    got = asyncio.get_running_loop().create_future()
    async def take(reader, writer):
        got.set_result(await reader.read(-1))
        writer.close()
    server = await asyncio.start_server(take, '127.0.0.1', 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    with open('file', 'rb') as source:
        print('sent', await asyncio.get_running_loop().sendfile(writer.transport, source, fallback=False))
    writer.close()
    print(await got == content('file', 3000000))
    server.close()

async def everything():
    await streams()
    await lines()
    await datagrams()
    await file()

asyncio.run(everything())
PYTHON
python3 talk.py
echo "status $?"
