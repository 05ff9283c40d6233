//! The file system of /proc: its directories and files (proc(5)). The texts of processes are in [`super::status`].

use super::System;
use super::adjustment_file::AdjustmentFile;
use super::proc_text;
use super::region_text::Part;
use crate::process::Pid;
use crate::process_context::ProcessContext;
use crate::vfs::{
    DeviceNumber, DirectoryEntry, FileSystem, FileSystemStatus, FileType, Link, Metadata, Mode, OpenContext,
    Opened, Vnode, VnodeRef,
};
use crate::{Answer, CopyError, Error, NotDone, Result, Timestamp, UserBuffer};
use alloc::format;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::any::Any;
use mach::Machine;

/// A /proc of a system.
pub struct Proc<M: Machine> {
    system: Weak<System<M>>,
    made: Timestamp,
}

impl<M: Machine> System<M> {
    /// The root directory of a /proc of this system.
    pub fn proc_root(self: &Arc<Self>) -> VnodeRef {
        let proc = Arc::new(Proc { system: Arc::downgrade(self), made: self.environment.realtime() });
        Arc::new(Node { proc, kind: Kind::Directory("") })
    }
}

/// The file that is written, too.
const MEMORY_ADJUSTMENT: &str = "oom_score_adj";

/// What a process's directory holds besides links and directories: name and mode.
const PROCESS_FILES: [(&str, u16); 20] = [
    ("auxv", 0o400),
    ("cgroup", 0o444),
    ("cmdline", 0o444),
    ("comm", 0o444),
    ("environ", 0o400),
    ("io", 0o400),
    ("limits", 0o444),
    ("maps", 0o444),
    ("mountinfo", 0o444),
    ("mounts", 0o444),
    ("oom_score", 0o444),
    (MEMORY_ADJUSTMENT, 0o644),
    ("personality", 0o400),
    ("schedstat", 0o444),
    ("smaps", 0o444),
    ("smaps_rollup", 0o444),
    ("stat", 0o444),
    ("statm", 0o444),
    ("status", 0o444),
    ("wchan", 0o444),
];

/// Its links and directories.
const PROCESS_LINKS: [&str; 3] = ["cwd", "exe", "root"];

/// What a node is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A directory whose path ends with a slash, or the root.
    Directory(&'static str),
    /// An entry of [`proc_text::FILES`].
    File(usize),
    /// The link to the reader's own process.
    Own,
    /// A process's directory.
    Process(Pid),
    /// An entry of [`PROCESS_FILES`].
    ProcessFile(Pid, usize),
    /// An entry of [`PROCESS_LINKS`].
    ProcessLink(Pid, usize),
    /// Its directory of descriptors.
    Descriptors(Pid),
    /// One of them.
    Descriptor(Pid, i32),
    /// Its directory of threads.
    Tasks(Pid),
}

struct Node<M: Machine> {
    proc: Arc<Proc<M>>,
    kind: Kind,
}

impl<M: Machine> FileSystem for Proc<M> {
    fn status(&self) -> FileSystemStatus {
        FileSystemStatus::without_store("proc", 0)
    }
}

/// Directory positions at which processes begin.
const FIRST_PROCESS: u64 = 1 << 16;

impl<M: Machine> Node<M> {
    fn system(&self) -> Result<Arc<System<M>>> {
        self.proc.system.upgrade().ok_or(Error::ENOENT)
    }

    fn node(&self, kind: Kind) -> VnodeRef {
        Arc::new(Node { proc: self.proc.clone(), kind })
    }

    fn pid(&self) -> Option<Pid> {
        match self.kind {
            Kind::Directory(_) | Kind::File(_) | Kind::Own => None,
            Kind::Process(pid)
            | Kind::ProcessFile(pid, _)
            | Kind::ProcessLink(pid, _)
            | Kind::Descriptors(pid)
            | Kind::Descriptor(pid, _)
            | Kind::Tasks(pid) => Some(pid),
        }
    }

