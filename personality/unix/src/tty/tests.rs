//! Tests of the line discipline, job control and pseudoterminals.

use super::*;
use crate::file::OpenFile;
use crate::poll::Readiness;
use crate::process_context::{FileSignal, ProcessContext, ProcessId, SessionHost};
use crate::testing::{Task, TestProcess, World, meanwhile, now};
use crate::vfs::{At, Mode, MountFlags, OpenFlags};
use crate::{Error, Identity, Result};
use core::time::Duration;
use proptest::prelude::*;
use std::sync::{Arc, Mutex};

#[derive(Default)]
struct Host(Mutex<Vec<(char, ProcessId, Option<FileSignal>)>>);

impl SessionHost for Host {
    fn signal_group(&self, group: ProcessId, signal: FileSignal) {
        self.0.lock().unwrap().push(('g', group, Some(signal)));
    }
    fn signal_process(&self, process: ProcessId, signal: FileSignal) {
        self.0.lock().unwrap().push(('p', process, Some(signal)));
    }
    fn lose_terminal(&self, session: ProcessId) {
        self.0.lock().unwrap().push(('s', session, None));
    }
}

/// A pseudoterminal with both sides open; process 10 leads the session and the foreground group.
struct Setup {
    w: World,
    host: Arc<Host>,
    ptys: Arc<Ptys>,
    master: Arc<OpenFile>,
    slave: Arc<OpenFile>,
}

fn setup() -> &'static Setup {
    let w = World::new();
    let host = Arc::new(Host::default());
    let ptys = Ptys::new(w.environment.clone(), host.clone(), PtsOptions::default());
    w.mkdir("/pts");
    now(w.caller().mount(b"/pts", ptys.root(), "devpts", MountFlags::empty())).unwrap();
    let master = ptys.create(&w.identity).unwrap();
    master.set_locked(false);
    let slave = w.open("/pts/0", OpenFlags::READ_WRITE).unwrap();
    slave.set_flag(OpenFlags::NONBLOCK, true);
    let master = OpenFile::of_object(master, OpenFlags::READ_WRITE | OpenFlags::NONBLOCK);
    Box::leak(Box::new(Setup { w, host, ptys, master, slave }))
}

impl Setup {
    fn terminal(&self) -> Arc<Terminal> {
        self.slave.object().unwrap().terminal().unwrap().clone()
    }
    fn change(&self, change: impl Fn(&mut Settings)) {
        let mut settings = self.terminal().settings();
        change(&mut settings);
        now(self.terminal().set_settings(&self.w.process, settings, SetWhen::Now)).unwrap();
    }
    fn type_(&self, text: &[u8]) -> Result<usize> {
        self.w.write(&self.master, text)
    }
    fn screen(&self) -> String {
        match self.w.read(&self.master, 100_000) {
            Ok(bytes) => bytes.iter().map(|&b| b as char).collect(),
            Err(error) => error.name().into(),
        }
    }
    fn read(&self) -> Result<String> {
        self.w.read(&self.slave, 4096).map(|bytes| bytes.iter().map(|&b| b as char).collect())
    }
    fn signals(&self) -> Vec<(char, ProcessId, Option<FileSignal>)> {
        core::mem::take(&mut self.host.0.lock().unwrap())
    }
    fn reading(&'static self, count: usize) -> Task<Result<Vec<u8>>> {
        let slave = self.slave.clone();
        slave.set_flag(OpenFlags::NONBLOCK, false);
        Task::new(async move {
            let mut to = crate::Bytes::empty(count);
            slave.read(&self.w.caller(), &mut to).await.map(|_| to.done().to_vec())
        })
    }
}

