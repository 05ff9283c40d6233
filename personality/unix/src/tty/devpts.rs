//! devpts: the file system with the slave sides of pseudoterminals (/dev/pts).

use super::file::TerminalFile;
use super::pty::Ptys;
use super::terminal::Terminal;
use crate::sync::SpinLock;
use crate::vfs::{
    AttributeChange, DirectoryEntry, FileSystem, FileSystemStatus, FileType, Hooks, Metadata, Mode,
    OpenContext, Opened, SetTime, Vnode, VnodeRef,
};
use crate::{Error, Identity, MaybeReady, Result, Timestamp};
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

/// The mount options of a devpts.
#[derive(Clone, Copy, Debug)]
pub struct PtsOptions {
    /// The group that owns new terminals; `None` for the group of the process that makes one.
    pub group: Option<u32>,
    /// The permission bits of new terminals.
    pub mode: Mode,
}

impl Default for PtsOptions {
    /// The options with which distributions mount a devpts: group 5 (tty), writable by the group.
    fn default() -> PtsOptions {
        PtsOptions { group: Some(5), mode: Mode::new(0o620) }
    }
}

impl PtsOptions {
    /// The options in a comma-separated list (gid, mode) instead of those that new terminals of a
    /// devpts have without any. Owners other than the process that makes a terminal (uid) are
    /// refused; what concerns the node ptmx, the number of terminals and other instances is
    /// accepted, and has no effect. `EINVAL` for anything else.
    pub fn parse(text: &[u8]) -> Result<PtsOptions> {
        let mut options = PtsOptions { group: None, mode: Mode::new(0o600) };
        let text = core::str::from_utf8(text).map_err(|_| Error::EINVAL)?;
        for option in text.split(',').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let number = |radix| u32::from_str_radix(value, radix).map_err(|_| Error::EINVAL);
            match name {
                "gid" => options.group = Some(number(10)?),
                "mode" => options.mode = Mode::new((number(8)? & 0o7777) as u16),
                "ptmxmode" => drop(number(8)?),
                "max" => drop(number(10)?),
                "newinstance" if value.is_empty() => {}
                _ => return Err(Error::EINVAL),
            }
        }
        Ok(options)
    }
}

/// The node of one pseudoterminal.
pub(super) struct PtsNode {
    /// The devpts, which also keeps this node as long as the master is open.
    ptys: Arc<Ptys>,
    index: u32,
    terminal: Arc<Terminal>,
    locked: AtomicBool,
    attributes: SpinLock<Attributes>,
    hooks: Hooks,
}

struct Attributes {
    mode: Mode,
    user: u32,
    group: u32,
    accessed: Timestamp,
    modified: Timestamp,
    changed: Timestamp,
    created: Timestamp,
}

/// The node number of the root directory.
const ROOT: u64 = 1;
const FIRST: u64 = 3;

impl Ptys {
    /// The root directory of this devpts.
    pub fn root(&self) -> VnodeRef {
        self.this.upgrade().expect("a devpts that is asked exists")
    }
}

impl FileSystem for Ptys {
    fn status(&self) -> FileSystemStatus {
        FileSystemStatus::without_store("devpts", self.device.minor.into())
    }

    fn options(&self) -> alloc::string::String {
        let options = *self.options.lock();
        let group = options.group.map(|group| format!(",gid={group}")).unwrap_or_default();
        format!("{group},mode={:o}", options.mode.bits())
    }

    fn reconfigure<'a>(&'a self, options: &'a [u8], _read_only: bool) -> MaybeReady<'a, Result<()>> {
        if options.is_empty() {
            return MaybeReady::ready(Ok(()));
        }
        MaybeReady::ready(PtsOptions::parse(options).map(|options| *self.options.lock() = options))
    }
}

impl PtsNode {
    pub(super) fn new(
        ptys: &Arc<Ptys>,
        index: u32,
        terminal: Arc<Terminal>,
        identity: &Identity,
    ) -> Arc<PtsNode> {
        let (now, options) = (ptys.environment.realtime(), *ptys.options.lock());
        let attributes = Attributes {
            mode: options.mode,
            user: identity.user,
            group: options.group.unwrap_or(identity.group),
            accessed: now,
            modified: now,
            changed: now,
            created: now,
        };
        Arc::new(PtsNode {
            ptys: ptys.clone(),
            index,
            terminal,
            locked: AtomicBool::new(true),
            attributes: SpinLock::new(attributes),
            hooks: Hooks::default(),
        })
    }

    pub(super) fn terminal(&self) -> &Arc<Terminal> {
        &self.terminal
    }

