#!/usr/bin/python3
# Two machines with a cable between them: streams, datagrams and short connections, each compared to
# the byte.
#
#   cable.py serve                          answers the other machine, for ever
#   cable.py streams HOST COUNT SIZE        so many streams at a time, of SIZE bytes both ways each
#   cable.py driver HOST COUNT SIZE TIMES   the same again and again on the same connections, until
#                                           the drivers of both machines were started again so often
#   cable.py datagrams HOST COUNT           datagrams, which are sent until they are answered
#   cable.py connections HOST COUNT         connections, fifty at a time, with a word both ways each
#   cable.py addresses FIRST SECOND         a server of DHCP that grants the first address until it
#                                           is declined, and then the second
import asyncio, errno, hashlib, socket, sys

PORT = 7000


def content(name, size):
    return hashlib.shake_128(name.encode()).digest(size)


def restarts():
    # Other systems have neither such a file nor such a driver.
    try:
        with open("/proc/macadamia") as about:
            return next(int(line.split("\t")[-1]) for line in about if line.startswith("server\tnet\t"))
    except FileNotFoundError:
        return 0


async def send(writer, *parts):
    for part in parts:
        writer.write(part)
    await writer.drain()


async def answer(reader, writer):
    # A line says what comes, and how much in each direction.
    try:
        while line := (await reader.readline()).decode().split():
            name, size = line[0], int(line[1])
            got, _ = await asyncio.gather(reader.readexactly(size), send(writer, content("answer " + name, size)))
            verdict = "right" if got == content("question " + name, size) else "wrong"
            await send(writer, f"{verdict} {restarts()}\n".encode())
    except (ConnectionError, asyncio.IncompleteReadError) as error:
        print("a connection is lost:", repr(error), flush=True)
    writer.close()


async def ask(reader, writer, name, size):
    # Returns whether all was right, and how often the other machine's driver was started again.
    question = content("question " + name, size)
    got, _ = await asyncio.gather(reader.readexactly(size), send(writer, f"{name} {size}\n".encode(), question))
    verdict, other = (await reader.readline()).decode().split()
    return got == content("answer " + name, size) and verdict == "right", int(other)


class Echo(asyncio.DatagramProtocol):
    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, address):
        self.transport.sendto(data, address)


async def serve():
    loop = asyncio.get_running_loop()
    await loop.create_datagram_endpoint(Echo, local_addr=("::", PORT))
    async with await asyncio.start_server(answer, None, PORT) as server:
        await server.serve_forever()


async def streams(host, count, size):
    async def stream(number):
        reader, writer = await asyncio.open_connection(host, PORT)
        right, _ = await ask(reader, writer, f"stream{number}", size)
        writer.close()
        return right

    right = sum(await asyncio.gather(*(stream(number) for number in range(count))))
    print(f"streams: {right} of {count} right")


async def driver(host, count, size, times):
    async def stream(number):
        reader, writer = await asyncio.open_connection(host, PORT)
        rounds = right = other = 0
        while min(restarts(), other) < times:
            is_right, other = await ask(reader, writer, f"round{number}-{rounds}", size)
            right += is_right
            rounds += 1
        writer.close()
        return rounds, right

    rounds, right = map(sum, zip(*await asyncio.gather(*(stream(number) for number in range(count)))))
    print(f"driver: ended {restarts()} times, {'all' if rounds == right > 0 else right} of {rounds} rounds right")


def datagrams(host, count):
    wrong = repeated = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.settimeout(0.3)
        own.connect((host, PORT))
        sizes = [(number * 37) % 1400 if number % 4 else 1400 + number * 29 % 1100 for number in range(count)]
        sent = [number.to_bytes(4, "big") + content(f"datagram{number}", size) for number, size in enumerate(sizes)]
        for number in range(count):
            answered = False
            while not answered:
                repeated += 1
                try:
                    own.send(sent[number])
                    while not answered:
                        got = own.recv(65536)
                        # An answer to an earlier one may come late, or twice.
                        of = int.from_bytes(got[:4], "big")
                        wrong += of > number or got != sent[of]
                        answered = of == number
                except TimeoutError:
                    pass
                except OSError as error:
                    # All questions for the peer's hardware address, or the answers, were lost.
                    if error.errno != errno.EHOSTUNREACH:
                        raise
    print(f"datagrams: {count} answered, {wrong} wrong, {repeated - count} sent again")


async def connections(host, count):
    free = asyncio.Semaphore(50)

    async def connection(number):
        async with free:
            reader, writer = await asyncio.open_connection(host, PORT)
            right, _ = await ask(reader, writer, f"connection{number}", 10)
            writer.close()
            await writer.wait_closed()
            return right

    right = sum(await asyncio.gather(*(connection(number) for number in range(count))))
    print(f"connections: {right} of {count} right")


def addresses(*grants):
    grants = list(grants)
    server = socket.inet_aton("192.168.7.2")
    with open("/sys/class/net/eth0/address") as address:
        mac = bytes.fromhex(address.read().replace(":", ""))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        own.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"eth0")
        own.bind(("", 67))
        while True:
            asked = own.recv(1500)
            options, at = {}, 240
            while at < len(asked) and asked[at] != 255:
                length = asked[at + 1] if asked[at] else -1
                options[asked[at]] = asked[at + 2 : at + 2 + length]
                at += 2 + length
            kind = options[53][0]
            # This machine asks for an address, too, and gets none.
            if asked[28:34] == mac:
                continue
            if kind == 4:
                print("declined:", socket.inet_ntoa(options[50]), flush=True)
                grants.pop(0)
            if kind not in (1, 3):
                continue
            answer = {53: bytes([2 if kind == 1 else 5]), 54: server, 51: (3600).to_bytes(4, "big"), 1: b"\xff\xff\xff\0"}
            head = b"\2\1\6\0" + asked[4:8] + b"\0\0\x80\0" + bytes(4) + socket.inet_aton(grants[0]) + bytes(8)
            parts = [bytes([number, len(value)]) + value for number, value in answer.items()]
            message = head + asked[28:44] + bytes(192) + b"\x63\x82\x53\x63" + b"".join(parts) + b"\xff"
            own.sendto(message, ("255.255.255.255", 68))


kind, *words = sys.argv[1:]
words[1:] = [int(word) if word.isdigit() else word for word in words[1:]]
if kind in ("datagrams", "addresses"):
    {"datagrams": datagrams, "addresses": addresses}[kind](*words)
else:
    asyncio.run({"serve": serve, "streams": streams, "driver": driver, "connections": connections}[kind](*words))
