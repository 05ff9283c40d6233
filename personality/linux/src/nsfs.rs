//! Files that show namespaces (namespaces(7)): those in the directory `ns` of a process in /proc,
//! and what ioctl(2) tells about them (ioctl_ns(2)).

use crate::calls::program::flag;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use mach::Machine;
use unix::file::OpenFile;
use unix::thread::{Namespace, Thread};
use unix::vfs::{
    DeviceNumber, FileSystem, FileSystemStatus, FileType, Metadata, Mode, OpenContext, Opened, Vnode,
    VnodeRef,
};
use unix::{Error, MaybeReady, Result, Timestamp};

/// A kind of namespaces, as /proc names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Users,
    Mounts,
    Processes,
    /// That in which the children of the process begin.
    ForChildren,
    Names,
    Objects,
}

/// The files of the directory `ns`.
pub(crate) const FILES: [(&str, Kind); 6] = [
    ("ipc", Kind::Objects),
    ("mnt", Kind::Mounts),
    ("pid", Kind::Processes),
    ("pid_for_children", Kind::ForChildren),
    ("user", Kind::Users),
    ("uts", Kind::Names),
];

/// The namespace of this kind in which a thread is.
pub(crate) fn namespace_of<M: Machine>(thread: &Thread<M>, kind: Kind) -> Namespace {
    let own = || thread.namespaces();
    match kind {
        Kind::Users => Namespace::Users(thread.credentials().namespace.clone()),
        Kind::Mounts => Namespace::Mounts(thread.directories().tree()),
        Kind::Processes => Namespace::Processes(thread.pid_namespace()),
        Kind::ForChildren => Namespace::Processes(own().for_children.clone()),
        Kind::Names => Namespace::Names(own().names.clone()),
        Kind::Objects => Namespace::Objects(own().objects.clone()),
    }
}

/// What a namespace is called: its kind and its number.
pub(crate) fn name(namespace: &Namespace) -> String {
    let kind = match namespace {
        Namespace::Users(_) => "user",
        Namespace::Mounts(_) => "mnt",
        Namespace::Processes(_) => "pid",
        Namespace::Names(_) => "uts",
        Namespace::Objects(_) => "ipc",
    };
    format!("{kind}:[{}]", namespace.number())
}

/// A file that shows a namespace, and keeps it.
pub(crate) struct Node(pub(crate) Namespace);

struct Files;

impl FileSystem for Files {
    fn status(&self) -> FileSystemStatus {
        FileSystemStatus::without_store("nsfs", 0)
    }
}

impl Vnode for Node {
    fn file_system(&self) -> Arc<dyn FileSystem> {
        Arc::new(Files)
    }

    fn metadata(&self) -> Metadata {
        let never = Timestamp::default();
        Metadata {
            device: DeviceNumber { major: 0, minor: 4 },
            number: self.number(),
            file_type: FileType::Regular,
            mode: Mode::new(0o444),
            links: 1,
            user: 0,
            group: 0,
            represents: DeviceNumber::default(),
            size: 0,
            blocks: 0,
            block_size: 4096,
            accessed: never,
            modified: never,
            changed: never,
            created: never,
        }
    }

    fn file_type(&self) -> FileType {
        FileType::Regular
    }

    fn number(&self) -> u64 {
        self.0.number()
    }

    fn open(&self, _: &OpenContext<'_>) -> MaybeReady<'_, Result<Opened>> {
        MaybeReady::ready(Ok(Opened::Data))
    }
}

/// The namespace that a file shows, if it shows one.
pub(crate) fn namespace_in(file: &OpenFile) -> Option<Namespace> {
    let vnode: &VnodeRef = &file.location()?.vnode;
    let node: &Node = (&**vnode as &dyn core::any::Any).downcast_ref()?;
    Some(node.0.clone())
}

/// The answer to a request of ioctl about a namespace.
pub(crate) enum Answer {
    /// Another namespace, for which there is to be a file.
    Namespace(Namespace),
    /// A number.
    Number(u64),
    /// The id of a user, to be stored.
    User(u32),
}

/// Answers a request of ioctl about `namespace` for a thread: only namespaces that are in the
/// thread's own, or are that, are shown (`EPERM`). `EINVAL` if the request is about another kind of
/// namespaces, `ENOTTY` if it is unknown.
pub(crate) fn answer<M: Machine>(thread: &Thread<M>, namespace: &Namespace, request: u32) -> Result<Answer> {
    const OWNER: u32 = 0xb701;
    const PARENT: u32 = 0xb702;
    const KIND: u32 = 0xb703;
    const OWNING_USER: u32 = 0xb704;
    let users = |owner: Option<&unix::namespace::UserNamespace>| {
        let owner = owner.filter(|owner| owner.is_within(&thread.credentials().namespace));
        Ok(Answer::Namespace(Namespace::Users(owner.ok_or(Error::EPERM)?.clone())))
    };
    match (request, namespace) {
        (OWNER, _) => users(namespace.owner()),
        (PARENT, Namespace::Users(own)) => users(own.parent()),
        (PARENT, Namespace::Processes(own)) => {
            let parent = own.parent().filter(|parent| parent.is_within(&thread.pid_namespace()));
            Ok(Answer::Namespace(Namespace::Processes(parent.ok_or(Error::EPERM)?.clone())))
        }
        (PARENT, _) => Err(Error::EINVAL),
        (KIND, _) => Ok(Answer::Number(flag(namespace))),
        (OWNING_USER, Namespace::Users(own)) => {
            Ok(Answer::User(thread.credentials().namespace.shown_user(own.owner())))
        }
        (OWNING_USER, _) => Err(Error::EINVAL),
        _ => Err(Error::ENOTTY),
    }
}

/// Opens a file that shows a namespace.
pub(crate) fn open<M: Machine>(thread: &Thread<M>, namespace: Namespace) -> Arc<OpenFile> {
    thread.system().vfs().open_node(Arc::new(Node(namespace)))
}