#[test]
fn a_devpts_that_is_mounted_again_gives_new_terminals_its_options() {
    let setup = setup();
    let remount =
        |options: &[u8]| now(setup.w.caller().remount(b"/pts", MountFlags::empty(), false, Some(options)));
    remount(b"gid=7,mode=666,ptmxmode=0").unwrap();
    let made = setup.ptys.create(&setup.w.identity).unwrap();
    let of = |path: &str| setup.w.open(path, OpenFlags::PATH).unwrap().location().unwrap().vnode.metadata();
    let (old, new) = (of("/pts/0"), of("/pts/1"));
    assert_eq!((old.group, old.mode), (5, Mode::new(0o620)), "it stays as it is");
    assert_eq!((new.group, new.mode), (7, Mode::new(0o666)));
    drop(made);
    assert_eq!(remount(b"gid=x"), Err(Error::EINVAL));
    assert_eq!(remount(b"size=1"), Err(Error::EINVAL));
    assert_eq!(remount(b"uid=1"), Err(Error::EINVAL));
}

#[test]
fn a_line_is_edited_and_echoed() {
    let s = setup();
    // Each case has: the typed bytes, the bytes shown, the bytes read.
    let cases: &[(&[u8], &str, &str)] = &[
        (b"hello\r", "hello\r\n", "hello\n"),
        (b"abc\x7fd\n", "abc\x08 \x08d\r\n", "abd\n"),
        (b"abc\x15xy\n", "abc\x08 \x08\x08 \x08\x08 \x08xy\r\n", "xy\n"),
        (b"one two\x17\n", "one two\x08 \x08\x08 \x08\x08 \x08\r\n", "one \n"),
        (b"one  \x17\x17x\n", "one  \x08 \x08\x08 \x08\x08 \x08\x08 \x08\x08 \x08x\r\n", "x\n"),
        (b"a\x01\x7fb\n", "a^A\x08 \x08\x08 \x08b\r\n", "ab\n"),
        (b"a\x16\x03b\n", "a^\x08^Cb\r\n", "a\x03b\n"),
        (b"ab\x12c\n", "ab^R\r\nabc\r\n", "abc\n"),
        (b"\x7f\x15\x17x\n", "x\r\n", "x\n"),
        ("é\x7fx\n".as_bytes(), "Ã©\x08 \x08x\r\n", "x\n"),
        (b"a\tb\x7f\x7fc\n", "a\tb\x08 \x08\x08\x08\x08\x08\x08\x08\x08c\r\n", "ac\n"),
        (b"\x1b[A\n", "^[[A\r\n", "\x1b[A\n"),
    ];
    for (typed, shown, read) in cases {
        assert_eq!(s.type_(typed), Ok(typed.len()));
        assert_eq!(s.screen(), *shown, "{typed:?}");
        assert_eq!(s.read().as_deref(), Ok(*read), "{typed:?}");
    }
    assert_eq!(s.read(), Err(Error::EAGAIN));
}

#[test]
fn a_line_ends_at_newline_end_of_file_or_eol() {
    let s = setup();
    s.type_(b"\x04").unwrap();
    assert_eq!(s.read(), Ok("".into()), "end of file");
    s.type_(b"part\x04").unwrap();
    assert_eq!(s.read(), Ok("part".into()));
    s.type_(b"a\nb\n").unwrap();
    assert_eq!(s.slave.object().unwrap().readable_bytes(), Ok(4));
    assert_eq!(s.read(), Ok("a\n".into()), "a read gets one line");
    assert_eq!(s.w.read(&s.slave, 1), Ok(b"b".to_vec()));
    assert_eq!(s.read(), Ok("\n".into()), "a line can be read in pieces");
    s.change(|t| t.characters.end_of_line = b';');
    s.type_(b"x;y").unwrap();
    assert_eq!(s.read(), Ok("x;".into()));
    assert!(!s.slave.readiness().contains(Readiness::READ));
    s.type_(b"\r").unwrap();
    assert!(s.slave.readiness().contains(Readiness::READ));
    s.change(|t| t.input = InputModes::NL_TO_CR);
    s.type_(b"a\nb\x04").unwrap();
    assert_eq!(s.read(), Ok("y\n".into()));
    assert_eq!(s.read(), Ok("a\rb".into()));
    s.change(|t| t.input = InputModes::IGNORE_CR);
    s.type_(b"a\rb\n").unwrap();
    assert_eq!(s.read(), Ok("ab\n".into()));
}

