//! A file system and a process, for tests.

use super::{TestEnvironment, memory, now};
use crate::account::{Account, Settings};
use crate::file::OpenFile;
use crate::process_context::{FileSignal, ProcessContext, ProcessId};
use crate::tmpfs::{Tmpfs, TmpfsOptions};
use crate::tty::Terminal;
use crate::vfs::{At, Caller, Directories, Mode, OpenFlags, Restrictions, Vfs};
use crate::{Bytes, Identity, Result};
use std::sync::{Arc, Mutex};

/// A tmpfs as the root file system, and one process, which is the superuser's unless the test says
/// otherwise.
pub struct World {
    /// The environment, whose clock the test moves.
    pub environment: Arc<TestEnvironment>,
    /// The file systems that the process sees.
    pub vfs: Arc<Vfs>,
    /// The root directory, working directory and umask of the process.
    pub directories: Directories,
    /// The user and groups of the process, as files see them.
    pub identity: Identity,
    /// The process as files see it.
    pub process: TestProcess,
    /// The largest size in bytes that the process may give to a file.
    pub file_size_limit: u64,
}

/// A process whose ids the test sets, and which records the signals that are sent through it.
pub struct TestProcess {
    /// The id of the process.
    pub process: ProcessId,
    /// The id of the process's group.
    pub group: ProcessId,
    /// The id of the process's session.
    pub session: ProcessId,
    /// The controlling terminal of the session.
    pub terminal: Mutex<Option<Arc<Terminal>>>,
    /// Signals that the process blocks or ignores.
    pub disregarded: Vec<FileSignal>,
    /// Whether the process group is orphaned.
    pub orphaned: bool,
    /// The process groups to which signals were sent, with the signals.
    pub sent: Mutex<Vec<(ProcessId, FileSignal)>>,
    /// The account of the process's user.
    pub account: Arc<Account>,
}

impl TestProcess {
    /// A process of the superuser with these ids.
    pub fn new(process: ProcessId, group: ProcessId, session: ProcessId) -> TestProcess {
        TestProcess {
            process,
            group,
            session,
            terminal: Mutex::new(None),
            disregarded: Vec::new(),
            orphaned: false,
            sent: Mutex::new(Vec::new()),
            account: Account::new(0, Settings::new(1 << 40)),
        }
    }
}

impl ProcessContext for TestProcess {
    fn process(&self) -> ProcessId {
        self.process
    }
    fn thread(&self) -> ProcessId {
        self.process
    }
    fn group(&self) -> ProcessId {
        self.group
    }
    fn session(&self) -> ProcessId {
        self.session
    }
    fn terminal(&self) -> Option<Arc<Terminal>> {
        self.terminal.lock().unwrap().clone()
    }
    fn set_terminal(&self, terminal: Option<Arc<Terminal>>) {
        *self.terminal.lock().unwrap() = terminal;
    }
    fn disregards(&self, signal: FileSignal) -> bool {
        self.disregarded.contains(&signal)
    }
    fn is_orphaned(&self) -> bool {
        self.orphaned
    }
    fn session_of_group(&self, group: ProcessId) -> Option<ProcessId> {
        (group == self.group).then_some(self.session)
    }
    fn signal_group(&self, group: ProcessId, signal: FileSignal) {
        self.sent.lock().unwrap().push((group, signal));
    }
    fn account(&self) -> Arc<Account> {
        self.account.clone()
    }
}

/// A pipe that belongs to the superuser.
pub fn pipe(flags: OpenFlags) -> (Arc<OpenFile>, Arc<OpenFile>) {
    crate::pipe::pipe(&World::new().caller(), flags).unwrap()
}

impl World {
    /// A world whose root directory all users may read, with room for what tests do.
    #[expect(clippy::new_without_default, reason = "a test says what it makes")]
    pub fn new() -> World {
        World::with(&TmpfsOptions { mode: Mode::new(0o755), ..TmpfsOptions::for_memory(1 << 16) })
    }

