//! The file system of /proc: its directories and files (proc(5)).

mod descriptors;
mod links;
mod maps;
pub(crate) mod network;
mod number;
mod regions;
mod sockets;
mod status;
mod subject;
mod text;

use crate::nsfs;
use alloc::format;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use mach::Machine;
use maps::{MAP_FILES, MapFile};
use number::{MemoryAdjustment, NumberFile, SettingNumber};
use regions::Part;
use status::environment_text;
pub(crate) use status::{argument_bytes, auxiliary_bytes};
use subject::Subject;
use unix::account::Setting;
use unix::file::FileObject;
use unix::namespace::UserNamespace;
use unix::personality::Task;
use unix::process::{ExactPid, InspectAs, Pid, PidNamespace, Process};
use unix::process_context::ProcessContext;
use unix::thread::{End, System};
use unix::vfs::{
    DeviceNumber, DirectoryEntry, FileSystem, FileSystemStatus, FileType, Link, Metadata, Mode, OpenContext,
    Opened, Vnode, VnodeRef, WriteAt,
};
use unix::{AttemptError, CopyError, Error, MaybeReady, Result, Timestamp, UserBuffer};

/// The /proc of a system.
pub(crate) struct Proc<M: Machine> {
    system: Weak<System<M>>,
    made: Timestamp,
    /// The namespace of processes that it shows.
    namespace: PidNamespace,
}

/// A place from which processes and users are shown.
struct Sight {
    /// The namespace of processes of the /proc.
    processes: PidNamespace,
    /// The namespace of users of the reader.
    users: UserNamespace,
}

/// Makes a /proc that shows a namespace of processes of this system; returns its root directory.
pub(crate) fn make<M: Machine>(system: &Arc<System<M>>, namespace: PidNamespace) -> VnodeRef {
    let (system, made) = (Arc::downgrade(system), system.environment().realtime());
    let proc = Arc::new(Proc { system, made, namespace });
    Arc::new(Node { proc, kind: Kind::Directory(""), opened: None })
}

/// The process whose directory in /proc the file is; `None` if it is another file.
pub(crate) fn process_of<M: Machine>(file: &VnodeRef) -> Option<ExactPid> {
    let node: &Node<M> = (&**file as &dyn core::any::Any).downcast_ref()?;
    match node.kind {
        Kind::Process(Subject { process, thread: None }) => Some(process),
        _ => None,
    }
}

/// The file that gives commands to the system (`sysrq`), each of which is one letter.
const SYSTEM_REQUEST: &str = "sysrq-trigger";

/// The file of a process that can be written.
const MEMORY_ADJUSTMENT: &str = "oom_score_adj";

/// The files that show a process's memory. Only a process that may inspect it can open them, and an
/// open file shows the program that the process had when it was opened.
const MEMORY_FILES: [&str; 6] = ["auxv", "environ", "maps", "mem", "smaps", "smaps_rollup"];

/// The files of a process's directory, without links and directories: name and mode of each.
const PROCESS_FILES: [(&str, u16); 24] = [
    ("auxv", 0o400),
    ("cgroup", 0o444),
    ("cmdline", 0o444),
    ("comm", 0o444),
    ("environ", 0o400),
    ("gid_map", 0o644),
    ("io", 0o400),
    ("limits", 0o444),
    ("maps", 0o444),
    ("mem", 0o600),
    ("mountinfo", 0o444),
    ("mounts", 0o444),
    ("oom_score", 0o444),
    (MEMORY_ADJUSTMENT, 0o644),
    ("personality", 0o400),
    ("schedstat", 0o444),
    ("setgroups", 0o644),
    ("smaps", 0o444),
    ("smaps_rollup", 0o444),
    ("stat", 0o444),
    ("statm", 0o444),
    ("status", 0o444),
    ("uid_map", 0o644),
    ("wchan", 0o444),
];

/// How many bytes of the file `mem` are read or written at a time.
const MEMORY_PIECE: usize = 1 << 14;

/// The links in a process's directory.
const PROCESS_LINKS: [&str; 3] = ["cwd", "exe", "root"];