#[test]
fn echo_follows_the_local_modes() {
    let s = setup();
    s.change(|t| t.local.remove(LocalModes::ECHO));
    s.type_(b"secret\n").unwrap();
    assert_eq!(s.screen(), "EAGAIN");
    s.change(|t| t.local |= LocalModes::ECHO_NL);
    s.type_(b"secret\n").unwrap();
    assert_eq!(s.screen(), "\r\n");
    s.change(|t| t.local = Settings::default().local.difference(LocalModes::KILL_ERASES));
    s.type_(b"abc\x15").unwrap();
    assert_eq!(s.screen(), "abc^U\r\n");
    s.change(|t| t.local = Settings::default().local.difference(LocalModes::ECHO_ERASE));
    s.type_(b"ab\x7f").unwrap();
    assert_eq!(s.screen(), "ab^?");
    s.change(|t| t.local |= LocalModes::ECHO_PRINT);
    s.type_(b"cd\x7f\x7fe\n").unwrap();
    assert_eq!(s.screen(), "cd\\dc/e\r\n");
}

#[test]
fn output_is_converted_as_the_output_modes_say() {
    let s = setup();
    s.w.write(&s.slave, b"a\nb").unwrap();
    assert_eq!(s.screen(), "a\r\nb");
    s.change(|t| t.output |= OutputModes::EXPAND_TABS);
    s.w.write(&s.slave, b"\rab\tc\td").unwrap();
    assert_eq!(s.screen(), "\rab      c       d");
    s.change(|t| t.output = OutputModes::PROCESS | OutputModes::NO_CR_AT_START | OutputModes::LOWER_TO_UPPER);
    s.w.write(&s.slave, b"\r\rx\r").unwrap();
    assert_eq!(s.screen(), "\rX\r");
    s.change(|t| t.output = OutputModes::CR_TO_NL.union(OutputModes::PROCESS));
    s.w.write(&s.slave, b"x\r").unwrap();
    assert_eq!(s.screen(), "x\n");
    s.change(|t| t.output = OutputModes::empty());
    s.w.write(&s.slave, b"a\nb\t").unwrap();
    assert_eq!(s.screen(), "a\nb\t");
}

#[test]
fn special_characters_send_signals() {
    let s = setup();
    for (byte, signal, shown) in
        [(3, FileSignal::Interrupt, "^C"), (28, FileSignal::Quit, "^\\"), (26, FileSignal::Stop, "^Z")]
    {
        s.type_(b"typed").unwrap();
        s.screen();
        s.type_(&[byte]).unwrap();
        assert_eq!(s.signals(), [('g', 10, Some(signal))]);
        assert_eq!(s.screen(), shown);
        s.type_(b"\n").unwrap();
        assert_eq!(s.read(), Ok("\n".into()), "what was typed is flushed");
        s.screen();
    }
    s.change(|t| t.local |= LocalModes::NO_FLUSH);
    s.type_(b"kept\x03\n").unwrap();
    assert_eq!(s.read(), Ok("kept\n".into()));
    s.signals();
    s.change(|t| t.local.remove(LocalModes::SIGNALS));
    s.type_(b"\x03\n").unwrap();
    assert_eq!(s.read(), Ok("\x03\n".into()));
    s.change(|t| t.input |= InputModes::BREAK_INTERRUPTS);
    s.terminal().receive_break();
    assert_eq!(s.signals(), [('g', 10, Some(FileSignal::Interrupt))]);
}

