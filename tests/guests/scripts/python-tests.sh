#!/bin/sh
# GUEST0240 Python's own tests of modules that make system calls, module by module
ip link set lo up
cat >run.py <<'PYTHON'
import re, subprocess, sys

def names(kind, text):
    return re.findall(rf'^{kind}: (\S+) \(', text, re.M)

def run(module):
    command = [sys.executable, '-m', 'test', '-v', '-u', 'none', module]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors='replace', timeout=150)
    except subprocess.TimeoutExpired:
        return 'TOO LONG'
    text = done.stdout + done.stderr
    tests = sum(map(int, re.findall(r'^Ran (\d+) test', text, re.M)))
    bad = sorted(set(names('FAIL', text) + names('ERROR', text)))
    end = 'ok' if done.returncode == 0 else f'status {done.returncode}'
    return ' '.join([f'{tests} tests, {end}', *bad])

for module in sys.argv[1:]:
    print(f'{module}: {run(module)}', flush=True)
PYTHON
python3 run.py test_bufio test_dbm_dumb test_epoll test_fcntl test_file test_file_eintr \
    test_filecmp test_fileinput test_fileio test_fork1 test_genericpath test_getpass test_glob \
    test_grp test_ioctl test_largefile test_mailbox test_mmap test_netrc test_openpty test_os \
    test_pathlib test_pipes test_poll test_popen test_posix test_posixpath test_pty test_pwd \
    test_resource test_sched test_select test_selectors test_shelve test_shutil test_spwd \
    test_stat test_syslog test_tempfile test_thread test_threadedtempfile test_threading_local \
    test_threadsignals test_time test_wait3 test_wait4 test_signal test_eintr test_threading