/// The kinds of nodes. A process is identified exactly: a node never refers to a later process with
/// the same id.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A directory of the system, by its path with a slash at the end; the root's is empty.
    Directory(&'static str),
    /// A file of the system, by its index in [`text::FILES`].
    File(usize),
    /// The link `self` to the reader's own process.
    Own,
    /// The directory of a process, or of a thread in the directory `task`.
    Process(Subject),
    /// A file of a process or thread, by its index in [`PROCESS_FILES`].
    ProcessFile(Subject, usize),
    /// A link of a process or thread, by its index in [`PROCESS_LINKS`].
    ProcessLink(Subject, usize),
    /// The directory `fd` of a process or thread.
    Descriptors(Subject),
    /// The link of one descriptor in the directory `fd`.
    Descriptor(Subject, i32),
    /// The directory `fdinfo` of a process or thread.
    DescriptorFiles(Subject),
    /// The file about one descriptor in it.
    DescriptorFile(Subject, i32),
    /// The directory `task` of a process.
    Tasks(ExactPid),
    /// The directory `ns` of a process or thread.
    Namespaces(Subject),
    /// The link to a namespace in it, by its index in [`nsfs::FILES`].
    Namespace(Subject, usize),
}

struct Node<M: Machine> {
    proc: Arc<Proc<M>>,
    kind: Kind,
    /// For an open file of [`MEMORY_FILES`]: the memory that the process had when it was opened.
    opened: Option<Weak<Task<M>>>,
}

impl<M: Machine> FileSystem for Proc<M> {
    fn status(&self) -> FileSystemStatus {
        FileSystemStatus::without_store("proc", 0)
    }
}

/// The directory position of the first process in the root directory.
const FIRST_PROCESS: u64 = 1 << 16;

impl<M: Machine> Node<M> {
    fn system(&self) -> Result<Arc<System<M>>> {
        self.proc.system.upgrade().ok_or(Error::ENOENT)
    }

    fn node(&self, kind: Kind) -> VnodeRef {
        Arc::new(Node { proc: self.proc.clone(), kind, opened: None })
    }

    fn process(&self) -> Option<ExactPid> {
        match self.kind {
            Kind::Directory(_) | Kind::File(_) | Kind::Own => None,
            Kind::Process(subject)
            | Kind::ProcessFile(subject, _)
            | Kind::ProcessLink(subject, _)
            | Kind::Descriptors(subject)
            | Kind::Descriptor(subject, _)
            | Kind::DescriptorFiles(subject)
            | Kind::DescriptorFile(subject, _)
            | Kind::Namespaces(subject)
            | Kind::Namespace(subject, _) => Some(subject.process),
            Kind::Tasks(process) => Some(process),
        }
    }

    fn find(&self, name: &[u8]) -> Option<Kind> {
        let name = core::str::from_utf8(name).ok()?;
        match self.kind {
            Kind::Directory("") if name == "self" => Some(Kind::Own),
            Kind::Directory("") if name.starts_with(|c: char| c.is_ascii_digit()) => {
                let number = number(name)?;
                let system = self.proc.system.upgrade()?;
                let found = system.processes().with(|table| {
                    let id = table.id_in(&self.proc.namespace, number)?;
                    let pid = table.thread(id).map_or(id, |thread| thread.pid());
                    table.process(pid).map(Process::exact_pid).ok()
                });
                found.map(|process| Kind::Process(Subject::process(process)))
            }
            Kind::Directory(prefix) => child(prefix, name),
            Kind::Process(subject) if self.is_gone(subject) => None,
            Kind::Process(subject) => {
                let file = PROCESS_FILES.iter().position(|(file, _)| *file == name);
                let link = PROCESS_LINKS.iter().position(|link| *link == name);
                match (file, link, name) {
                    (Some(index), _, _) => Some(Kind::ProcessFile(subject, index)),
                    (_, Some(index), _) => Some(Kind::ProcessLink(subject, index)),
                    (_, _, "fd") => Some(Kind::Descriptors(subject)),
                    (_, _, "fdinfo") => Some(Kind::DescriptorFiles(subject)),
                    (_, _, "ns") => Some(Kind::Namespaces(subject)),
                    (_, _, "task") if subject.thread.is_none() => Some(Kind::Tasks(subject.process)),
                    _ => None,
                }
            }
            Kind::Descriptors(subject) | Kind::DescriptorFiles(subject) => {
                let descriptor = i32::try_from(number(name)?).ok()?;
                let thread = subject.find(&*self.proc.system.upgrade()?)?;
                thread.descriptors().get(descriptor).ok()?;
                self.kind.of_descriptor(subject, descriptor)
            }
            Kind::Tasks(process) => {
                let (number, system) = (number(name)?, self.proc.system.upgrade()?);
                let tid = system.processes().with(|table| table.id_in(&self.proc.namespace, number))?;
                let threads = system.thread_ids(process).ok()?;
                threads.contains(&tid).then_some(Kind::Process(Subject { process, thread: Some(tid) }))
            }
            Kind::Namespaces(subject) => {
                let index = nsfs::FILES.iter().position(|(file, _)| *file == name)?;
                Some(Kind::Namespace(subject, index))
            }
            _ => None,
        }
    }

