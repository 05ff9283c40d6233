//! Makes the calls of a trace on the simulated machine and compares their results with those in the
//! trace.

use super::parse::{Ended, Record, Step, Trace, Value};
use crate::bytes;
use crate::world::{Gone, Program, World, elf};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use unix::Error;
use unix::vfs::FileType;

/// The memory for arguments of calls: a slot for each.
const SCRATCH: u64 = 0x10_0000_0000;
const SLOT: u64 = 0x4_0000;
const SLOTS: u64 = 7;
/// Address of the stack of a new thread.
const STACK: u64 = SCRATCH + SLOT * SLOTS - 0x1000;

/// The addresses of mappings in the traced program, with those of this run.
#[derive(Clone, Default)]
struct Addresses {
    /// For each mapping: start in the trace, length, start in this run.
    ranges: Vec<(u64, u64, u64)>,
    /// The first end of the heap (brk) in the trace and in this run.
    heap: Option<(u64, u64)>,
}

impl Addresses {
    fn here(&self, address: u64) -> Option<u64> {
        let within = |range: &&(u64, u64, u64)| (range.0..range.0 + range.1).contains(&address);
        self.ranges.iter().rev().find(within).map(|(from, _, to)| to + (address - from))
    }
}

pub(super) struct Replay {
    trace: RefCell<Trace>,
    /// The process ids of this run, by those of the trace.
    ids: RefCell<BTreeMap<u64, u64>>,
    addresses: RefCell<BTreeMap<u64, Addresses>>,
    /// The handlers that have run, by process and signal.
    handled: RefCell<BTreeSet<(u64, u32)>>,
    differences: RefCell<Vec<String>>,
    calls: RefCell<usize>,
    /// The address of the code with which a program continues the trace.
    entry: RefCell<u64>,
}

/// Known differences of results, with their reasons.
const KNOWN: [(&str, &str); 2] = [
    ("rseq", "restartable sequences would have to be restarted by the kernel"),
    ("sched_getaffinity", "the number of processors is the machine's"),
];

impl Replay {
    /// Replays a trace in a world that has the files of `tree`; returns the differences, and how
    /// many calls were made.
    pub(super) fn run(tree: &str, trace: &str) -> (Vec<String>, usize) {
        let world = World::with_frames(32768);
        let replay = Rc::new(Replay {
            trace: RefCell::new(Trace::parse(trace)),
            ids: RefCell::default(),
            addresses: RefCell::default(),
            handled: RefCell::default(),
            differences: RefCell::default(),
            calls: RefCell::default(),
            entry: RefCell::default(),
        });
        let program = replay.clone();
        *replay.entry.borrow_mut() = world.code(move |p| {
            let replay = program.clone();
            Box::pin(async move { replay.go_on(p).await })
        });
        world.install_devices();
        world.install_proc();
        replay.install(&world, tree);
        let first = replay.clone();
        crate::run_in(&world, async move |p| first.start(p).await);
        let calls = *replay.calls.borrow();
        (replay.differences.borrow().clone(), calls)
    }