#[test]
fn stop_and_start_characters_stop_and_start_output() {
    let s = setup();
    s.type_(b"\x13").unwrap();
    s.w.write(&s.slave, b"held").unwrap();
    assert_eq!(s.screen(), "EAGAIN");
    s.type_(b"\x11").unwrap();
    assert_eq!(s.screen(), "held");
    now(s.terminal().flow(&s.w.process, Flow::StopOutput)).unwrap();
    assert_eq!(s.w.write(&s.slave, &[b'x'; 10_000]), Ok(8191));
    assert_eq!(s.w.write(&s.slave, b"x"), Err(Error::EAGAIN));
    assert!(!s.slave.readiness().contains(Readiness::WRITE));
    let terminal = s.terminal();
    let mut draining = Task::new(async move { terminal.drain().await });
    draining.waits();
    now(s.terminal().flow(&s.w.process, Flow::StartOutput)).unwrap();
    draining.waits();
    assert_eq!(s.screen().len(), 8191);
    assert_eq!(draining.finish(), Ok(()));
    s.change(|t| t.input |= InputModes::ANY_STARTS);
    s.type_(b"\x13").unwrap();
    s.w.write(&s.slave, b"held").unwrap();
    s.type_(b"x").unwrap();
    assert_eq!(s.screen(), "heldx");
    s.w.write(&s.slave, b"lost").unwrap();
    now(s.terminal().flush(&s.w.process, Flush::Both)).unwrap();
    assert_eq!(s.screen(), "EAGAIN");
}

#[test]
fn a_raw_read_waits_for_vmin_bytes_and_vtime() {
    let s = setup();
    let raw = |minimum, time| {
        s.change(|t| {
            t.local = LocalModes::empty();
            t.characters.minimum = minimum;
            t.characters.time = time;
        })
    };
    let tenth = Duration::from_millis(100);
    raw(1, 0);
    s.type_(b"a\x03\x04\n").unwrap();
    assert_eq!(s.read(), Ok("a\x03\x04\r".replace('\r', "\n")));
    assert_eq!(s.read(), Err(Error::EAGAIN));
    raw(0, 0);
    assert_eq!(s.read(), Ok("".into()));
    raw(3, 0);
    let mut reader = s.reading(10);
    reader.waits();
    s.type_(b"ab").unwrap();
    reader.waits();
    assert!(!s.slave.readiness().contains(Readiness::READ));
    s.type_(b"c").unwrap();
    assert_eq!(reader.finish(), Ok(b"abc".to_vec()));
    s.type_(b"xy").unwrap();
    assert_eq!(s.reading(2).finish(), Ok(b"xy".to_vec()), "a smaller buffer needs no more");
    raw(0, 5);
    let mut reader = s.reading(10);
    reader.waits();
    s.w.environment.advance(5 * tenth);
    assert_eq!(reader.finish(), Ok(vec![]));
    let mut reader = s.reading(10);
    reader.waits();
    s.type_(b"q").unwrap();
    assert_eq!(reader.finish(), Ok(b"q".to_vec()));
    raw(3, 2);
    let mut reader = s.reading(10);
    reader.waits();
    s.w.environment.advance(50 * tenth);
    reader.waits();
    s.type_(b"1").unwrap();
    reader.waits();
    s.w.environment.advance(tenth);
    s.type_(b"2").unwrap();
    reader.waits();
    s.w.environment.advance(tenth);
    reader.waits();
    s.w.environment.advance(tenth);
    assert_eq!(reader.finish(), Ok(b"12".to_vec()), "the time runs between bytes");
}

#[test]
fn pending_input_can_be_read_after_a_change_of_mode() {
    let s = setup();
    s.type_(b"line\npart").unwrap();
    s.change(|t| t.local.remove(LocalModes::CANONICAL));
    assert_eq!(s.read(), Ok("line\npart".into()));
    s.type_(b"raw").unwrap();
    s.change(|t| t.local |= LocalModes::CANONICAL);
    assert_eq!(s.read(), Ok("raw".into()));
    s.type_(b"gone\nx").unwrap();
    let settings = s.terminal().settings();
    s.screen();
    now(s.terminal().set_settings(&s.w.process, settings, SetWhen::Flushed)).unwrap();
    assert_eq!(s.read(), Err(Error::EAGAIN));
}

