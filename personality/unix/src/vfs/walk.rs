//! The path walker, which finds the file that a path names (path_resolution(7)).

use super::metadata::{FileType, Mode, NAME_MAXIMUM, PATH_MAXIMUM};
use super::mount::Location;
use super::permission::Access;
use super::vnode::Link;
use super::{At, Caller};
use crate::account::Setting;
use crate::sync::Turns;
use crate::{Error, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bitflags::bitflags;

/// How many symbolic links a path may cross.
pub const LINKS_MAXIMUM: u32 = 40;

/// After this many components, a walk lets other tasks run.
const TURN: u32 = 512;

bitflags! {
    /// What the path of a call must not do (openat2(2)).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Restrictions: u32 {
        /// The path must not lead to another mount: `EXDEV` (RESOLVE_NO_XDEV).
        const NO_OTHER_MOUNT = 1;
        /// The path must not lead through a link to a location: `ELOOP` (RESOLVE_NO_MAGICLINKS).
        const NO_MAGIC_LINKS = 2;
        /// The path must not lead through any symbolic link: `ELOOP` (RESOLVE_NO_SYMLINKS).
        const NO_LINKS = 4;
        /// The path must not lead out of the directory where it begins: `EXDEV` (RESOLVE_BENEATH).
        const BENEATH = 8;
        /// The directory where the path begins is its root (RESOLVE_IN_ROOT).
        const IN_ROOT = 16;
    }
}

impl Restrictions {
    /// The restrictions with which a path does not leave the directory where it begins.
    const SCOPED: Restrictions = Restrictions::BENEATH.union(Restrictions::IN_ROOT);
}

/// A file that a path names.
#[derive(Clone, Debug)]
pub struct Found {
    /// The location of the file.
    pub location: Location,
    /// The directory and name by which the file was found; `None` for `/`, `.`, `..`, and links to
    /// a location.
    pub entry: Option<(Location, Vec<u8>)>,
}

/// The last component of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Last {
    /// The path ends in a name.
    Name {
        /// The last name of the path.
        name: Vec<u8>,
        /// Whether a slash follows the name, which then has to be a directory's.
        directory: bool,
    },
    /// The path is `/`, or its last link led directly to a location. The walk has arrived.
    Here,
    /// The path ends in `.`
    Dot,
    /// The path ends in `..`
    DotDot,
}

/// A walk in progress.
pub(crate) struct Walker<'a> {
    caller: &'a Caller<'a>,
    root: Location,
    /// The location at which the walk has arrived.
    pub(crate) at: Location,
    /// The rest of the path is `path[next..]`.
    path: Vec<u8>,
    next: usize,
    links: u32,
    turns: Turns,
}

