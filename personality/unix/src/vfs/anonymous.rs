//! Locations of open files without a name, so that symbolic links can lead to them: a pipe can be
//! opened again through /dev/stdin.

use super::mount::Location;
use super::{FileSystem, FileType, Metadata, OpenContext, OpenFlags, Opened, Vfs, Vnode, VnodeRef};
use crate::file::{FileObject, OpenFile};
use crate::tty::TerminalFile;
use crate::{Error, MaybeReady, Result};
use alloc::sync::Arc;

impl Vfs {
    /// The location of a node that is in no directory.
    pub fn place_of_node(&self, node: VnodeRef) -> Location {
        self.tree.anonymous(node)
    }

    /// Opens a node that is in no directory, for reading.
    pub fn open_node(&self, node: VnodeRef) -> Arc<OpenFile> {
        OpenFile::of_vnode(self.place_of_node(node), None, OpenFlags::READ, None)
    }

    /// The location of an open file, whether or not it has a name.
    pub fn place_of(&self, file: &Arc<OpenFile>) -> Location {
        match file.location() {
            Some(location) => location.clone(),
            None => {
                let file_system = self.tree.root().vnode.file_system();
                self.tree.anonymous(Arc::new(Anonymous { file: file.clone(), file_system }))
            }
        }
    }
}

struct Anonymous {
    file: Arc<OpenFile>,
    file_system: Arc<dyn FileSystem>,
}

impl Vnode for Anonymous {
    fn file_system(&self) -> Arc<dyn FileSystem> {
        self.file_system.clone()
    }

    fn metadata(&self) -> Metadata {
        self.file.metadata()
    }

    fn file_type(&self) -> FileType {
        self.file.file_type()
    }

    fn number(&self) -> u64 {
        self.file.metadata().number
    }

    fn open(&self, context: &OpenContext<'_>) -> MaybeReady<'_, Result<Opened>> {
        if let Some(end) = self.file.pipe_end() {
            return MaybeReady::ready(Ok(Opened::Object(end.open_again(context.flags))));
        }
        // A console that was opened for the first process has no name either, and can be opened
        // again.
        let terminal = self.file.object_as::<TerminalFile>().and_then(|file| file.terminal().cloned());
        let opened = terminal.ok_or(Error::ENXIO).and_then(|terminal| {
            TerminalFile::open(&terminal, context.process, Some(context.identity), context.flags)
        });
        MaybeReady::ready(opened.map(|file| Opened::Object(file)))
    }
}