    fn find(&self, name: &[u8]) -> Option<Kind> {
        let name = core::str::from_utf8(name).ok()?;
        match self.kind {
            Kind::Directory("") if name == "self" => Some(Kind::Own),
            Kind::Directory("") if name.starts_with(|c: char| c.is_ascii_digit()) => {
                let id = number(name).and_then(Pid::new)?;
                let system = self.proc.system.upgrade()?;
                let pid = system.processes.with(|table| match table.thread(id) {
                    Ok(thread) => Some(thread.pid()),
                    Err(_) => table.process(id).ok().map(|process| process.pid()),
                })?;
                Some(Kind::Process(pid))
            }
            Kind::Directory(prefix) => child(prefix, name),
            Kind::Process(pid) => {
                let file = PROCESS_FILES.iter().position(|(file, _)| *file == name);
                let link = PROCESS_LINKS.iter().position(|link| *link == name);
                match (file, link, name) {
                    (Some(index), _, _) => Some(Kind::ProcessFile(pid, index)),
                    (_, Some(index), _) => Some(Kind::ProcessLink(pid, index)),
                    (_, _, "fd") => Some(Kind::Descriptors(pid)),
                    (_, _, "task") => Some(Kind::Tasks(pid)),
                    _ => None,
                }
            }
            Kind::Descriptors(pid) => {
                let descriptor = i32::try_from(number(name)?).ok()?;
                let thread = self.proc.system.upgrade()?.thread_of_process(pid)?;
                thread.descriptors().get(descriptor).ok().map(|_| Kind::Descriptor(pid, descriptor))
            }
            Kind::Tasks(pid) => {
                let tid = number(name).and_then(Pid::new)?;
                let threads = self.proc.system.upgrade()?.thread_ids(pid).ok()?;
                threads.contains(&tid).then_some(Kind::Process(pid))
            }
            _ => None,
        }
    }

    /// Entries from position `from` on: position behind each, name and kind.
    fn entries(&self, from: u64) -> Vec<(u64, Vec<u8>, Kind)> {
        let fixed = |names: Vec<(Vec<u8>, Kind)>| {
            let numbered = names.into_iter().enumerate().skip(usize::try_from(from).unwrap_or(usize::MAX));
            numbered.map(|(index, (name, kind))| (index as u64 + 1, name, kind)).collect()
        };
        let Some(system) = self.proc.system.upgrade() else { return Vec::new() };
        match self.kind {
            Kind::Directory(prefix) => {
                let mut list: Vec<(u64, Vec<u8>, Kind)> = fixed(children(prefix));
                if prefix.is_empty() {
                    let ids = system.process_ids().into_iter().map(|pid| (u64::from(pid.number()), pid));
                    let ids = ids.filter(|(number, _)| FIRST_PROCESS + number >= from);
                    list.extend(ids.map(|(number, pid)| {
                        (FIRST_PROCESS + number + 1, format!("{pid}").into_bytes(), Kind::Process(pid))
                    }));
                }
                list
            }
            Kind::Process(pid) => {
                let files = PROCESS_FILES.iter().enumerate();
                let files =
                    files.map(|(index, (name, _))| (name.as_bytes().to_vec(), Kind::ProcessFile(pid, index)));
                let links = PROCESS_LINKS.iter().enumerate();
                let links =
                    links.map(|(index, name)| (name.as_bytes().to_vec(), Kind::ProcessLink(pid, index)));
                let directories =
                    [(b"fd".to_vec(), Kind::Descriptors(pid)), (b"task".to_vec(), Kind::Tasks(pid))];
                fixed(files.chain(links).chain(directories).collect())
            }
            Kind::Descriptors(pid) => {
                let list = system.thread_of_process(pid).map(|thread| thread.descriptors().list());
                let entry = |descriptor: i32| {
                    (
                        descriptor as u64 + 1,
                        format!("{descriptor}").into_bytes(),
                        Kind::Descriptor(pid, descriptor),
                    )
                };
                list.unwrap_or_default().into_iter().map(entry).filter(|(next, _, _)| *next > from).collect()
            }
            Kind::Tasks(pid) => {
                let entry = |tid: Pid| {
                    (u64::from(tid.number()) + 1, format!("{tid}").into_bytes(), Kind::Process(pid))
                };
                let list = system.thread_ids(pid).unwrap_or_default();
                list.into_iter().map(entry).filter(|(next, _, _)| *next > from).collect()
            }
            _ => Vec::new(),
        }
    }