impl<'a> Walker<'a> {
    pub(crate) fn new(caller: &'a Caller<'a>, at: &At, path: &[u8]) -> Result<Walker<'a>> {
        if path.is_empty() {
            return Err(Error::ENOENT);
        }
        if path.len() > PATH_MAXIMUM {
            return Err(Error::ENAMETOOLONG);
        }
        let restrictions = caller.restrictions;
        let is_absolute = path[0] == b'/';
        if is_absolute && restrictions.contains(Restrictions::BENEATH) {
            return Err(Error::EXDEV);
        }
        let (root, start) = match restrictions.intersects(Restrictions::SCOPED) {
            true => {
                let start = at.directory(caller)?;
                (start.clone(), start)
            }
            false => {
                let root = caller.directories.root();
                let start = if is_absolute { root.clone() } else { at.directory(caller)? };
                (root, start)
            }
        };
        Ok(Walker {
            caller,
            root,
            at: start,
            path: path.to_vec(),
            next: 0,
            links: 0,
            turns: Turns::every(TURN),
        })
    }

    /// Walks until only the last component of the path is left.
    pub(crate) async fn walk_to_last(&mut self) -> Result<Last> {
        loop {
            self.turns.step().await;
            while self.path.get(self.next) == Some(&b'/') {
                self.next += 1;
            }
            let rest = &self.path[self.next..];
            let end = rest.iter().position(|&b| b == b'/').unwrap_or(rest.len());
            let name = &rest[..end];
            let behind = &rest[end..];
            let last = behind.iter().all(|&b| b == b'/');
            let directory = !behind.is_empty();
            if name.len() > NAME_MAXIMUM {
                return Err(Error::ENAMETOOLONG);
            }
            let start = self.next;
            self.next += end;
            match (name, last) {
                (b"", _) => return Ok(Last::Here),
                (b".", last) => {
                    self.check_search()?;
                    if last {
                        return Ok(Last::Dot);
                    }
                }
                (b"..", last) => {
                    self.check_search()?;
                    self.go_up()?;
                    if last {
                        return Ok(Last::DotDot);
                    }
                }
                (_, true) => {
                    self.check_search()?;
                    return Ok(Last::Name { name: name.to_vec(), directory });
                }
                (_, false) => {
                    let found = self.child(&self.path[start..start + end]).await?;
                    if found.vnode.file_type() == FileType::SymbolicLink {
                        self.enter_link(&found).await?;
                    } else {
                        self.at = found;
                    }
                }
            }
        }
    }

    /// The file with this name in the directory at which the walk has arrived, or the root of what
    /// is mounted on it.
    pub(crate) async fn child(&self, name: &[u8]) -> Result<Location> {
        self.check_search()?;
        let vnode = self.at.vnode.lookup(name).await?;
        let child = Location { mount: self.at.mount.clone(), vnode }.visible();
        self.check_mount(&child)?;
        Ok(child)
    }

    /// Continues the walk with the target of a symbolic link, which is in the directory at which
    /// the walk has arrived, and then with the rest of the path.
    pub(crate) async fn enter_link(&mut self, link: &Location) -> Result<()> {
        self.links += 1;
        if self.links > LINKS_MAXIMUM {
            return Err(Error::ELOOP);
        }
        let restrictions = self.caller.restrictions;
        if restrictions.contains(Restrictions::NO_LINKS) {
            return Err(Error::ELOOP);
        }
        match link.vnode.follow_for(self.caller.process).await? {
            Link::Path(target) => {
                if target.is_empty() {
                    return Err(Error::ENOENT);
                }
                if target[0] == b'/' {
                    if restrictions.contains(Restrictions::BENEATH) {
                        return Err(Error::EXDEV);
                    }
                    self.check_mount(&self.root)?;
                    self.at = self.root.clone();
                }
                let rest = &self.path[self.next..];
                if target.len() + rest.len() > 2 * PATH_MAXIMUM {
                    return Err(Error::ENAMETOOLONG);
                }
                let mut path = target;
                path.extend_from_slice(rest);
                self.path = path;
                self.next = 0;
            }
            Link::Place(_) if restrictions.contains(Restrictions::NO_MAGIC_LINKS) => {
                return Err(Error::ELOOP);
            }
            Link::Place(_) if restrictions.intersects(Restrictions::SCOPED) => return Err(Error::EXDEV),
            Link::Place(place) => {
                self.check_mount(&place)?;
                self.at = place;
                // The rest of the path is empty or begins with a slash; if it is empty, the path
                // names the location where the walk is.
            }
        }
        Ok(())
    }

    /// Continues the walk with a link at the end of the path, as [`Walker::enter_link`] does. In a
    /// directory where other users may make links but not remove them, only links of the caller and
    /// of the directory's owner are followed (proc(5), protected_symlinks).
    pub(crate) async fn enter_last_link(&mut self, link: &Location) -> Result<()> {
        let (directory, own) = (self.at.vnode.metadata(), link.vnode.metadata());
        let is_trap = directory.mode.contains(Mode::STICKY | Mode::OTHER_WRITE)
            && own.user != self.caller.identity.user
            && own.user != directory.user
            && self.caller.process.account().settings().is_on(Setting::ProtectedSymbolicLinks);
        if is_trap { Err(Error::EACCES) } else { self.enter_link(link).await }
    }

    /// Goes to the parent directory. A directory that has been moved out of the one where the path
    /// begins meanwhile has no parent in it.
    fn go_up(&mut self) -> Result<()> {
        let restrictions = self.caller.restrictions;
        if restrictions.contains(Restrictions::BENEATH) && self.at.same(&self.root) {
            return Err(Error::EXDEV);
        }
        let above = self.at.up(&self.root)?;
        self.check_mount(&above)?;
        if restrictions.intersects(Restrictions::SCOPED)
            && above.path(&self.root)?.starts_with(b"(unreachable)")
        {
            return Err(Error::EXDEV);
        }
        self.at = above;
        Ok(())
    }

    /// Checks that the walk may go on at a location. `EXDEV`.
    fn check_mount(&self, next: &Location) -> Result<()> {
        let crosses = self.caller.restrictions.contains(Restrictions::NO_OTHER_MOUNT)
            && !Arc::ptr_eq(&self.at.mount, &next.mount);
        if crosses { Err(Error::EXDEV) } else { Ok(()) }
    }

    fn check_search(&self) -> Result<()> {
        let metadata = self.at.vnode.metadata();
        if metadata.file_type != FileType::Directory {
            return Err(Error::ENOTDIR);
        }
        self.caller.permitted(&self.at, &metadata, Access::EXECUTE)
    }
}

impl Caller<'_> {
    /// Finds the file that a path names; with `follow`, a symbolic link at its end is followed.
    pub async fn find(&self, at: &At, path: &[u8], follow: bool) -> Result<Found> {
        let mut walker = Walker::new(self, at, path)?;
        let mut directory_demanded = path.ends_with(b"/");
        loop {
            let Last::Name { name, directory } = walker.walk_to_last().await? else {
                let location = walker.at;
                if directory_demanded && location.vnode.file_type() != FileType::Directory {
                    return Err(Error::ENOTDIR);
                }
                return Ok(Found { location, entry: None });
            };
            directory_demanded |= directory;
            let found = walker.child(&name).await?;
            match found.vnode.file_type() {
                FileType::SymbolicLink if follow || directory_demanded => {
                    walker.enter_last_link(&found).await?
                }
                FileType::Directory => {
                    return Ok(Found { location: found, entry: Some((walker.at, name)) });
                }
                _ if directory_demanded => return Err(Error::ENOTDIR),
                _ => return Ok(Found { location: found, entry: Some((walker.at, name)) }),
            }
        }
    }

    /// Finds the file that a path names, or with an empty path and `empty` the file of `at` itself
    /// (AT_EMPTY_PATH).
    pub async fn find_or_self(&self, at: &At, path: &[u8], follow: bool, empty: bool) -> Result<Found> {
        if path.is_empty() && empty {
            return Ok(Found { location: at.location(self)?, entry: None });
        }
        self.find(at, path, follow).await
    }

    /// Walks to the directory that has a path's last component, for operations that change the
    /// directory.
    pub(crate) async fn find_directory(&self, at: &At, path: &[u8]) -> Result<(Location, Last)> {
        let mut walker = Walker::new(self, at, path)?;
        let last = walker.walk_to_last().await?;
        Ok((walker.at, last))
    }
}