    /// Makes the files of a tree, whose lines are "d MODE PATH", "f MODE SIZE PATH", "x MODE PATH"
    /// (a program).
    fn install(&self, world: &Rc<World>, tree: &str) {
        for line in tree.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let mode = || u16::from_str_radix(words[1], 8).unwrap();
            match words[0] {
                "d" => world.make_directory(words[2], mode()),
                "x" => world.install(words[2], mode(), &elf(*self.entry.borrow())),
                "f" => world.install_sparse(words[3], mode(), words[2].parse().unwrap()),
                other => panic!("{other} in a tree"),
            }
        }
    }

    /// Starts the first process as the recorder did, with files for its input and output.
    async fn start(self: &Rc<Self>, p: &mut Program) -> Result<(), Gone> {
        self.prepare(p).await?;
        let first = self.trace.borrow().first;
        self.ids.borrow_mut().insert(first, 1);
        for (number, (path, flags)) in
            [("/in", 0), ("/out", 0o1101), ("/err", 0o1101)].into_iter().enumerate()
        {
            let path = p.string(SCRATCH, path).await?;
            assert_eq!(p.call(2, &[path, flags | 0o100, 0o644]).await?, number as i64);
        }
        let work = p.string(SCRATCH, "/macadamia").await?;
        assert_eq!(p.call(80, &[work]).await?, 0);
        let child = self.clone();
        let made = p
            .fork(move |p| {
                let replay = child.clone();
                Box::pin(async move {
                    let own = p.call(39, &[]).await? as u64;
                    replay.ids.borrow_mut().insert(first, own);
                    replay.go_on(p).await
                })
            })
            .await?;
        assert!(made > 0);
        while p.wait(0).await?.0 > 0 {}
        for number in 0..3 {
            p.call(3, &[number]).await?;
        }
        Ok(())
    }

    /// Maps the memory for arguments. A process that shares it with another one maps it again.
    async fn prepare(&self, p: &mut Program) -> Result<(), Gone> {
        let map = [SCRATCH, SLOT * SLOTS, 3, 0x32, u64::MAX, 0];
        assert_eq!(p.call(9, &map).await?, SCRATCH as i64);
        Ok(())
    }

    /// The id that the process `p` has in the trace.
    async fn traced(&self, p: &mut Program) -> u64 {
        let own = u64::from(p.thread.pid().number());
        *self.ids.borrow().iter().find(|(_, here)| **here == own).expect("a process of the trace").0
    }

    /// Continues the trace in a process that has just been made, or has executed a program.
    async fn go_on(self: &Rc<Self>, p: &mut Program) -> Result<(), Gone> {
        let pid = self.traced(p).await;
        self.addresses.borrow_mut().entry(pid).or_default();
        self.prepare(p).await?;
        loop {
            let step = self.trace.borrow_mut().processes.get_mut(&pid).and_then(|own| own.steps.pop_front());
            match step {
                None => return p.exit(0).await,
                Some(Step::Call(record)) => self.make(p, pid, &record).await?,
                Some(Step::Handled(number)) => {
                    // Equal signals that are pending together are one, so how often the handler
                    // runs depends on timing.
                    let ran = || self.handled.borrow().contains(&(pid, number));
                    for _ in 0..200 {
                        if ran() {
                            break;
                        }
                        p.pass(1000).await?;
                    }
                    if !ran() {
                        self.differ(format!("process {pid}: the handler of signal {number} did not run"));
                    }
                }
            }
        }
    }

    fn differ(&self, text: String) {
        self.differences.borrow_mut().push(text);
    }

    /// Makes a signal handler that makes the calls that it made in the trace.
    fn handler(self: &Rc<Self>, world: &World, pid: u64, number: u32) -> u64 {
        let replay = self.clone();
        world.code(move |p| {
            let replay = replay.clone();
            Box::pin(async move {
                let run = {
                    let mut trace = replay.trace.borrow_mut();
                    let own = trace.processes.get_mut(&pid);
                    own.and_then(|own| own.handlers.get_mut(&number)).and_then(|runs| runs.pop_front())
                };
                for record in run.unwrap_or_default() {
                    replay.make(p, pid, &record).await?;
                }
                replay.handled.borrow_mut().insert((pid, number));
                Ok(())
            })
        })
    }

    /// Makes one call and compares its result with that in the trace.
    async fn make(self: &Rc<Self>, p: &mut Program, pid: u64, record: &Record) -> Result<(), Gone> {
        let name = record.name.as_str();
        let Some(number) = (0..500).find(|number| linux::name(*number) == Some(name)) else {
            panic!("{name} is no call");
        };
        let expected = match &record.ended {
            Ended::With(value) => *value,
            Ended::Failed(error) => match Error::ALL.iter().find(|known| known.name() == error) {
                Some(known) => -i64::from(linux::errno::number(*known)),
                None => panic!("{error} is no error"),
            },
            Ended::Not => 0,
        };
        *self.calls.borrow_mut() += 1;
        let got = match name {
            "exit_group" | "exit" => return p.exit(word(record, 0)).await,
            "execve" => self.execute(p, pid, record, expected).await?,
            "clone" | "vfork" | "fork" | "clone3" => self.split(p, pid, record, expected).await?,
            "wait4" => self.wait(p, record, expected).await?,
            "brk" | "mmap" | "mremap" | "munmap" | "mprotect" | "madvise" | "mincore" => {
                self.map(p, pid, record, number, expected).await?
            }
            "rt_sigaction" => self.action(p, pid, record).await?,
            "read" => self.read(p, record, expected).await?,
            _ => self.plain(p, pid, record, number, expected).await?,
        };
        let Some(got) = got else { return Ok(()) };
        if got != expected && !KNOWN.iter().any(|(known, _)| *known == name) {
            let shown: Vec<_> = record.arguments.iter().map(|(_, value)| format!("{value:?}")).collect();
            let mut shown = shown.join(", ");
            shown.truncate(200);
            self.differ(format!("line {}: {name}({shown}) = {got} instead of {expected}", record.line));
        }
        Ok(())
    }

    async fn execute(
        &self,
        p: &mut Program,
        pid: u64,
        record: &Record,
        expected: i64,
    ) -> Result<Option<i64>, Gone> {
        let Value::Text(path, _) = &record.arguments[0].1 else { panic!("no path") };
        let path = p.string(SCRATCH, std::str::from_utf8(path).unwrap()).await?;
        p.store(SCRATCH + SLOT, &bytes(&[path, 0])).await?;
        if expected == 0 {
            self.addresses.borrow_mut().insert(pid, Addresses::default());
        }
        p.call(59, &[path, SCRATCH + SLOT, 0]).await.map(Some)
    }

    /// Makes the calls that make processes. clone3 is made as the clone that is equivalent to it.
    async fn split(
        self: &Rc<Self>,
        p: &mut Program,
        pid: u64,
        record: &Record,
        expected: i64,
    ) -> Result<Option<i64>, Gone> {
        let named =
            |name: &str| record.arguments.iter().find(|(known, _)| known == name).map(|(_, v)| number(v));
        let (call, flags) = match record.name.as_str() {
            "clone" => (56, named("flags").unwrap_or(17)),
            "clone3" => {
                let fields = &record.arguments[0].1;
                (56, field(fields, "flags") | field(fields, "exit_signal"))
            }
            "vfork" => (58, 0),
            _ => (57, 0),
        };
        const PLACES: u64 = 0x10_0000 | 0x20_0000 | 0x100_0000 | 0x8_0000;
        let stack = if flags & 0x100 != 0 { STACK } else { 0 };
        let arguments = [flags & !PLACES, stack, 0, 0, 0];
        let (replay, id) = (self.clone(), expected as u64);
        let addresses = self.addresses.borrow()[&pid].clone();
        self.addresses.borrow_mut().insert(id, addresses);
        let got = p
            .spawn(call, if call == 56 { &arguments } else { &[] }, move |p| {
                let replay = replay.clone();
                Box::pin(async move {
                    let own = u64::from(p.thread.pid().number());
                    replay.ids.borrow_mut().insert(id, own);
                    replay.go_on(p).await
                })
            })
            .await?;
        if got > 0 && expected > 0 {
            self.ids.borrow_mut().insert(id, got as u64);
            return Ok(None);
        }
        Ok(Some(got))
    }

    /// Makes a wait4 for the child that it reported in the trace, since the children may end in
    /// another order.
    async fn wait(&self, p: &mut Program, record: &Record, expected: i64) -> Result<Option<i64>, Gone> {
        const NO_HANG: u64 = 1;
        let (mut who, mut options) = (word(record, 0), word(record, 2));
        if expected == 0 {
            // In the trace, no child had ended yet; that depends on timing.
            return Ok(None);
        }
        if expected > 0 {
            who = self.ids.borrow().get(&(expected as u64)).copied().unwrap_or(u64::MAX);
            options &= !NO_HANG;
        }
        let got = p.call(61, &[who, SCRATCH, options, 0]).await?;
        if expected < 0 || got != who as i64 {
            return Ok(Some(got));
        }
        let status = p.load_u32(SCRATCH).await?;
        if let Some(wanted) = status_of(&record.arguments[1].1)
            && wanted != status
        {
            self.differ(format!("line {}: status {status:#x} instead of {wanted:#x}", record.line));
        }
        Ok(None)
    }

    /// Makes calls on addresses, which differ from those in the trace.
    async fn map(
        &self,
        p: &mut Program,
        pid: u64,
        record: &Record,
        call: u64,
        expected: i64,
    ) -> Result<Option<i64>, Gone> {
        const FIXED: u64 = 0x10;
        let mut arguments: Vec<u64> = (0..record.arguments.len()).map(|index| word(record, index)).collect();
        let here = |address: u64| self.addresses.borrow()[&pid].here(address);
        if record.name == "brk" {
            let heap = self.addresses.borrow()[&pid].heap;
            let asked = match (arguments[0], heap) {
                (0, _) | (_, None) => 0,
                (address, Some((there, here))) => here.wrapping_add(address.wrapping_sub(there)),
            };
            let got = p.call(call, &[asked]).await? as u64;
            let (there, first) = heap.unwrap_or((expected as u64, got));
            self.addresses.borrow_mut().get_mut(&pid).unwrap().heap = Some((there, first));
            // Only the distance from the first end of the heap can be compared.
            return Ok(Some(got.wrapping_sub(first).wrapping_add(there) as i64));
        }
        if record.name == "mmap" {
            if arguments[3] & FIXED != 0 {
                let Some(address) = here(arguments[0]) else { return Ok(None) };
                arguments[0] = address;
            } else {
                arguments[0] = 0;
            }
        } else {
            // A mapping that the program's loader made does not exist in this run.
            let Some(address) = here(arguments[0]) else { return Ok(None) };
            arguments[0] = address;
        }
        let got = p.call(call, &arguments).await?;
        if matches!(record.name.as_str(), "mmap" | "mremap") && got > 0 && expected > 0 {
            let length = if record.name == "mmap" { arguments[1] } else { arguments[2] };
            let mut addresses = self.addresses.borrow_mut();
            let ranges = &mut addresses.get_mut(&pid).unwrap().ranges;
            ranges.push((expected as u64, length.next_multiple_of(4096), got as u64));
            return Ok(None);
        }
        Ok(Some(got))
    }

    async fn action(
        self: &Rc<Self>,
        p: &mut Program,
        pid: u64,
        record: &Record,
    ) -> Result<Option<i64>, Gone> {
        let signal = word(record, 0);
        let mut new = word(record, 1);
        if let Value::Structure(_) = &record.arguments[1].1 {
            let action = &record.arguments[1].1;
            let handler = match field(action, "sa_handler") {
                default @ (0 | 1) => default,
                _ => self.handler(&p.world.clone(), pid, signal as u32),
            };
            const RESTORER: u64 = 0x0400_0000;
            let mask = field_value(action, "sa_mask").map_or(0, set);
            let words = [handler, field(action, "sa_flags") | RESTORER, 0xdead_0000, mask];
            new = SCRATCH;
            p.store(new, &bytes(&words)).await?;
        }
        let old = if record.arguments[2].1 == Value::Number(0) { 0 } else { SCRATCH + SLOT };
        p.call(13, &[signal, new, old, word(record, 3)]).await.map(Some)
    }

    /// Makes a read. The bytes from a pipe may come in other parts than in the trace.
    async fn read(&self, p: &mut Program, record: &Record, expected: i64) -> Result<Option<i64>, Gone> {
        let (descriptor, room) = (word(record, 0), word(record, 2));
        let file = p.thread.descriptors().get(descriptor as i32);
        let is_pipe = file.as_ref().is_ok_and(|file| file.file_type() == FileType::Fifo);
        let place = file.as_ref().ok().and_then(|file| file.location());
        if place.is_some_and(|place| place.vnode.file_system().status().kind == "proc") && expected > 0 {
            // The contents of /proc differ from Linux.
            let got = p.call(0, &[descriptor, SCRATCH, room.min(SLOT)]).await?;
            return Ok(if got > 0 { None } else { Some(got) });
        }
        if !is_pipe || expected <= 0 {
            // The addresses that are bad on purpose are small numbers.
            let address = match record.arguments[1].1 {
                Value::Number(address) if address < 1 << 32 => address,
                _ => SCRATCH,
            };
            let got = p.call(0, &[descriptor, address, room.min(SLOT)]).await?;
            self.compare(p, record, 1, address, got).await?;
            return Ok(Some(got));
        }
        let mut got = 0;
        while got < expected {
            let count = p.call(0, &[descriptor, SCRATCH + got as u64, (expected - got) as u64]).await?;
            if count <= 0 {
                return Ok(Some(if got > 0 { got } else { count }));
            }
            got += count;
        }
        self.compare(p, record, 1, SCRATCH, got).await?;
        Ok(Some(got))
    }

    /// Compares bytes that a call returned with those of the trace. Files of the tree contain only
    /// zeros.
    async fn compare(
        &self,
        p: &mut Program,
        record: &Record,
        index: usize,
        at: u64,
        count: i64,
    ) -> Result<(), Gone> {
        let Value::Text(expected, _) = &record.arguments[index].1 else { return Ok(()) };
        let count = expected.len().min(count.max(0) as usize);
        let mut found = Vec::new();
        for offset in 0..count {
            found.extend(p.load::<1>(at + offset as u64).await?);
        }
        if found != expected[..count] && found.iter().any(|byte| *byte != 0) {
            self.differ(format!("line {}: {} returned other bytes: {found:?}", record.line, record.name));
        }
        Ok(())
    }

    /// Makes a call whose arguments can be taken as they are shown: numbers, strings to read,
    /// memory to write.
    async fn plain(
        &self,
        p: &mut Program,
        pid: u64,
        record: &Record,
        call: u64,
        expected: i64,
    ) -> Result<Option<i64>, Gone> {
        let name = record.name.as_str();
        let mut arguments = Vec::new();
        for (index, (_, value)) in record.arguments.iter().enumerate() {
            let slot = SCRATCH + SLOT * index as u64;
            arguments.push(match value {
                // The number is an address of the traced program.
                Value::Number(value) if *value >= 1 << 32 && *value < 1 << 47 && name != "lseek" => {
                    // An address that is not aligned stays so.
                    self.addresses.borrow()[&pid].here(*value).unwrap_or(slot + value % 8)
                }
                Value::Number(value) => match name {
                    "kill" | "setpgid" | "getpgid" | "tgkill" => {
                        self.ids.borrow().get(value).copied().unwrap_or(*value)
                    }
                    _ => *value,
                },
                Value::Text(text, cut) => {
                    let mut text = text.clone();
                    let sized = matches!(name, "write" | "pwrite64" | "sendto" | "setxattr" | "fsetxattr");
                    let next = record.arguments.get(index + 1);
                    if let (true, Some((_, Value::Number(length)))) = (*cut && sized, next) {
                        text.resize(*length as usize, b'.');
                    }
                    if *cut && matches!(text.len(), 200 | 4095) {
                        // The path was cut in the trace: make it long again.
                        text.resize(5000, text[text.len() - 1]);
                    }
                    text.push(0);
                    p.store(slot, &text).await?;
                    slot
                }
                Value::List(_) | Value::Not(_) if name.starts_with("rt_sig") || name == "signalfd4" => {
                    p.store(slot, &bytes(&[set(value)])).await?;
                    slot
                }
                Value::List(list) if matches!(name, "writev" | "readv") => {
                    self.ranges(p, list, slot).await?;
                    slot
                }
                Value::Structure(_) => {
                    self.structure(p, value, slot).await?;
                    slot
                }
                Value::List(list) if name == "poll" => {
                    let entry =
                        |entry: &Value| field(entry, "fd") & 0xffff_ffff | field(entry, "events") << 32;
                    p.store(slot, &bytes(&list.iter().map(entry).collect::<Vec<_>>())).await?;
                    slot
                }
                Value::List(list) if name == "utimensat" => {
                    for (at, time) in list.iter().enumerate() {
                        self.structure(p, time, slot + 16 * at as u64).await?;
                    }
                    slot
                }
                Value::List(_) | Value::Not(_) | Value::Other(_) => slot,
            });
        }
        let got = p.call(call, &arguments).await?;
        match name {
            "pread64" | "readlink" | "getcwd" | "getxattr" if got > 0 => {
                let index = if matches!(name, "getcwd") { 0 } else { 1 };
                self.compare(p, record, index, arguments[index], got).await?;
            }
            "newfstatat" | "stat" | "fstat" | "lstat" if got == 0 && expected == 0 => {
                let index = if name == "newfstatat" { 2 } else { 1 };
                self.compare_status(p, record, index, arguments[index]).await?;
            }
            "pipe" | "pipe2" if got == 0 && expected == 0 => {
                let Value::List(numbers) = &record.arguments[0].1 else { return Ok(Some(got)) };
                let here = [p.load_u32(arguments[0]).await?, p.load_u32(arguments[0] + 4).await?];
                if here.map(u64::from)[..] != [number(&numbers[0]), number(&numbers[1])] {
                    self.differ(format!("line {}: descriptors {here:?}", record.line));
                }
            }
            "rt_sigprocmask" if got == 0 && arguments[2] != 0 => {
                let (here, wanted) = (p.load_u64(arguments[2]).await?, set(&record.arguments[2].1));
                if here != wanted {
                    self.differ(format!("line {}: mask {here:#x} instead of {wanted:#x}", record.line));
                }
            }
            _ => {}
        }
        let ids =
            ["getpid", "getppid", "gettid", "set_tid_address", "getpgrp", "getpgid", "setsid", "getsid"];
        if ids.contains(&name) && expected > 0 {
            // The parents of the recorder do not exist in this run.
            let known = self.ids.borrow().get(&(expected as u64)).copied();
            return Ok(known.map(|known| if got == known as i64 { expected } else { got }));
        }
        // Which files are ready at this moment depends on timing.
        if name == "poll" && got > 0 && expected > 0 {
            return Ok(None);
        }
        // The sizes of entries depend on what else is in the directory, so the count only has to be
        // positive.
        if name == "getdents64" && got > 0 && expected > 0 {
            return Ok(None);
        }
        Ok(Some(got))
    }

    async fn ranges(&self, p: &mut Program, list: &[Value], slot: u64) -> Result<(), Gone> {
        let mut data = slot + 0x1000;
        let mut words = Vec::new();
        for range in list {
            let length = field(range, "iov_len");
            if let Some(Value::Text(text, _)) = field_value(range, "iov_base") {
                p.store(data, text).await?;
            }
            words.extend([data, length]);
            data += length.min(0x1000).next_multiple_of(8);
        }
        p.store(slot, &bytes(&words)).await
    }

    /// Stores a structure that a call reads (or overwrites with its result).
    async fn structure(&self, p: &mut Program, value: &Value, at: u64) -> Result<(), Gone> {
        let Value::Structure(fields) = value else { return Ok(()) };
        let bytes = match fields.first().map(|(name, _)| name.as_str()) {
            Some("sa_family") => {
                let Some((_, Value::Text(path, _))) = fields.get(1) else { return Ok(()) };
                let mut path = path.clone();
                path.resize(126, 0);
                [&(field(value, "sa_family") as u16).to_le_bytes()[..], &path].concat()
            }
            Some("l_type") => {
                let kinds = field(value, "l_type") & 0xffff | (field(value, "l_whence") & 0xffff) << 16;
                bytes(&[kinds, field(value, "l_start"), field(value, "l_len"), 0])
            }
            Some("events") => [&(field(value, "events") as u32).to_le_bytes()[..], &[0; 8]].concat(),
            _ => {
                let mut words = Vec::new();
                flatten(value, &mut words);
                bytes(&words)
            }
        };
        p.store(at, &bytes).await
    }

    async fn compare_status(
        &self,
        p: &mut Program,
        record: &Record,
        index: usize,
        at: u64,
    ) -> Result<(), Gone> {
        let status = &record.arguments[index].1;
        let here = [
            ("st_mode", u64::from(p.load_u32(at + 24).await?)),
            ("st_uid", p.load_u32(at + 28).await?.into()),
            ("st_gid", p.load_u32(at + 32).await?.into()),
            ("st_size", p.load_u64(at + 48).await?),
        ];
        let is_directory = here[0].1 & 0o170000 == 0o040000;
        for (name, value) in here {
            let Some(wanted) = field_value(status, name).map(number) else { continue };
            // The sizes of directories and of programs differ from those in the trace.
            let is_program = value == elf(0).len() as u64;
            if value != wanted && !(name == "st_size" && (is_directory || is_program)) {
                self.differ(format!("line {}: {name} {value:#o} instead of {wanted:#o}", record.line));
            }
        }
        Ok(())
    }
}

