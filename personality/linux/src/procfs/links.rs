//! The links of a process in /proc to its directories, its program and its descriptors. Following
//! such a link checks no permissions of the directories on the path of its target, so only
//! processes that may inspect this one follow or read its links.

use super::subject::Subject;
use super::{Kind, Node, PROCESS_LINKS};
use crate::nsfs;
use alloc::sync::Arc;
use alloc::vec::Vec;
use mach::Machine;
use unix::file::OpenFile;
use unix::process_context::ProcessContext;
use unix::thread::{Namespace, Thread};
use unix::vfs::{Link, Location, OpenFlags};
use unix::{Error, Result};

/// The target of a link.
enum Target {
    /// The link leads to a file as it was opened.
    File(Arc<OpenFile>),
    /// The link leads to a location.
    Place(Location),
    /// The link leads to a namespace.
    Namespace(Namespace),
}

impl<M: Machine> Node<M> {
    /// The target of the link. `ENOENT` if there is none, `EACCES` if the caller may not inspect
    /// the process.
    fn link_target(&self, caller: &dyn ProcessContext) -> Result<(Target, Arc<Thread<M>>)> {
        let system = self.system()?;
        let (Kind::ProcessLink(subject, _) | Kind::Descriptor(subject, _) | Kind::Namespace(subject, _)) =
            self.kind
        else {
            return Err(Error::EINVAL);
        };
        // Take the target first and check the permission afterwards, as `may_inspect` requires:
        // otherwise an exec could come in between.
        let found = subject.find(&system).and_then(|thread| {
            let target = match self.kind {
                Kind::ProcessLink(_, index) => match PROCESS_LINKS[index] {
                    "cwd" => Target::Place(thread.directories().current()),
                    "root" => Target::Place(thread.directories().root()),
                    _ => Target::File(thread.memory().executable()?),
                },
                Kind::Namespace(_, index) => {
                    Target::Namespace(nsfs::namespace_of(&thread, nsfs::FILES[index].1))
                }
                Kind::Descriptor(_, descriptor) => Target::File(thread.descriptors().get(descriptor).ok()?),
                _ => return None,
            };
            Some((target, thread))
        });
        self.check_inspection(caller).map_err(|error| match error {
            Error::ESRCH => Error::ENOENT,
            _ => Error::EACCES,
        })?;
        found.ok_or(Error::ENOENT)
    }

    /// The target of the link for this caller ([`unix::vfs::Vnode::follow_for`]).
    pub(super) fn target_for(&self, caller: &dyn ProcessContext) -> Result<Link> {
        let (target, _) = self.link_target(caller)?;
        let place = match (target, self.kind) {
            (Target::Place(place), _) => Some(place),
            (Target::Namespace(namespace), _) => {
                Some(self.system()?.vfs().place_of_node(Arc::new(nsfs::Node(namespace))))
            }
            (Target::File(file), Kind::Descriptor(..)) => Some(self.system()?.vfs().place_of(&file)),
            (Target::File(file), _) => file.location().cloned(),
        };
        place.map(Link::Place).ok_or(Error::ENOENT)
    }

    /// The text of the link for this caller ([`unix::vfs::Vnode::link_text_for`]).
    pub(super) async fn shown_target_for(&self, caller: &dyn ProcessContext) -> Result<Vec<u8>> {
        let (target, thread) = self.link_target(caller)?;
        Ok(match target {
            Target::Place(place) => place.path_from_root().await,
            Target::Namespace(namespace) => nsfs::name(&namespace).into_bytes(),
            Target::File(file) => match nsfs::namespace_in(&file) {
                Some(namespace) => nsfs::name(&namespace).into_bytes(),
                None => file.path(&thread.directories().root()).await,
            },
        })
    }

    /// The mode of a descriptor's link, which shows how the file is open.
    pub(super) fn descriptor_mode(&self, subject: Subject, descriptor: i32) -> u16 {
        let thread = self.system().ok().and_then(|system| subject.find(&system));
        let file = thread.and_then(|thread| thread.descriptors().get(descriptor).ok());
        let flags = file.map_or(OpenFlags::empty(), |file| file.flags());
        let bit = |flag, mode| if flags.contains(flag) { mode } else { 0 };
        match flags.contains(OpenFlags::PATH) {
            true => 0,
            false => bit(OpenFlags::READ, 0o500) | bit(OpenFlags::WRITE, 0o300),
        }
    }
}
