//! The file system of message queues, and opening queues in it.

use super::{Maker, MessageQueue, QueueLimits};
use crate::file::{FileObject, OpenFile};
use crate::process::{Limits, Resource};
use crate::process_context::ProcessContext;
use crate::tmpfs::{Tmpfs, TmpfsOptions};
use crate::vfs::{
    At, Caller, FileSystemType, Location, MemoryProvider, Mode, Mount, MountFlags, NewAttributes, OpenFlags,
    Vfs, VnodeRef,
};
use crate::{Environment, Error, MaybeReady, Privilege, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::AtomicU32;

/// The message queues of a namespace.
#[derive(Clone)]
pub struct MessageQueues {
    /// The mount in which queues are opened by name. It is at no place in the tree.
    mount: Arc<Mount>,
    /// How many queues there are.
    all: Arc<AtomicU32>,
}

/// The file systems of message queues, of which each namespace has one.
pub(crate) struct QueueFileSystems {
    memory: Arc<dyn MemoryProvider>,
    environment: Arc<dyn Environment>,
    first: MessageQueues,
}

impl QueueFileSystems {
    /// The message queues that a process sees. `ENOSPC`.
    pub(crate) fn of(&self, process: &dyn ProcessContext) -> Result<MessageQueues> {
        match process.objects() {
            None => Ok(self.first.clone()),
            Some(namespace) => namespace.queues(|| MessageQueues::make(&self.memory, &self.environment)),
        }
    }
}

impl FileSystemType for QueueFileSystems {
    fn make<'a>(&'a self, _: &'a [u8], _: &'a [u8]) -> MaybeReady<'a, Result<VnodeRef>> {
        MaybeReady::ready(Ok(self.first.mount.root().vnode))
    }

    fn make_for<'a>(
        &'a self,
        process: &dyn ProcessContext,
        _: &'a [u8],
        _: &'a [u8],
    ) -> MaybeReady<'a, Result<VnodeRef>> {
        MaybeReady::ready(self.of(process).map(|queues| queues.mount.root().vnode))
    }
}

impl MessageQueues {
    /// Makes the file system, in which a file that is made is a queue, and registers its type with
    /// `vfs`.
    ///
    /// # Errors
    /// `ENOSPC`: there is no memory for its root.
    pub fn register(
        vfs: &Vfs,
        memory: Arc<dyn MemoryProvider>,
        environment: Arc<dyn Environment>,
    ) -> Result<()> {
        let first = MessageQueues::make(&memory, &environment)?;
        let all = Arc::new(QueueFileSystems { memory, environment, first });
        vfs.set_message_queues(all.clone());
        vfs.register_file_system("mqueue", all);
        Ok(())
    }

    fn make(memory: &Arc<dyn MemoryProvider>, environment: &Arc<dyn Environment>) -> Result<MessageQueues> {
        let all = Arc::new(AtomicU32::new(0));
        let counted = all.clone();
        // Queues that are made by other calls than mq_open(2) have the default limits.
        let make = move |attributes: &NewAttributes| {
            let account = attributes.account.as_ref().ok_or(Error::EPERM)?;
            let limit = Limits::default().soft(Resource::MessageQueues);
            let maker = Maker { account, limit, privileged: attributes.user == 0 };
            MessageQueue::new(&maker, None, &counted).map(|queue| queue as Arc<dyn FileObject>)
        };
        let options = TmpfsOptions { kind: "mqueue", ..TmpfsOptions::for_memory(u64::MAX) };
        let root = Tmpfs::of_objects(&options, memory.clone(), environment.clone(), Arc::new(make))?;
        let mount = Mount::detached(root, "mqueue", MountFlags::empty());
        Ok(MessageQueues { mount, all })
    }

    fn root(&self) -> At {
        let root = Location { mount: self.mount.clone(), vnode: self.mount.root().vnode };
        At::File(OpenFile::of_vnode(root, None, OpenFlags::PATH, None))
    }
}

/// Checks the name of a queue, which has no slash. `EACCES`, `ENAMETOOLONG`.
fn check_name(name: &[u8]) -> Result<()> {
    match name {
        b"" | b"." | b".." => Err(Error::EACCES),
        name if name.contains(&b'/') => Err(Error::EACCES),
        name if name.len() > crate::vfs::NAME_MAXIMUM => Err(Error::ENAMETOOLONG),
        _ => Ok(()),
    }
}

impl Caller<'_> {
    /// Opens the message queue `name`, which has no slash, or makes it with these limits if the
    /// flags say so. `limit` is the caller's RLIMIT_MSGQUEUE, in bytes.
    ///
    /// # Errors
    /// `EACCES`, `EEXIST`, `ENOENT`, `ENAMETOOLONG`, and those of [`MessageQueue::new`].
    pub async fn open_message_queue(
        &self,
        name: &[u8],
        flags: OpenFlags,
        mode: Mode,
        limits: Option<QueueLimits>,
        limit: u64,
    ) -> Result<Arc<OpenFile>> {
        check_name(name)?;
        let queues = self.vfs.message_queues(self.process)?;
        let plain = flags.difference(OpenFlags::CREATE | OpenFlags::EXCLUSIVE);
        loop {
            match self.open(&queues.root(), name, plain, mode).await {
                Ok(_) if flags.contains(OpenFlags::CREATE | OpenFlags::EXCLUSIVE) => {
                    return Err(Error::EEXIST);
                }
                Err(Error::EACCES) if flags.contains(OpenFlags::CREATE | OpenFlags::EXCLUSIVE) => {
                    return Err(Error::EEXIST);
                }
                Err(Error::ENOENT) if flags.contains(OpenFlags::CREATE) => {}
                done => return done,
            }
            let root = queues.mount.root();
            let attributes = self.new_attributes(&root, mode, false)?;
            let account = self.process.account();
            let privileged = self.identity.has(Privilege::Resource);
            let queue =
                MessageQueue::new(&Maker { account: &account, limit, privileged }, limits, &queues.all)?;
            match root.vnode.create_object(name, queue, attributes).await {
                Ok(vnode) => {
                    let location = Location { mount: queues.mount.clone(), vnode };
                    let entry: (Location, Vec<u8>) = (root, name.to_vec());
                    return self.open_found(location, Some(entry), plain, true).await;
                }
                // Another process has made the queue meanwhile.
                Err(Error::EEXIST) if !flags.contains(OpenFlags::EXCLUSIVE) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Removes the name of a message queue (mq_unlink(2)); the queue is gone when no descriptor
    /// refers to it. `EACCES`, `EPERM`, `ENOENT`, `ENAMETOOLONG`.
    pub async fn unlink_message_queue(&self, name: &[u8]) -> Result<()> {
        check_name(name)?;
        self.unlink(&self.vfs.message_queues(self.process)?.root(), name).await
    }
}