#[test]
fn input_beyond_the_buffer_waits_or_is_lost() {
    let s = setup();
    s.change(|t| t.local.remove(LocalModes::ECHO));
    // The line has no end, so it cannot be read yet. Bytes that do not fit are lost, and the line
    // can still be ended.
    assert_eq!(s.type_(&[b'x'; 8192]), Ok(8192));
    assert_eq!(s.type_(b"\n"), Ok(1));
    assert_eq!(s.read().unwrap().len(), 4096);
    // Complete lines wait for the reader, so that a paste loses nothing.
    let paste: Vec<u8> = (0..1000).flat_map(|i| format!("line {i}\n").into_bytes()).collect();
    let mut sent = 0;
    let mut got = String::new();
    while got.len() < paste.len() {
        if sent < paste.len() {
            sent += s.type_(&paste[sent..]).unwrap_or(0);
        }
        got += &s.read().unwrap();
    }
    assert_eq!(got.as_bytes(), paste);
    s.change(|t| t.local.remove(LocalModes::CANONICAL));
    assert_eq!(s.type_(&[b'r'; 8192]), Ok(4095));
    assert_eq!(s.type_(b"r"), Err(Error::EAGAIN));
    assert!(!s.master.readiness().contains(Readiness::WRITE));
    assert_eq!(s.read().unwrap().len(), 4095);
    assert_eq!(s.type_(b"r"), Ok(1));
    s.read().unwrap();
    // The terminal sends stop and start characters to control the input.
    s.change(|t| t.input |= InputModes::INPUT_CONTROL);
    s.type_(&[b'x'; 3500]).unwrap();
    assert_eq!(s.screen(), "\x13");
    s.read().unwrap();
    assert_eq!(s.screen(), "\x11");
}

#[test]
fn many_empty_lines_take_bounded_memory() {
    let s = setup();
    let mut taken = 0;
    while let Ok(count) = s.type_(&[4; 1000]) {
        taken += count;
        assert!(taken < 10_000);
    }
}

fn background(s: &Setup) -> TestProcess {
    let mut process = TestProcess::new(11, 11, 10);
    process.set_terminal(Some(s.terminal()));
    process.disregarded = vec![];
    process
}