    async fn text(&self) -> Result<Vec<u8>> {
        let system = self.system()?;
        match self.kind {
            Kind::File(index) => Ok(proc_text::file(&system, proc_text::FILES[index])),
            Kind::ProcessFile(pid, index) => match PROCESS_FILES[index].0 {
                "auxv" => system.auxiliary_text(pid),
                "cgroup" => Ok(b"0::/\n".to_vec()),
                "cmdline" => system.arguments_text(pid).await,
                "comm" => system.name_text(pid),
                "environ" => system.environment_text(pid).await,
                "io" => system.transfer_text(pid).map(Into::into),
                "limits" => system.limits_text(pid).map(Into::into),
                "mountinfo" => Ok(proc_text::mount_information(&system, pid)),
                "oom_score" => Ok(format!("{}\n", system.memory_score(pid).await?).into()),
                "personality" => Ok(b"00000000\n".to_vec()),
                "schedstat" => system.schedule_text(pid).map(Into::into),
                "wchan" => Ok(b"0".to_vec()),
                "mounts" => Ok(proc_text::mounts(&system, pid)),
                "stat" => system.stat_text(pid).await.map(Into::into),
                "statm" => system.statm_text(pid).await.map(Into::into),
                "status" => system.status_text(pid).await.map(Into::into),
                _ => Ok(b"0\n".to_vec()),
            },
            _ => Err(Error::EISDIR),
        }
    }

    /// Whether this is the file that can be written; if so, whose.
    fn writable(&self) -> Option<Pid> {
        match self.kind {
            Kind::ProcessFile(pid, index) if PROCESS_FILES[index].0 == MEMORY_ADJUSTMENT => Some(pid),
            _ => None,
        }
    }

    async fn read_text(&self, offset: u64, to: &mut dyn UserBuffer) -> Result<usize, NotDone> {
        let mut part = Part::new(offset, to.remaining());
        match self.make_text(&mut part).await {
            // The process has gone while its file was open.
            Err(Error::ESRCH) => part = Part::new(0, 0),
            other => other?,
        }
        to.copy_out(&part.text).map_err(|error: CopyError| error.into())
    }

    async fn make_text(&self, part: &mut Part) -> Result<()> {
        let system = self.system()?;
        let (pid, name) = match self.kind {
            Kind::ProcessFile(pid, index) => (pid, PROCESS_FILES[index].0),
            _ => return part.push(&self.text().await?),
        };
        match name {
            "maps" => system.maps_text(pid, part).await,
            "smaps" => system.region_usage_text(pid, false, part).await,
            "smaps_rollup" => system.region_usage_text(pid, true, part).await,
            _ => part.push(&self.text().await?),
        }
    }

    fn target(&self) -> Result<Link> {
        let system = self.system()?;
        let thread = self.pid().and_then(|pid| system.thread_of_process(pid)).ok_or(Error::ENOENT)?;
        let place = match self.kind {
            Kind::ProcessLink(_, index) => match PROCESS_LINKS[index] {
                "cwd" => Some(thread.directories().current()),
                "root" => Some(thread.directories().root()),
                _ => thread.memory().executable().and_then(|file| file.location().cloned()),
            },
            Kind::Descriptor(_, descriptor) => {
                let file = thread.descriptors().get(descriptor).map_err(|_| Error::ENOENT)?;
                return Ok(Link::Place(system.vfs.place_of(&file)));
            }
            _ => return Err(Error::EINVAL),
        };
        place.map(Link::Place).ok_or(Error::ENOENT)
    }

    async fn shown_target(&self) -> Result<Vec<u8>> {
        let system = self.system()?;
        let thread = self.pid().and_then(|pid| system.thread_of_process(pid)).ok_or(Error::ENOENT)?;
        let root = thread.directories().root();
        let file = match self.kind {
            Kind::Descriptor(_, descriptor) => {
                thread.descriptors().get(descriptor).map_err(|_| Error::ENOENT)?
            }
            Kind::ProcessLink(_, index) if PROCESS_LINKS[index] == "exe" => {
                thread.memory().executable().ok_or(Error::ENOENT)?
            }
            _ => match self.target()? {
                Link::Place(place) => return Ok(place.path_from_root().await),
                Link::Path(path) => return Ok(path),
            },
        };
        Ok(file.path(&root).await)
    }
}