    /// The entries from position `from` on: for each, the position after it, its name and its kind.
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
                    let ids = system.processes().with(|table| table.processes_in(&self.proc.namespace));
                    let ids = ids.into_iter().map(|(number, process)| (u64::from(number), process));
                    let ids = ids.filter(|(number, _)| FIRST_PROCESS + number >= from);
                    list.extend(ids.map(|(number, process)| {
                        let kind = Kind::Process(Subject::process(process));
                        (FIRST_PROCESS + number + 1, format!("{number}").into_bytes(), kind)
                    }));
                }
                list
            }
            Kind::Process(subject) if self.is_gone(subject) => Vec::new(),
            Kind::Process(subject) => {
                let name = |name: &str| name.as_bytes().to_vec();
                let files = PROCESS_FILES.iter().enumerate();
                let files = files.map(|(index, file)| (name(file.0), Kind::ProcessFile(subject, index)));
                let links = PROCESS_LINKS.iter().enumerate();
                let links = links.map(|(index, link)| (name(link), Kind::ProcessLink(subject, index)));
                let tasks = subject.thread.is_none().then_some((name("task"), Kind::Tasks(subject.process)));
                let directories = [
                    (name("fd"), Kind::Descriptors(subject)),
                    (name("fdinfo"), Kind::DescriptorFiles(subject)),
                    (name("ns"), Kind::Namespaces(subject)),
                ];
                let directories = directories.into_iter().chain(tasks);
                fixed(files.chain(links).chain(directories).collect())
            }
            Kind::Descriptors(subject) | Kind::DescriptorFiles(subject) => {
                let list = subject.find(&system).map(|thread| thread.descriptors().list());
                let entry = |descriptor: i32| {
                    let kind = self.kind.of_descriptor(subject, descriptor)?;
                    Some((descriptor as u64 + 1, format!("{descriptor}").into_bytes(), kind))
                };
                let list = list.unwrap_or_default().into_iter().filter_map(entry);
                list.filter(|(next, _, _)| *next > from).collect()
            }
            Kind::Tasks(process) => {
                let entry = |tid: Pid| {
                    let kind = Kind::Process(Subject { process, thread: Some(tid) });
                    let number = self.number_of(tid);
                    (u64::from(number) + 1, format!("{number}").into_bytes(), kind)
                };
                let list = system.thread_ids(process).unwrap_or_default();
                list.into_iter().map(entry).filter(|(next, _, _)| *next > from).collect()
            }
            Kind::Namespaces(subject) => {
                let names = nsfs::FILES.iter().enumerate();
                let name = |(index, file): (usize, &(&str, nsfs::Kind))| {
                    (file.0.as_bytes().to_vec(), Kind::Namespace(subject, index))
                };
                fixed(names.map(name).collect())
            }
            _ => Vec::new(),
        }
    }

    fn is_gone(&self, subject: Subject) -> bool {
        let system = self.proc.system.upgrade();
        system.is_none_or(|system| system.processes().with(|table| subject.records(table).is_err()))
    }

    /// The number of an id in the namespace that is shown; 0 if it has none there.
    fn number_of(&self, id: Pid) -> u32 {
        let number = |system: Arc<System<M>>| {
            system.processes().with(|table| table.number_in(&self.proc.namespace, id))
        };
        self.proc.system.upgrade().map_or(0, number)
    }

    /// The number of the reader's own process, which `self` leads to. `ENOENT` if it has none.
    fn own_number(&self, reader: &dyn ProcessContext) -> Result<Vec<u8>> {
        match Pid::new(reader.process()).map_or(0, |id| self.number_of(id)) {
            0 => Err(Error::ENOENT),
            number => Ok(format!("{number}").into_bytes()),
        }
    }

    /// How processes and users are shown to a reader.
    fn sight(&self, system: &System<M>, reader: &dyn ProcessContext) -> Sight {
        let users = Pid::new(reader.thread()).and_then(|tid| {
            system.processes().with(|table| Some(table.thread(tid).ok()?.credentials().namespace.clone()))
        });
        Sight { processes: self.proc.namespace.clone(), users: users.unwrap_or_default() }
    }

    /// Checks that the calling thread may inspect the process to which this node belongs. `EPERM`,
    /// `ESRCH`.
    fn check_inspection(&self, caller: &dyn ProcessContext) -> Result<()> {
        let process = self.process().ok_or(Error::ESRCH)?;
        let caller = Pid::new(caller.thread()).ok_or(Error::EPERM)?;
        self.system()?.processes().with(|table| {
            let target = table.exact_process(process)?.pid();
            table.may_inspect(caller, target, InspectAs::FileUser)
        })
    }

    /// The text of a file as `reader` may see it.
    async fn text(&self, reader: &dyn ProcessContext) -> Result<Vec<u8>> {
        let system = self.system()?;
        let (subject, name) = match self.kind {
            Kind::File(index) => {
                let own = Pid::new(reader.thread()).and_then(|tid| system.thread(tid));
                return Ok(text::file(&system, own, &self.sight(&system, reader), text::FILES[index]));
            }
            Kind::DescriptorFile(subject, descriptor) => {
                return self.descriptor_text(subject, descriptor, reader).await.map(Into::into);
            }
            Kind::ProcessFile(subject, index) => (subject, PROCESS_FILES[index].0),
            _ => return Err(Error::EISDIR),
        };
        let process = subject.process;
        let sight = self.sight(&system, reader);
        let permitted = self.check_inspection(reader);
        match name {
            "auxv" => Ok(self.memory()?.map_or_else(Vec::new, |memory| auxiliary_bytes(&memory))),
            "cgroup" => Ok(b"0::/\n".to_vec()),
            "cmdline" => status::arguments_text(&system, process).await,
            "comm" => status::name_text(&system, subject),
            "environ" => match self.memory()? {
                Some(memory) => Ok(environment_text(&memory).await),
                None => Ok(Vec::new()),
            },
            "io" if permitted == Err(Error::EPERM) => Err(Error::EACCES),
            "io" => status::transfer_text(&system, subject).map(Into::into),
            "limits" => status::limits_text(&system, process).map(Into::into),
            "mountinfo" => Ok(text::mount_information(system.thread_of_exact(process))),
            "oom_score" => Ok(format!("{}\n", system.memory_score(process).await?).into()),
            "personality" => permitted.and_then(|()| {
                let fixed = !system
                    .processes()
                    .with(|table| Ok::<_, Error>(table.exact_process(process)?.randomises))?;
                Ok(if fixed { b"00040000\n".to_vec() } else { b"00000000\n".to_vec() })
            }),
            "schedstat" => status::schedule_text(&system, subject).map(Into::into),
            "wchan" => Ok(b"0".to_vec()),
            "mounts" => Ok(text::mounts(system.thread_of_exact(process))),
            "stat" => status::stat_text(&system, subject, permitted.is_ok(), &sight).await.map(Into::into),
            "statm" => status::statm_text(&system, process).await.map(Into::into),
            "status" => status::status_text(&system, subject, &sight).await.map(Into::into),
            _ => Ok(b"0\n".to_vec()),
        }
    }

    /// The memory that an open file of [`MEMORY_FILES`] shows; `None` if the process has ended or
    /// executed another program.
    fn memory(&self) -> Result<Option<Arc<Task<M>>>> {
        let (process, opened) = self.process().zip(self.opened.as_ref()).ok_or(Error::EACCES)?;
        match self.system()?.opened_memory(process, opened) {
            Ok(found) => Ok(found.map(|(_, memory)| memory)),
            Err(Error::ESRCH) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens a file of [`MEMORY_FILES`]. `EACCES`, `ESRCH`.
    fn open_memory(&self, process: ExactPid, caller: &dyn ProcessContext) -> Result<Opened> {
        // Take the memory first and check the permission afterwards, as `may_inspect` requires:
        // otherwise an exec could come in between.
        let thread = self.system()?.thread_of_exact(process);
        let memory = thread.map_or(Weak::new(), |thread| Arc::downgrade(thread.memory()));
        self.check_inspection(caller).map_err(|error| match error {
            Error::EPERM => Error::EACCES,
            error => error,
        })?;
        let node = Node { proc: self.proc.clone(), kind: self.kind, opened: Some(memory) };
        Ok(Opened::Vnode(Arc::new(node)))
    }

    /// The setting that this file shows; `None` if it shows none.
    fn setting(&self) -> Option<Setting> {
        match self.kind {
            Kind::File(index) => text::setting(text::FILES[index]),
            _ => None,
        }
    }

    /// Opens a file with a number that can be written; `None` if the file is of another kind.
    fn open_number(&self) -> Option<Arc<dyn FileObject>> {
        let system = || self.proc.system.clone();
        match (self.setting(), self.kind) {
            (Some(setting), _) => {
                let settings = system().upgrade()?.processes().with(|table| table.settings().clone());
                Some(Arc::new(NumberFile(SettingNumber { settings, setting })))
            }
            (None, Kind::ProcessFile(subject, index)) if PROCESS_FILES[index].0 == MEMORY_ADJUSTMENT => {
                let process = subject.process;
                Some(Arc::new(NumberFile(MemoryAdjustment { system: system(), process })))
            }
            _ => None,
        }
    }

    async fn read_text(
        &self,
        reader: &dyn ProcessContext,
        offset: u64,
        to: &mut dyn UserBuffer,
    ) -> Result<usize, AttemptError> {
        if self.is_memory() {
            return self.read_memory(offset, to).await;
        }
        let mut part = Part::new(offset, to.remaining());
        self.make_text(reader, &mut part).await?;
        to.copy_out(&part.text).map_err(|error: CopyError| error.into())
    }

    /// Whether this is the file that gives commands to the system.
    fn is_system_request(&self) -> bool {
        matches!(self.kind, Kind::File(index) if text::FILES[index] == SYSTEM_REQUEST)
    }

    /// Carries out the command to the system that the first letter is: `s` writes what programs
    /// have written to where it is kept, `b` restarts the machine and `o` switches it off, as they
    /// are. `EINVAL` for another one, `ENOSYS`.
    async fn request(&self, from: &mut dyn UserBuffer) -> Result<(usize, u64), AttemptError> {
        let system = self.system()?;
        let all = from.remaining();
        let mut letter = [0];
        let taken = from.copy_in(&mut letter)?;
        let done = match letter[0] {
            b's' => system.synchronize().await,
            b'b' => system.host().end(End::Restart),
            b'o' => system.host().end(End::PowerOff),
            _ => Err(Error::EINVAL),
        };
        done.inspect_err(|_| from.retreat(taken))?;
        // The rest of the write has no meaning.
        from.skip(from.remaining());
        Ok((all, 0))
    }

    /// Whether this is the file `mem` of a process.
    fn is_memory(&self) -> bool {
        matches!(self.kind, Kind::ProcessFile(_, index) if PROCESS_FILES[index].0 == "mem")
    }

    /// Reads the memory of the program that the process had when the file was opened, at the
    /// address that is the offset. Nothing is read after that program has ended. `EIO`.
    async fn read_memory(&self, offset: u64, to: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        let Some(memory) = self.memory()? else { return Ok(0) };
        let mut bytes = alloc::vec![0; to.remaining().min(MEMORY_PIECE)];
        let count = memory.peek(offset, &mut bytes).await?;
        Ok(to.copy_out(&bytes[..count])?)
    }

    /// Writes the same memory. `EIO`.
    async fn write_memory(
        &self,
        offset: u64,
        from: &mut dyn UserBuffer,
    ) -> Result<(usize, u64), AttemptError> {
        let Some(memory) = self.memory()? else { return Ok((0, offset)) };
        let mut bytes = alloc::vec![0; from.remaining().min(MEMORY_PIECE)];
        let taken = from.copy_in(&mut bytes)?;
        let done = memory.poke(offset, &bytes[..taken]).await.inspect_err(|_| from.retreat(taken))?;
        from.retreat(taken - done);
        Ok((done, offset + done as u64))
    }

    async fn make_text(&self, reader: &dyn ProcessContext, part: &mut Part) -> Result<()> {
        let (process, name, opened) = match (self.kind, &self.opened) {
            (Kind::ProcessFile(subject, index), Some(opened)) => {
                (subject.process, PROCESS_FILES[index].0, opened)
            }
            _ => return part.push(&self.text(reader).await?),
        };
        let system = self.system()?;
        match name {
            "maps" => regions::maps_text(&system, process, opened, part).await,
            "smaps" => regions::region_usage_text(&system, process, opened, false, part).await,
            "smaps_rollup" => regions::region_usage_text(&system, process, opened, true, part).await,
            _ => part.push(&self.text(reader).await?),
        }
    }

    fn mode(&self) -> Mode {
        Mode::new(match self.kind {
            Kind::Directory(_) | Kind::Process(_) | Kind::Tasks(_) | Kind::DescriptorFiles(_) => 0o555,
            Kind::Descriptors(_) => 0o500,
            Kind::File(_) if self.is_system_request() => 0o200,
            Kind::File(_) if self.setting().is_some() => 0o644,
            Kind::File(_) | Kind::DescriptorFile(..) => 0o444,
            Kind::ProcessFile(_, index) => PROCESS_FILES[index].1,
            Kind::Namespaces(_) => 0o511,
            Kind::Own | Kind::ProcessLink(..) | Kind::Namespace(..) => 0o777,
            Kind::Descriptor(subject, descriptor) => self.descriptor_mode(subject, descriptor),
        })
    }

    /// User id and group id of the node. If other processes may not inspect the process, all its
    /// files except its directory belong to the superuser.
    fn owner(&self) -> (u32, u32) {
        let Some((process, system)) = self.process().zip(self.proc.system.upgrade()) else { return (0, 0) };
        let always = matches!(self.kind, Kind::Process(_) | Kind::Tasks(_));
        let owner = system.processes().with(|table| {
            let process = table.exact_process(process)?;
            let credentials = process.credentials();
            let own = always || process.is_dumpable() || process.is_zombie();
            Ok::<_, Error>(if own {
                (credentials.user.effective, credentials.group.effective)
            } else {
                (0, 0)
            })
        });
        owner.unwrap_or((0, 0))
    }
}

/// The value of a decimal number without leading zeros; `None` for another text.
fn number(name: &str) -> Option<u32> {
    let number: u32 = name.parse().ok()?;
    (format!("{number}") == name).then_some(number)
}

/// The directory of the system in which the entry with this path is.
fn directory_of(path: &'static str) -> Kind {
    Kind::Directory(&path[..path.rfind('/').map_or(0, |slash| slash + 1)])
}

/// The kind of the entry `name` in the directory with the path `prefix`; `None` if it has no such
/// entry.
fn child(prefix: &'static str, name: &str) -> Option<Kind> {
    children(prefix).into_iter().find(|(known, _)| known == name.as_bytes()).map(|(_, kind)| kind)
}

/// The entries of the directory with the path `prefix`: name and kind.
fn children(prefix: &'static str) -> Vec<(Vec<u8>, Kind)> {
    let mut list: Vec<(Vec<u8>, Kind)> = Vec::new();
    for (index, path) in text::FILES.iter().enumerate() {
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
    /// What this directory of descriptors has for one; `None` if it is none.
    fn of_descriptor(self, subject: Subject, descriptor: i32) -> Option<Kind> {
        match self {
            Kind::Descriptors(_) => Some(Kind::Descriptor(subject, descriptor)),
            Kind::DescriptorFiles(_) => Some(Kind::DescriptorFile(subject, descriptor)),
            _ => None,
        }
    }

    fn file_type(self) -> FileType {
        match self {
            Kind::Directory(_)
            | Kind::Process(_)
            | Kind::Descriptors(_)
            | Kind::DescriptorFiles(_)
            | Kind::Tasks(_)
            | Kind::Namespaces(_) => FileType::Directory,
            Kind::File(_) | Kind::ProcessFile(..) | Kind::DescriptorFile(..) => FileType::Regular,
            Kind::Own | Kind::ProcessLink(..) | Kind::Descriptor(..) | Kind::Namespace(..) => {
                FileType::SymbolicLink
            }
        }
    }

    fn number(self) -> u64 {
        let of = |subject: Subject, part: u64| u64::from(subject.id().number()) << 32 | part;
        // The files of a thread are other files than those of its process.
        let inside = |subject: Subject, part: u64| match subject.thread {
            Some(_) => of(subject, 1 << 31 | part),
            None => of(subject, part),
        };
        match self {
            Kind::Directory(path) => match text::FILES.iter().position(|file| file.starts_with(path)) {
                _ if path.is_empty() => 1,
                index => 0x1000 + 16 * index.unwrap_or(0) as u64 + path.matches('/').count() as u64,
            },
            Kind::File(index) => 0x100 + index as u64,
            Kind::Own => 2,
            Kind::Process(subject) => inside(subject, 1),
            Kind::Descriptors(subject) => inside(subject, 2),
            Kind::Tasks(process) => of(Subject::process(process), 3),
            Kind::Namespaces(subject) => inside(subject, 4),
            Kind::DescriptorFiles(subject) => inside(subject, 5),
            Kind::Namespace(subject, index) => inside(subject, 0x90 + index as u64),
            Kind::ProcessFile(subject, index) => inside(subject, 0x10 + index as u64),
            Kind::ProcessLink(subject, index) => inside(subject, 0x80 + index as u64),
            Kind::Descriptor(subject, descriptor) => inside(subject, 0x1000 + descriptor as u64),
            // No process has 2^30 descriptors.
            Kind::DescriptorFile(subject, descriptor) => inside(subject, (1 << 30) + descriptor as u64),
        }
    }
}

impl<M: Machine> Vnode for Node<M> {
    fn file_system(&self) -> Arc<dyn FileSystem> {
        self.proc.clone()
    }

    fn metadata(&self) -> Metadata {
        let (user, group) = self.owner();
        Metadata {
            device: DeviceNumber { major: 0, minor: 5 },
            number: self.kind.number(),
            file_type: self.kind.file_type(),
            mode: self.mode(),
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

    fn parent(&self) -> Option<VnodeRef> {
        let above = match self.kind {
            Kind::Directory("") => return None,
            Kind::Directory(path) => directory_of(&path[..path.len() - 1]),
            Kind::File(index) => directory_of(text::FILES[index]),
            Kind::Descriptors(subject)
            | Kind::DescriptorFiles(subject)
            | Kind::Namespaces(subject)
            | Kind::ProcessFile(subject, _)
            | Kind::ProcessLink(subject, _) => Kind::Process(subject),
            Kind::Descriptor(subject, _) => Kind::Descriptors(subject),
            Kind::DescriptorFile(subject, _) => Kind::DescriptorFiles(subject),
            Kind::Namespace(subject, _) => Kind::Namespaces(subject),
            Kind::Tasks(process) => Kind::Process(Subject::process(process)),
            Kind::Process(Subject { process, thread: Some(_) }) => Kind::Tasks(process),
            Kind::Own | Kind::Process(_) => Kind::Directory(""),
        };
        Some(self.node(above))
    }

    fn place(&self) -> Option<(VnodeRef, Vec<u8>)> {
        let last = |path: &str| path.rsplit('/').next().unwrap_or(path).as_bytes().to_vec();
        let name = match self.kind {
            Kind::Directory(path) => last(path.strip_suffix('/')?),
            Kind::File(index) => last(text::FILES[index]),
            Kind::Own => b"self".to_vec(),
            Kind::Process(subject) => format!("{}", self.number_of(subject.id())).into_bytes(),
            Kind::ProcessFile(_, index) => PROCESS_FILES[index].0.as_bytes().to_vec(),
            Kind::ProcessLink(_, index) => PROCESS_LINKS[index].as_bytes().to_vec(),
            Kind::Descriptors(_) => b"fd".to_vec(),
            Kind::DescriptorFiles(_) => b"fdinfo".to_vec(),
            Kind::Descriptor(_, descriptor) | Kind::DescriptorFile(_, descriptor) => {
                format!("{descriptor}").into_bytes()
            }
            Kind::Tasks(_) => b"task".to_vec(),
            Kind::Namespaces(_) => b"ns".to_vec(),
            Kind::Namespace(_, index) => nsfs::FILES[index].0.as_bytes().to_vec(),
        };
        Some((self.parent()?, name))
    }

    fn lookup<'a>(&'a self, name: &'a [u8]) -> MaybeReady<'a, Result<VnodeRef>> {
        if self.kind.file_type() != FileType::Directory {
            return MaybeReady::ready(Err(Error::ENOTDIR));
        }
        // If the process has ended, the error is `ESRCH`, as on Linux, which looks for the process
        // to check the permission to search its directory.
        let missing = match self.kind {
            Kind::Process(subject) if self.is_gone(subject) => Error::ESRCH,
            _ => Error::ENOENT,
        };
        MaybeReady::ready(self.find(name).map(|kind| self.node(kind)).ok_or(missing))
    }

    fn read_directory<'a>(
        &'a self,
        position: u64,
        accept: &'a mut (dyn FnMut(DirectoryEntry<'_>) -> bool + Send),
    ) -> MaybeReady<'a, Result<()>> {
        if self.kind.file_type() != FileType::Directory {
            return MaybeReady::ready(Err(Error::ENOTDIR));
        }
        for (next, name, kind) in self.entries(position) {
            let entry =
                DirectoryEntry { name: &name, number: kind.number(), file_type: kind.file_type(), next };
            if !accept(entry) {
                break;
            }
        }
        MaybeReady::ready(Ok(()))
    }

    /// `EACCES` without a caller: whether a process's links can be followed depends on the calling
    /// process.
    fn follow(&self) -> MaybeReady<'_, Result<Link>> {
        MaybeReady::ready(Err(Error::EACCES))
    }

    fn follow_for<'a>(&'a self, process: &'a dyn ProcessContext) -> MaybeReady<'a, Result<Link>> {
        MaybeReady::ready(match self.kind {
            Kind::Own => self.own_number(process).map(Link::Path),
            _ => self.target_for(process),
        })
    }

    fn link_text_for<'a>(&'a self, process: &'a dyn ProcessContext) -> MaybeReady<'a, Result<Vec<u8>>> {
        match self.kind {
            Kind::Own => MaybeReady::ready(self.own_number(process)),
            _ => MaybeReady::pending(self.shown_target_for(process)),
        }
    }

    fn read_for<'a>(
        &'a self,
        process: &'a dyn ProcessContext,
        offset: u64,
        to: &'a mut dyn UserBuffer,
    ) -> MaybeReady<'a, Result<usize, AttemptError>> {
        MaybeReady::pending(self.read_text(process, offset, to))
    }

    fn write<'a>(
        &'a self,
        at: WriteAt,
        _limit: u64,
        from: &'a mut dyn UserBuffer,
    ) -> MaybeReady<'a, Result<(usize, u64), AttemptError>> {
        match at {
            WriteAt::Offset(offset) if self.is_memory() => {
                MaybeReady::pending(self.write_memory(offset, from))
            }
            _ if self.is_system_request() => MaybeReady::pending(self.request(from)),
            _ => MaybeReady::ready(Err(Error::EINVAL.into())),
        }
    }

    /// A process may list and search the directory of its own descriptors even if that directory
    /// belongs to the superuser.
    fn is_open_to(&self, caller: &dyn ProcessContext) -> bool {
        match self.kind {
            Kind::Descriptors(subject) => {
                !self.is_gone(subject) && subject.process.pid().number() == caller.process()
            }
            _ => false,
        }
    }

    /// The modes below /proc/sys are final, as on Linux.
    fn is_mode_final(&self) -> bool {
        match self.kind {
            Kind::Directory(path) => path.starts_with("sys/"),
            Kind::File(index) => text::FILES[index].starts_with("sys/"),
            _ => false,
        }
    }

    fn open(&self, context: &OpenContext) -> MaybeReady<'_, Result<Opened>> {
        if let Kind::ProcessFile(subject, index) = self.kind
            && let Some((_, kind)) = MAP_FILES.iter().find(|(name, _)| *name == PROCESS_FILES[index].0)
        {
            let file = self.system().and_then(|system| MapFile::open(&system, subject, *kind, context));
            return MaybeReady::ready(file.map(|file| Opened::Object(file)));
        }
        if matches!(self.kind, Kind::DescriptorFiles(_) | Kind::DescriptorFile(..))
            && let Err(error) = self.check_descriptors(context.process)
        {
            return MaybeReady::ready(Err(error));
        }
        MaybeReady::ready(match (self.open_number(), self.kind) {
            (Some(file), _) => Ok(Opened::Object(file)),
            (None, Kind::ProcessFile(subject, index)) if MEMORY_FILES.contains(&PROCESS_FILES[index].0) => {
                self.open_memory(subject.process, context.process)
            }
            (None, kind) if kind.file_type() == FileType::SymbolicLink => Err(Error::ENXIO),
            _ => Ok(Opened::Data),
        })
    }

    /// Opening a file with O_TRUNC changes nothing; the write that follows sets the number.
    fn truncate(&self, _size: u64) -> MaybeReady<'_, Result<()>> {
        let is_map = matches!(
            self.kind,
            Kind::ProcessFile(_, index) if MAP_FILES.iter().any(|(name, _)| *name == PROCESS_FILES[index].0)
        );
        let takes_writes = is_map || self.is_system_request() || self.open_number().is_some();
        MaybeReady::ready(if takes_writes { Ok(()) } else { Err(Error::EINVAL) })
    }
}