    /// A world whose root tmpfs has these options.
    pub fn with(options: &TmpfsOptions) -> World {
        let environment = TestEnvironment::new();
        let root = Tmpfs::new(options, memory(), environment.clone()).unwrap();
        World::on(root, environment)
    }

    /// A world with this root directory.
    pub fn on(root: crate::vfs::VnodeRef, environment: Arc<TestEnvironment>) -> World {
        let vfs = Vfs::new(root, "rootfs", environment.clone());
        let directories = Directories::new(&vfs.tree);
        World {
            environment,
            vfs,
            directories,
            identity: Identity::superuser(),
            process: TestProcess::new(10, 10, 10),
            file_size_limit: u64::MAX,
        }
    }

    /// The process, in the form that operations on files take.
    pub fn caller(&self) -> Caller<'_> {
        Caller {
            vfs: &self.vfs,
            identity: &self.identity,
            directories: &self.directories,
            process: &self.process,
            file_size_limit: self.file_size_limit,
            restrictions: Restrictions::empty(),
        }
    }

    /// Makes the process that of an unprivileged user.
    pub fn become_user(&mut self, user: u32, group: u32) {
        self.identity = Identity::new(user, group, Arc::new([]));
        self.process.account = Account::new(user, self.process.account.settings().clone());
    }

    /// Opens a file, or makes it with the mode 0644.
    pub fn open(&self, path: &str, flags: OpenFlags) -> Result<Arc<OpenFile>> {
        self.open_mode(path, flags, 0o644)
    }

    /// Opens a file, or makes it with the mode `mode`.
    pub fn open_mode(&self, path: &str, flags: OpenFlags, mode: u16) -> Result<Arc<OpenFile>> {
        now(self.caller().open(&At::Current, path.as_bytes(), flags, Mode::new(mode)))
    }

    /// Makes a directory.
    #[track_caller]
    pub fn mkdir(&self, path: &str) {
        now(self.caller().make_directory(&At::Current, path.as_bytes(), Mode::new(0o755))).unwrap();
    }

    /// Makes a symbolic link.
    #[track_caller]
    pub fn symlink(&self, target: &str, path: &str) {
        now(self.caller().make_link(target.as_bytes(), &At::Current, path.as_bytes())).unwrap();
    }

    /// Makes a file with the content `content`.
    #[track_caller]
    pub fn put(&self, path: &str, content: &[u8]) {
        let flags = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::TRUNCATE;
        let file = self.open(path, flags).unwrap();
        assert_eq!(self.write(&file, content), Ok(content.len()));
    }

    /// The content of a file.
    pub fn cat(&self, path: &str) -> Result<Vec<u8>> {
        let file = self.open(path, OpenFlags::READ)?;
        let mut all = Vec::new();
        loop {
            let piece = self.read(&file, 65536)?;
            if piece.is_empty() {
                return Ok(all);
            }
            all.extend(piece);
        }
    }

    /// Reads up to `count` bytes from a file.
    pub fn read(&self, file: &OpenFile, count: usize) -> Result<Vec<u8>> {
        let mut to = Bytes::empty(count);
        let caller = self.caller();
        now(file.read(&caller, &mut to))?;
        Ok(to.done().to_vec())
    }

    /// Writes to a file; returns how many bytes were written.
    pub fn write(&self, file: &OpenFile, bytes: &[u8]) -> Result<usize> {
        let caller = self.caller();
        now(file.write(&caller, &mut Bytes::of(bytes)))
    }

    /// The names in a directory, without `.` and `..`.
    pub fn list(&self, path: &str) -> Result<Vec<String>> {
        let file = self.open(path, OpenFlags::READ | OpenFlags::DIRECTORY)?;
        let caller = self.caller();
        let mut names = Vec::new();
        now(file.read_directory(&caller, |entry| {
            names.push(String::from_utf8_lossy(entry.name).into_owned());
            true
        }))?;
        names.retain(|name| name != "." && name != "..");
        Ok(names)
    }
}