/// A decimal number without leading zeros.
fn number(name: &str) -> Option<u32> {
    let number: u32 = name.parse().ok()?;
    (format!("{number}") == name).then_some(number)
}

/// What `name` is in the directory of [`proc_text::FILES`] with this prefix.
fn child(prefix: &'static str, name: &str) -> Option<Kind> {
    children(prefix).into_iter().find(|(known, _)| known == name.as_bytes()).map(|(_, kind)| kind)
}

/// What is in the directory of [`proc_text::FILES`] with this prefix.
fn children(prefix: &'static str) -> Vec<(Vec<u8>, Kind)> {
    let mut list: Vec<(Vec<u8>, Kind)> = Vec::new();
    for (index, path) in proc_text::FILES.iter().enumerate() {
        let Some(rest) = path.strip_prefix(prefix) else { continue };
        let (name, kind) = match rest.split_once('/') {
            None => (rest, Kind::File(index)),
            Some((name, _)) => (name, Kind::Directory(&path[..prefix.len() + name.len() + 1])),
        };
        if list.iter().all(|(known, _)| known != name.as_bytes()) {
            list.push((name.as_bytes().to_vec(), kind));
        }
    }
    if prefix.is_empty() {
        list.push((b"self".to_vec(), Kind::Own));
    }
    list
}

impl Kind {
    fn file_type(self) -> FileType {
        match self {
            Kind::Directory(_) | Kind::Process(_) | Kind::Descriptors(_) | Kind::Tasks(_) => {
                FileType::Directory
            }
            Kind::File(_) | Kind::ProcessFile(..) => FileType::Regular,
            Kind::Own | Kind::ProcessLink(..) | Kind::Descriptor(..) => FileType::SymbolicLink,
        }
    }

    fn mode(self) -> Mode {
        Mode::new(match self {
            Kind::Directory(_) | Kind::Process(_) | Kind::Tasks(_) => 0o555,
            Kind::Descriptors(_) => 0o500,
            Kind::File(_) => 0o444,
            Kind::ProcessFile(_, index) => PROCESS_FILES[index].1,
            Kind::Own | Kind::ProcessLink(..) | Kind::Descriptor(..) => 0o777,
        })
    }

    fn number(self) -> u64 {
        let of = |pid: Pid, part: u64| u64::from(pid.number()) << 32 | part;
        match self {
            Kind::Directory(path) => match proc_text::FILES.iter().position(|file| file.starts_with(path)) {
                _ if path.is_empty() => 1,
                index => 0x1000 + 16 * index.unwrap_or(0) as u64 + path.matches('/').count() as u64,
            },
            Kind::File(index) => 0x100 + index as u64,
            Kind::Own => 2,
            Kind::Process(pid) => of(pid, 1),
            Kind::Descriptors(pid) => of(pid, 2),
            Kind::Tasks(pid) => of(pid, 3),
            Kind::ProcessFile(pid, index) => of(pid, 0x10 + index as u64),
            Kind::ProcessLink(pid, index) => of(pid, 0x80 + index as u64),
            Kind::Descriptor(pid, descriptor) => of(pid, 0x1000 + descriptor as u64),
        }
    }
}

impl<M: Machine> Vnode for Node<M> {
    fn file_system(&self) -> Arc<dyn FileSystem> {
        self.proc.clone()
    }

    fn metadata(&self) -> Metadata {
        let owner = self.pid().and_then(|pid| {
            let credentials = self.proc.system.upgrade()?;
            credentials.processes.with(|table| table.process(pid).map(|p| p.credentials().clone())).ok()
        });
        let (user, group) = owner.map_or((0, 0), |owner| (owner.user.effective, owner.group.effective));
        Metadata {
            device: DeviceNumber { major: 0, minor: 5 },
            number: self.kind.number(),
            file_type: self.kind.file_type(),
            mode: self.kind.mode(),
            links: if self.kind.file_type() == FileType::Directory { 2 } else { 1 },
            user,
            group,
            represents: DeviceNumber::default(),
            size: 0,
            blocks: 0,
            block_size: 1024,
            accessed: self.proc.made,
            modified: self.proc.made,
            changed: self.proc.made,
            created: self.proc.made,
        }
    }