#[test]
fn a_background_process_that_reads_is_stopped() {
    let s = setup();
    let mut process = background(s);
    let caller = |process: &'static TestProcess| crate::vfs::Caller { process, ..s.w.caller() };
    let leak = |process: TestProcess| -> &'static TestProcess { Box::leak(Box::new(process)) };
    s.type_(b"line\n").unwrap();
    let p = leak(background(s));
    s.slave.set_flag(OpenFlags::NONBLOCK, false);
    let slave = s.slave.clone();
    let mut reader = Task::new(async move {
        let mut to = crate::Bytes::empty(9);
        slave.read(&caller(p), &mut to).await.map(|_| to.done().to_vec())
    });
    reader.waits();
    assert!(p.sent.lock().unwrap().contains(&(11, FileSignal::BackgroundRead)));
    // A process that is brought to the foreground can read.
    let mut leader = TestProcess::new(10, 10, 10);
    leader.set_terminal(Some(s.terminal()));
    struct Knows(TestProcess);
    impl ProcessContext for Knows {
        fn process(&self) -> ProcessId {
            self.0.process()
        }
        fn thread(&self) -> ProcessId {
            self.0.thread()
        }
        fn group(&self) -> ProcessId {
            self.0.group()
        }
        fn session(&self) -> ProcessId {
            self.0.session()
        }
        fn terminal(&self) -> Option<Arc<Terminal>> {
            self.0.terminal()
        }
        fn set_terminal(&self, terminal: Option<Arc<Terminal>>) {
            self.0.set_terminal(terminal)
        }
        fn disregards(&self, signal: FileSignal) -> bool {
            self.0.disregards(signal)
        }
        fn is_orphaned(&self) -> bool {
            false
        }
        fn session_of_group(&self, group: ProcessId) -> Option<ProcessId> {
            [(10, 10), (11, 10), (99, 99)].into_iter().find(|g| g.0 == group).map(|g| g.1)
        }
        fn account(&self) -> Arc<crate::account::Account> {
            self.0.account()
        }
        fn signal_group(&self, group: ProcessId, signal: FileSignal) {
            self.0.signal_group(group, signal)
        }
    }
    leader.disregarded = vec![FileSignal::BackgroundWrite];
    let leader = Knows(leader);
    assert_eq!(now(s.terminal().set_foreground(&leader, 99)), Err(Error::EPERM));
    assert_eq!(now(s.terminal().set_foreground(&leader, 98)), Err(Error::ESRCH));
    assert_eq!(now(s.terminal().set_foreground(&leader, 11)), Ok(()));
    assert_eq!(s.terminal().foreground(&leader, false), Ok(11));
    assert_eq!(reader.finish(), Ok(b"line\n".to_vec()));
    now(s.terminal().set_foreground(&leader, 10)).unwrap();
    // If the signal is ignored or the process group is orphaned, there is an error instead of a
    // stop.
    process.disregarded = vec![FileSignal::BackgroundRead];
    let mut to = crate::Bytes::empty(9);
    let p = leak(process);
    assert_eq!(now(s.slave.read(&caller(p), &mut to)), Err(Error::EIO));
    let mut orphan = background(s);
    orphan.orphaned = true;
    let orphan = leak(orphan);
    assert_eq!(now(s.slave.read(&caller(orphan), &mut to)), Err(Error::EIO));
    // A write from the background stops the process only if the settings say so. A change of
    // settings always does, unless the signal is ignored.
    let p = leak(background(s));
    assert_eq!(now(s.slave.write(&caller(p), &mut crate::Bytes::of(b"x"))), Ok(1));
    s.change(|t| t.local |= LocalModes::STOP_BACKGROUND);
    assert_eq!(now(s.slave.write(&caller(orphan), &mut crate::Bytes::of(b"x"))), Err(Error::EIO));
    let slave = s.slave.clone();
    let mut writer = Task::new(async move { slave.write(&caller(p), &mut crate::Bytes::of(b"x")).await });
    writer.waits();
    assert!(p.sent.lock().unwrap().contains(&(11, FileSignal::BackgroundWrite)));
    let mut ignoring = background(s);
    ignoring.disregarded = vec![FileSignal::BackgroundWrite];
    assert_eq!(now(s.slave.write(&caller(leak(ignoring)), &mut crate::Bytes::of(b"x"))), Ok(1));
}

#[test]
fn a_session_leader_gets_and_gives_up_its_controlling_terminal() {
    let s = setup();
    assert!(Arc::ptr_eq(&s.w.process.terminal().unwrap(), &s.terminal()), "the leader's first open");
    assert_eq!(s.terminal().session(&s.w.process, false), Ok(10));
    let stranger = TestProcess::new(50, 50, 50);
    assert_eq!(s.terminal().foreground(&stranger, false), Err(Error::ENOTTY));
    assert_eq!(s.terminal().foreground(&stranger, true), Ok(10));
    let user = Identity::new(1, 1, Arc::new([]));
    assert_eq!(s.terminal().acquire(&stranger, &user, true), Err(Error::EPERM));
    assert_eq!(s.terminal().acquire(&stranger, &s.w.identity, false), Err(Error::EPERM));
    let member = TestProcess::new(51, 50, 50);
    assert_eq!(s.terminal().acquire(&member, &s.w.identity, true), Err(Error::EPERM));
    assert_eq!(s.terminal().acquire(&stranger, &s.w.identity, true), Ok(()));
    assert_eq!(s.signals(), [('s', 10, None)]);
    assert_eq!(s.terminal().foreground(&stranger, false), Ok(50));
    assert_eq!(s.terminal().give_up(&stranger), Ok(()));
    assert_eq!(
        s.signals(),
        [('g', 50, Some(FileSignal::Hangup)), ('g', 50, Some(FileSignal::Continue)), ('s', 50, None)]
    );
    assert_eq!(s.terminal().give_up(&stranger), Err(Error::ENOTTY));
    s.terminal().acquire(&stranger, &s.w.identity, false).unwrap();
    s.terminal().leader_ended();
    assert_eq!(s.signals(), [('g', 50, Some(FileSignal::Hangup)), ('s', 50, None)]);
}

