//! The files of a process in /proc that show and set which ids its namespace of users has
//! (user_namespaces(7)): uid_map, gid_map and setgroups.

use super::subject::Subject;
use alloc::format;
use alloc::string::String;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use mach::Machine;
use unix::credentials::Credentials;
use unix::file::{FileObject, Io, Positions};
use unix::namespace::{IdKind, MapWriter, Range, UserNamespace};
use unix::process::Pid;
use unix::thread::System;
use unix::vfs::{OpenContext, OpenFlags};
use unix::{AttemptError, Error, Privilege, Result, UserBuffer};

/// What a file shows.
#[derive(Clone, Copy)]
pub(super) enum MapKind {
    /// The ids of users or groups.
    Ids(IdKind),
    /// Whether setgroups(2) is allowed.
    Groups,
}

/// The files by their names.
pub(super) const MAP_FILES: [(&str, MapKind); 3] = [
    ("uid_map", MapKind::Ids(IdKind::User)),
    ("gid_map", MapKind::Ids(IdKind::Group)),
    ("setgroups", MapKind::Groups),
];

/// The most bytes of a map: a page, with its end.
const SIZE_MAXIMUM: usize = 4095;

/// A file that is open.
pub(super) struct MapFile<M: Machine> {
    system: Weak<System<M>>,
    namespace: UserNamespace,
    /// The credentials of the thread that opened the file.
    opener: Arc<Credentials>,
    kind: MapKind,
}

impl<M: Machine> MapFile<M> {
    /// Opens a file of a process. `EACCES` for writing whether setgroups is allowed without the
    /// privilege in the namespace; `ESRCH`.
    pub(super) fn open(
        system: &Arc<System<M>>,
        subject: Subject,
        kind: MapKind,
        context: &OpenContext<'_>,
    ) -> Result<Arc<MapFile<M>>> {
        let tid = Pid::new(context.process.thread()).ok_or(Error::EACCES)?;
        let (namespace, opener) = system.processes().with(|table| {
            let (process, thread) = subject.records(table)?;
            let theirs = thread.map_or(process.credentials(), |thread| thread.credentials());
            Ok::<_, Error>((theirs.namespace.clone(), table.thread(tid)?.credentials().clone()))
        })?;
        let writes = context.flags.contains(OpenFlags::WRITE);
        if writes && matches!(kind, MapKind::Groups) && !opener.has_in(&namespace, Privilege::Administrator) {
            return Err(Error::EACCES);
        }
        Ok(Arc::new(MapFile { system: Arc::downgrade(system), namespace, opener, kind }))
    }

    fn text(&self) -> String {
        match self.kind {
            MapKind::Groups => {
                String::from(if self.namespace.allows_groups() { "allow\n" } else { "deny\n" })
            }
            MapKind::Ids(kind) => {
                let line =
                    |range: Range| format!("{:10} {:10} {:10}\n", range.inside, range.outside, range.count);
                self.namespace.ranges(kind, &self.opener.namespace).into_iter().map(line).collect()
            }
        }
    }

    fn set(&self, text: &[u8], io: &Io<'_>) -> Result<()> {
        let text = core::str::from_utf8(text).map_err(|_| Error::EINVAL)?;
        match self.kind {
            MapKind::Groups => match text.trim_end() {
                "allow" => self.namespace.set_allows_groups(true),
                "deny" => self.namespace.set_allows_groups(false),
                _ => Err(Error::EINVAL),
            },
            MapKind::Ids(kind) => {
                let ranges = text.lines().map(range).collect::<Result<Vec<_>>>();
                let system = self.system.upgrade().ok_or(Error::ENODEV)?;
                let tid = Pid::new(io.caller.process.thread()).ok_or(Error::EPERM)?;
                let find =
                    |table: &mut unix::process::Table| table.thread(tid).map(|t| t.credentials().clone());
                let writer = system.processes().with(find)?;
                self.namespace.set_map(kind, ranges?, &MapWriter { opener: &self.opener, writer: &writer })
            }
        }
    }
}

/// The range of a line: three numbers. `EINVAL`.
fn range(line: &str) -> Result<Range> {
    let mut numbers = line.split_ascii_whitespace().map(|number| number.parse().map_err(|_| Error::EINVAL));
    let mut next = || numbers.next().ok_or(Error::EINVAL)?;
    let range = Range { inside: next()?, outside: next()?, count: next()? };
    if numbers.next().is_some() { Err(Error::EINVAL) } else { Ok(range) }
}

impl<M: Machine> FileObject for MapFile<M> {
    fn try_read(&self, io: &Io<'_>, to: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        let text = self.text();
        let from = usize::try_from(io.position).unwrap_or(usize::MAX).min(text.len());
        Ok(to.copy_out(&text.as_bytes()[from..])?)
    }

    /// Sets everything by one write, at the beginning of the file.
    fn try_write(&self, io: &Io<'_>, from: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        if io.position != 0 || from.remaining() > SIZE_MAXIMUM {
            return Err(Error::EINVAL.into());
        }
        let mut bytes = alloc::vec![0; from.remaining()];
        let count = from.copy_in(&mut bytes)?;
        if count < bytes.len() {
            from.retreat(count);
            return Err(AttemptError::NotResident);
        }
        self.set(&bytes, io).inspect_err(|_| from.retreat(count))?;
        Ok(count)
    }

    fn positions(&self) -> Positions {
        Positions::Upto(i64::MAX as u64)
    }

    fn label(&self) -> &'static str {
        "map"
    }
}
