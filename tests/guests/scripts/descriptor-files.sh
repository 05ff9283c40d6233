#!/bin/sh
# GUEST0930 /proc/PID/fdinfo of each kind of file
export LC_ALL=C
cat >/tmp/kinds.py <<'END_OF_PROGRAM'
import ctypes, fcntl, os, re, select, signal, socket, struct, time

libc = ctypes.CDLL(None, use_errno=True)


def made(name, *arguments):
    descriptor = getattr(libc, name)(*arguments)
    assert descriptor >= 0, name
    return descriptor


def show(name, descriptor, who='self'):
    with open(f'/proc/{who}/fdinfo/{descriptor}') as file:
        text = file.read()
    # Numbers of mounts, files, devices and counters differ between systems.
    text = re.sub(r'(mnt_id:|ino:|sdev:|eventfd-id:)\s*[0-9a-f]+', r'\1 N', text)
    text = re.sub(r' fhandle-bytes.*', '', text)
    text = re.sub(r'\(\d+, \d+\)\nit_interval', '(T)\nit_interval', text)
    # Python gives no value to the upper half of the data; files are in the order of the kernel.
    text = re.sub(r'data: *[0-9a-f]+([0-9a-f]{8})', r'data: \1', text)
    text = re.sub(r'(tfd:.*\n)+', lambda lines: ''.join(sorted(lines[0].splitlines(True))), text)
    text = text.replace(f'\t{os.getpid()}\n', '\tPID\n')
    print(f'--- {name}')
    print(text, end='')


class Time(ctypes.Structure):
    _fields_ = [(name, ctypes.c_long) for name in ('interval', 'interval_part', 'first', 'first_part')]


with open('/tmp/file', 'w') as file:
    file.write('some text')
plain = os.open('/tmp/file', os.O_RDWR | os.O_APPEND)
os.lseek(plain, 4, os.SEEK_SET)
show('file', plain)
os.set_inheritable(plain, True)
show('inherited', plain)
show('path', os.open('/tmp', os.O_PATH | os.O_DIRECTORY))
show('directory', os.open('/tmp', os.O_RDONLY))
show('null', os.open('/dev/null', os.O_WRONLY))
read, write = os.pipe2(os.O_NONBLOCK)
show('pipe', write)
show('socket', socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).detach())
show('event', made('eventfd', 42, 0o2000000))
show('signals', made('signalfd', -1, (ctypes.c_ulong * 16)(1 << signal.SIGUSR1 - 1), 0))
for clock, how in (1, 0), (0, 1), (0, 3), (7, 0):
    timer = made('timerfd_create', clock, 0)
    first = 1 << 33 if how else 1000
    assert libc.timerfd_settime(timer, how, ctypes.byref(Time(7, 0, first, 0)), None) == 0
    show(f'timer of clock {clock}, {how}', timer)
late = made('timerfd_create', 1, 0)
assert libc.timerfd_settime(late, 0, ctypes.byref(Time(0, 0, 0, 1)), None) == 0
time.sleep(0.05)
show('expired timer', late)
poll = select.epoll()
poll.register(read, select.EPOLLIN | select.EPOLLET)
poll.register(late, select.EPOLLIN | select.EPOLLONESHOT | select.EPOLLRDHUP)
show('epoll', poll.fileno())
assert len(poll.poll(0)) == 1
show('epoll with a reported file', poll.fileno())
notifier = made('inotify_init1', 0)
made('inotify_add_watch', notifier, b'/tmp', 0x102)
show('inotify', notifier)
show('process', os.pidfd_open(os.getpid()))
child = os.fork()
if child == 0:
    os._exit(0)
process = os.pidfd_open(child)
os.waitpid(child, 0)
show('ended process', process)
own = f'{os.getpid()}/fdinfo'
for what, path in ('directory', own), ('file', f'{own}/{plain}'), ('no file', 'self/fdinfo/99'):
    if os.fork() == 0:
        os.setuid(1000)
        try:
            os.open(f'/proc/{path}', os.O_RDONLY)
            print(f'{what} opened', flush=True)
        except OSError as error:
            print(f'{what} {error.strerror}', flush=True)
        os._exit(0)
    os.wait()


def locks(descriptor, who='self'):
    with open(f'/proc/{who}/fdinfo/{descriptor}') as file:
        lines = [line for line in file if line.startswith('lock:')]
    for line in lines:
        line = re.sub(r'[0-9a-f]+:[0-9a-f]+:\d+', 'FILE', line).replace(f' {os.getpid()} ', ' PID ')
        print(line.replace(f' {os.getppid()} ', ' PARENT '), end='')
    print(f'{len(lines)} locks', flush=True)


OFD_SETLK, READ, WRITE, NONE = 37, 0, 1, 2


def lock(descriptor, command, kind, start, length):
    fcntl.fcntl(descriptor, command, struct.pack('hhqqi4x', kind, 0, start, length, 0))


print('--- locks')
first, second = (os.open('/tmp/file', os.O_RDWR) for _ in range(2))
lock(first, fcntl.F_SETLK, READ, 10, 5)
lock(first, fcntl.F_SETLK, WRITE, 100, 0)
lock(first, fcntl.F_SETLK, WRITE, 2, 4)
locks(first)
locks(second)
print('by another file of the process, beside and apart')
lock(second, fcntl.F_SETLK, READ, 15, 5)
lock(second, fcntl.F_SETLK, READ, 40, 1)
lock(second, fcntl.F_SETLK, WRITE, 50, 10)
lock(second, fcntl.F_SETLK, NONE, 53, 2)
locks(first)
locks(second)
print('of the open file')
os.close(os.dup(first))
fcntl.flock(first, fcntl.LOCK_SH)
fcntl.flock(second, fcntl.LOCK_SH)
lock(first, OFD_SETLK, WRITE, 7, 1)
lock(first, OFD_SETLK, READ, 1 << 40, 1 << 33)
lock(first, fcntl.F_SETLK, READ, 20, 1)
locks(first)
locks(second)
child = os.fork()
if child == 0:
    locks(first)
    locks(second)
    os._exit(0)
os.waitpid(child, 0)
fcntl.flock(first, fcntl.LOCK_UN)
locks(first)
os.close(second)
locks(first)


def size(who='self'):
    with open(f'/proc/{who}/status') as file:
        return next(line.split()[1] for line in file if line.startswith('FDSize'))


print('--- room for descriptors')
print(size())
for number in 63, 64, 127, 128, 200, 300, 700:
    os.dup2(0, number)
    print(number, size())
for number in 300, 700:
    os.close(number)
print('closed', size())
if os.fork() == 0:
    print('a copy', size(), flush=True)
    os._exit(0)
os.wait()
print(oct(os.stat('/proc/self/fdinfo').st_mode), oct(os.stat(f'/proc/self/fdinfo/{plain}').st_mode))
END_OF_PROGRAM
python3 -u /tmp/kinds.py