    pub(super) fn is_locked(&self) -> bool {
        // Relaxed ordering: the flag orders no other memory.
        self.locked.load(Ordering::Relaxed)
    }

    pub(super) fn set_locked(&self, locked: bool) {
        self.locked.store(locked, Ordering::Relaxed);
    }
}

/// A devpts object is at the same time its file system and its root directory.
impl Vnode for Ptys {
    fn file_system(&self) -> Arc<dyn FileSystem> {
        self.this.upgrade().expect("a devpts that is asked exists")
    }

    fn metadata(&self) -> Metadata {
        Metadata {
            device: self.device,
            number: ROOT,
            file_type: FileType::Directory,
            mode: Mode::new(0o755),
            links: 2,
            user: 0,
            group: 0,
            represents: Default::default(),
            size: 0,
            blocks: 0,
            block_size: 1024,
            accessed: self.made,
            modified: self.made,
            changed: self.made,
            created: self.made,
        }
    }

    fn file_type(&self) -> FileType {
        FileType::Directory
    }

    fn number(&self) -> u64 {
        ROOT
    }

    fn lookup<'a>(&'a self, name: &'a [u8]) -> MaybeReady<'a, Result<VnodeRef>> {
        let number = core::str::from_utf8(name).ok().and_then(|name| {
            let number: u32 = name.parse().ok()?;
            (format!("{number}") == name).then_some(number)
        });
        let node = number.and_then(|number| self.list.lock().get(&number).cloned());
        MaybeReady::ready(node.map(|node| node as VnodeRef).ok_or(Error::ENOENT))
    }

    fn read_directory<'a>(
        &'a self,
        position: u64,
        accept: &'a mut (dyn FnMut(DirectoryEntry<'_>) -> bool + Send),
    ) -> MaybeReady<'a, Result<()>> {
        let from = u32::try_from(position).unwrap_or(u32::MAX);
        let numbers: Vec<u32> = self.list.lock().range(from..).map(|(number, _)| *number).collect();
        for number in numbers {
            let name = format!("{number}");
            let entry = DirectoryEntry {
                name: name.as_bytes(),
                number: FIRST + u64::from(number),
                file_type: FileType::CharacterDevice,
                next: u64::from(number) + 1,
            };
            if !accept(entry) {
                break;
            }
        }
        MaybeReady::ready(Ok(()))
    }
}

impl Vnode for PtsNode {
    fn file_system(&self) -> Arc<dyn FileSystem> {
        self.ptys.clone()
    }

    fn metadata(&self) -> Metadata {
        let a = self.attributes.lock();
        Metadata {
            device: self.ptys.device,
            number: self.number(),
            file_type: FileType::CharacterDevice,
            mode: a.mode,
            links: 1,
            user: a.user,
            group: a.group,
            represents: self.terminal.number(),
            size: 0,
            blocks: 0,
            block_size: 1024,
            accessed: a.accessed,
            modified: a.modified,
            changed: a.changed,
            created: a.created,
        }
    }

    fn file_type(&self) -> FileType {
        FileType::CharacterDevice
    }

    fn number(&self) -> u64 {
        FIRST + u64::from(self.index)
    }

    fn hooks(&self) -> Option<&Hooks> {
        Some(&self.hooks)
    }

    fn place(&self) -> Option<(VnodeRef, Vec<u8>)> {
        let ptys = &self.ptys;
        ptys.list.lock().get(&self.index).filter(|node| core::ptr::eq(&***node, self))?;
        Some((ptys.root(), format!("{}", self.index).into_bytes()))
    }

    fn change(&self, change: AttributeChange) -> MaybeReady<'_, Result<()>> {
        let now = self.ptys.environment.realtime();
        let time = |set: SetTime| match set {
            SetTime::Now => now,
            SetTime::To(time) => time,
        };
        let mut a = self.attributes.lock();
        a.mode = change.mode.unwrap_or(a.mode).difference(change.remove_mode);
        a.user = change.user.unwrap_or(a.user);
        a.group = change.group.unwrap_or(a.group);
        a.accessed = change.accessed.map_or(a.accessed, time);
        a.modified = change.modified.map_or(a.modified, time);
        a.changed = now;
        MaybeReady::ready(Ok(()))
    }

    fn open(&self, context: &OpenContext<'_>) -> MaybeReady<'_, Result<Opened>> {
        if self.is_locked() {
            return MaybeReady::ready(Err(Error::EIO));
        }
        let file = TerminalFile::open(&self.terminal, context.process, Some(context.identity), context.flags);
        MaybeReady::ready(file.map(|file| Opened::Object(file)))
    }
}