    fn file_type(&self) -> FileType {
        self.kind.file_type()
    }

    fn number(&self) -> u64 {
        self.kind.number()
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }

    fn parent(&self) -> Option<VnodeRef> {
        let above = match self.kind {
            Kind::Directory("") => return None,
            Kind::Directory(path) => {
                let cut = path[..path.len() - 1].rfind('/').map_or(0, |slash| slash + 1);
                Kind::Directory(&path[..cut])
            }
            Kind::Descriptors(pid) | Kind::Tasks(pid) => Kind::Process(pid),
            _ => Kind::Directory(""),
        };
        Some(self.node(above))
    }

    fn place(&self) -> Option<(VnodeRef, Vec<u8>)> {
        let name = match self.kind {
            Kind::Process(pid) => format!("{pid}").into_bytes(),
            Kind::Descriptors(_) => b"fd".to_vec(),
            Kind::Tasks(_) => b"task".to_vec(),
            Kind::Directory(path) if !path.is_empty() => {
                path[..path.len() - 1].rsplit('/').next().unwrap_or(path).as_bytes().to_vec()
            }
            _ => return None,
        };
        Some((self.parent()?, name))
    }

    fn lookup<'a>(&'a self, name: &'a [u8]) -> Answer<'a, Result<VnodeRef>> {
        if self.kind.file_type() != FileType::Directory {
            return Answer::now(Err(Error::ENOTDIR));
        }
        Answer::now(self.find(name).map(|kind| self.node(kind)).ok_or(Error::ENOENT))
    }

    fn read_directory<'a>(
        &'a self,
        position: u64,
        accept: &'a mut (dyn FnMut(DirectoryEntry<'_>) -> bool + Send),
    ) -> Answer<'a, Result<()>> {
        if self.kind.file_type() != FileType::Directory {
            return Answer::now(Err(Error::ENOTDIR));
        }
        for (next, name, kind) in self.entries(position) {
            let entry =
                DirectoryEntry { name: &name, number: kind.number(), file_type: kind.file_type(), next };
            if !accept(entry) {
                break;
            }
        }
        Answer::now(Ok(()))
    }

    fn follow(&self) -> Answer<'_, Result<Link>> {
        Answer::now(self.target())
    }

    fn follow_for<'a>(&'a self, process: &'a dyn ProcessContext) -> Answer<'a, Result<Link>> {
        match self.kind {
            Kind::Own => Answer::now(Ok(Link::Path(format!("{}", process.process()).into_bytes()))),
            _ => self.follow(),
        }
    }

    fn link_text(&self) -> Answer<'_, Result<Vec<u8>>> {
        Answer::later(self.shown_target())
    }

    fn link_text_for<'a>(&'a self, process: &'a dyn ProcessContext) -> Answer<'a, Result<Vec<u8>>> {
        match self.kind {
            Kind::Own => Answer::now(Ok(format!("{}", process.process()).into_bytes())),
            _ => self.link_text(),
        }
    }

    fn read<'a>(&'a self, offset: u64, to: &'a mut dyn UserBuffer) -> Answer<'a, Result<usize, NotDone>> {
        Answer::later(self.read_text(offset, to))
    }

    fn open(&self, _context: &OpenContext) -> Answer<'_, Result<Opened>> {
        let file = |pid| self.system().map(|system| Opened::Object(AdjustmentFile::new(&system, pid)));
        Answer::now(match self.writable() {
            Some(pid) => file(pid),
            None if self.kind.file_type() == FileType::SymbolicLink => Err(Error::ENXIO),
            None => Ok(Opened::Data),
        })
    }

    /// Opening to be rewritten (O_TRUNC) changes nothing yet.
    fn truncate(&self, _size: u64) -> Answer<'_, Result<()>> {
        Answer::now(if self.writable().is_some() { Ok(()) } else { Err(Error::EINVAL) })
    }
}