#[test]
fn a_change_of_the_window_size_sends_sigwinch() {
    let s = setup();
    let size = WindowSize { rows: 25, columns: 80, ..Default::default() };
    s.terminal().set_window_size(size);
    s.terminal().set_window_size(size);
    assert_eq!(s.signals(), [('g', 10, Some(FileSignal::WindowChange))], "once for one change");
    assert_eq!(s.terminal().window_size(), size);
}

#[test]
fn a_pseudoterminal_has_a_name_until_its_master_is_closed() {
    let s = setup();
    assert_eq!(s.w.list("/pts"), Ok(vec!["0".into()]));
    let second = s.ptys.create(&Identity::new(7, 8, Arc::new([]))).unwrap();
    assert_eq!(second.index(), 1);
    assert_eq!(s.w.open("/pts/1", OpenFlags::READ_WRITE).err(), Some(Error::EIO), "locked");
    second.set_locked(false);
    let metadata = now(s.w.caller().status(&At::Current, b"/pts/1", true, false)).unwrap();
    assert_eq!((metadata.mode.bits(), metadata.user, metadata.group), (0o620, 7, 5));
    assert_eq!((metadata.represents.major, metadata.represents.minor), (136, 1));
    let place = now(s.w.caller().find(&At::Current, b"/pts/1", true)).unwrap().location;
    now(s.w.caller().change_mode(&place, Mode::new(0o600))).unwrap();
    let slave = s.w.open("/pts/1", OpenFlags::READ_WRITE | OpenFlags::NO_CONTROLLING_TERMINAL).unwrap();
    assert_eq!(now(slave.path(&s.w.vfs.tree.root())), b"/pts/1");
    slave.object().unwrap().terminal().unwrap().set_exclusive(true);
    let mut user = TestProcess::new(1, 1, 1);
    user.disregarded = vec![];
    let alone = TerminalFile::open(
        slave.object().unwrap().terminal().unwrap(),
        &user,
        Some(&Identity::new(9, 9, Arc::new([]))),
        OpenFlags::READ,
    );
    assert_eq!(alone.err(), Some(Error::EBUSY));
    let master = OpenFile::of_object(second, OpenFlags::READ_WRITE | OpenFlags::NONBLOCK);
    s.w.write(&slave, b"bye").unwrap();
    drop(slave);
    assert!(master.readiness().contains(Readiness::HANGUP | Readiness::READ));
    assert_eq!(s.w.read(&master, 9), Ok(b"bye".to_vec()), "what was written is not lost");
    assert_eq!(s.w.read(&master, 9), Err(Error::EIO));
    let tree = &s.w.vfs.tree;
    let terminal = master.object_as::<PtyMaster>().unwrap();
    let peer = terminal.open_peer(tree, &s.w.process, OpenFlags::READ_WRITE).unwrap();
    assert_eq!(now(peer.path(&tree.root())), b"/pts/1", "as ttyname(3) looks for it");
    assert_eq!(s.w.read(&master, 9), Err(Error::EAGAIN));
    drop((peer, terminal, master));
    assert_eq!(s.w.list("/pts"), Ok(vec!["0".into()]));
}

