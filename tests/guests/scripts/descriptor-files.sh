#!/bin/sh
# GUEST0930 /proc/PID/fdinfo of each kind of file
export LC_ALL=C
cat >/tmp/kinds.py <<'END_OF_PROGRAM'
import ctypes, os, re, select, signal, socket, time

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
print(oct(os.stat('/proc/self/fdinfo').st_mode), oct(os.stat(f'/proc/self/fdinfo/{plain}').st_mode))
END_OF_PROGRAM
python3 -u /tmp/kinds.py