fn number(value: &Value) -> u64 {
    if let Value::Number(number) = value { *number } else { 0 }
}

fn word(record: &Record, index: usize) -> u64 {
    record.arguments.get(index).map_or(0, |(_, value)| number(value))
}

fn field_value<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    let Value::Structure(fields) = value else { return None };
    fields.iter().find(|(known, _)| known == name).map(|(_, value)| value)
}

/// All numbers in a structure, each as a 64-bit word.
fn flatten(value: &Value, words: &mut Vec<u64>) {
    match value {
        Value::Structure(fields) => fields.iter().for_each(|(_, value)| flatten(value, words)),
        other => words.push(number(other)),
    }
}

fn field(value: &Value, name: &str) -> u64 {
    field_value(value, name).map_or(0, number)
}

/// A set of signals as a mask.
fn set(value: &Value) -> u64 {
    let bits = |list: &[Value]| list.iter().fold(0, |bits, signal| bits | 1 << (number(signal) - 1));
    match value {
        Value::List(list) => bits(list),
        Value::Not(list) => !bits(list),
        _ => 0,
    }
}

/// The exit status of a process, from strace's description of it.
fn status_of(value: &Value) -> Option<u32> {
    let Value::List(list) = value else { return None };
    let Some(Value::Structure(fields)) = list.first() else { return None };
    let Some((_, Value::Other(text))) = fields.first() else { return None };
    let exited = text.strip_prefix("WIFEXITED(s) && WEXITSTATUS(s) == ")?;
    exited.trim().parse::<u32>().ok().map(|status| status << 8)
}