#[test]
fn closing_the_master_hangs_up_the_terminal() {
    let s = setup();
    let mut reader = s.reading(9);
    reader.waits();
    let queue_length = s.terminal().driver_queue().len();
    assert_eq!(queue_length, 0);
    // The setup has the last reference to the master, so hang up as its close does.
    s.terminal().hang_up();
    assert_eq!(reader.finish(), Ok(vec![]));
    assert_eq!(
        s.signals(),
        [('p', 10, Some(FileSignal::Hangup)), ('p', 10, Some(FileSignal::Continue)), ('s', 10, None)]
    );
    assert_eq!(s.w.write(&s.slave, b"x"), Err(Error::EIO));
    assert_eq!(s.w.read(&s.slave, 1), Ok(vec![]));
    assert!(s.slave.readiness().contains(Readiness::HANGUP));
    // A process that opens the terminal after the hang-up can use it.
    let again = s.w.open("/pts/0", OpenFlags::READ_WRITE).unwrap();
    assert_eq!(s.w.write(&again, b"x"), Ok(1));
    // When the master is closed, the terminal is hung up and its name disappears.
    let second = s.ptys.create(&s.w.identity).unwrap();
    let open_peer = || second.open_peer(&s.w.vfs.tree, &s.w.process, OpenFlags::READ_WRITE);
    assert_eq!(open_peer().err(), Some(Error::EIO), "locked");
    second.set_locked(false);
    let peer = open_peer().unwrap();
    drop(second);
    assert_eq!(s.w.read(&peer, 1), Ok(vec![]));
}

proptest! {
    /// Editing a line behaves as a model with a stack of characters does.
    #[test]
    fn editing_matches_a_model(keys in proptest::collection::vec(0u8..12, 0..60)) {
        let s = setup();
        let mut model: Vec<String> = Vec::new();
        let mut lines = Vec::new();
        for key in keys {
            let typed: &[u8] = match key {
                0 => b"\x7f", 1 => b"\x15", 2 => b"\x17", 3 => b"\n", 4 => b" ", 5 => "é".as_bytes(), 6 => b"\x16\x7f",
                7 => b"_", 8 => b"-", 9 => b"\x12", 10 => b"7", _ => b"a",
            };
            s.type_(typed).unwrap();
            let is_word = |c: &String| c.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii());
            match key {
                0 => { model.pop(); }
                1 => model.clear(),
                2 => {
                    while model.last().is_some_and(|c| !is_word(c)) { model.pop(); }
                    while model.last().is_some_and(is_word) { model.pop(); }
                }
                3 => { lines.push(model.concat() + "\n"); model.clear(); }
                6 => model.push("\x7f".into()),
                9 => {}
                _ => model.push(String::from_utf8(typed.to_vec()).unwrap()),
            }
            s.screen();
        }
        for line in lines {
            prop_assert_eq!(s.w.read(&s.slave, 4096), Ok(line.into_bytes()));
        }
        prop_assert_eq!(s.read(), Err(Error::EAGAIN));
    }
}

#[test]
fn the_master_reads_what_was_written_before_the_last_close() {
    let s = setup();
    let master = s.ptys.create(&s.w.identity).unwrap();
    master.set_locked(false);
    let slave = s.w.open("/pts/1", OpenFlags::READ_WRITE).unwrap();
    let master = OpenFile::of_object(master, OpenFlags::READ_WRITE | OpenFlags::NONBLOCK);
    meanwhile("master reads", move || {
        s.w.write(&slave, b"bye").unwrap();
        drop(slave);
    });
    assert_eq!(s.w.read(&master, 9), Ok(b"bye".to_vec()));
    assert_eq!(s.w.read(&master, 9), Err(Error::EIO));
}

#[test]
fn a_group_does_not_get_the_foreground_of_a_terminal_that_changed_its_session() {
    let s = setup();
    let p: &'static TestProcess = Box::leak(Box::new(background(s)));
    let terminal = s.terminal();
    let mut moving = Task::new(async move { terminal.set_foreground(p, 11).await });
    moving.waits();
    s.terminal().hang_up();
    let next = TestProcess::new(20, 20, 20);
    s.terminal().acquire(&next, &Identity::superuser(), false).unwrap();
    assert_eq!(moving.finish(), Err(Error::ENOTTY));
    assert_eq!(s.terminal().foreground_group(), Some(20));
}
