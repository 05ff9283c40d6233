//! What changes of mounts reach: the mounts below one, its copies, and those to which a change is
//! propagated.

use super::FileType::Directory;
use super::mount::{Location, Mount};
use super::tree::MountTree;
use super::vnode::{VnodeRef, same};
use crate::{Error, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Checks that what is mounted at a location is of its kind. `ENOTDIR`.
pub(super) fn check_types(at: &Location, root: &VnodeRef) -> Result<()> {
    let is_directory = |vnode: &VnodeRef| vnode.file_type() == Directory;
    if is_directory(&at.vnode) == is_directory(root) { Ok(()) } else { Err(Error::ENOTDIR) }
}

/// The locations to which a mount at `at` is propagated, each with its tree, and whether it is that
/// of a slave. Those of a group come before those of its slaves.
pub(super) fn receivers(trees: &[Arc<MountTree>], at: &Location) -> Vec<(Arc<MountTree>, Location, bool)> {
    let Some(group) = at.mount.sharing().peers else { return Vec::new() };
    let mut found = Vec::new();
    // A group's slaves all come from it, so each mount is found once: as a peer or as a slave.
    let (mut groups, mut next) = (alloc::vec![group], 0);
    while let Some(from) = groups.get(next).copied() {
        next += 1;
        for tree in trees {
            for mount in tree.mounts() {
                let sharing = mount.sharing();
                let is_slave = sharing.master == Some(from);
                let is_peer = from == group && sharing.peers == Some(group);
                if !(is_slave || is_peer) || Arc::ptr_eq(&mount, &at.mount) {
                    continue;
                }
                if let Some(own) = sharing.peers.filter(|own| !groups.contains(own)) {
                    groups.push(own);
                }
                if is_within(&at.vnode, &mount.root().vnode) {
                    let place = Location { mount, vnode: at.vnode.clone() };
                    found.push((tree.clone(), place, is_slave));
                }
            }
        }
    }
    found
}

/// Locks the options of mounts that get into a tree of another owner, and where they are but for
/// the first one, in which the others are.
pub(super) fn lock(mounts: &[Arc<Mount>]) {
    mounts.iter().for_each(|mount| mount.lock_flags());
    mounts.iter().skip(1).for_each(|mount| {
        mount.set_locked(true);
    });
}

/// Whether a vnode is `top`, or below it in its file system.
pub(super) fn is_within(vnode: &VnodeRef, top: &VnodeRef) -> bool {
    let mut here = vnode.clone();
    while !same(&here, top) {
        match here.place() {
            Some((above, _)) => here = above,
            None => return false,
        }
    }
    true
}

/// A mount, and those that are mounted in it, directly or through others.
pub(super) fn below(top: &Arc<Mount>) -> Vec<Arc<Mount>> {
    let mut found = alloc::vec![top.clone()];
    let mut next = 0;
    while next < found.len() {
        let children = found[next].children();
        found.extend(children);
        next += 1;
    }
    found
}

/// Copies a mount with another root, or its own, and with `recursive` what is mounted below that.
/// Returns each mount with its copy. Of the copied mounts, only the first is not attached.
pub(super) fn copy_below(
    top: &Arc<Mount>,
    root: Option<&VnodeRef>,
    recursive: bool,
) -> Vec<(Arc<Mount>, Arc<Mount>)> {
    let root_or_own = root.cloned().unwrap_or_else(|| top.root().vnode);
    let mut copies = alloc::vec![(top.clone(), top.copy(root_or_own.clone()))];
    let mut next = 0;
    while recursive && next < copies.len() {
        let (old, copy) = copies[next].clone();
        for child in old.children() {
            let Some(at) = child.parent() else { continue };
            let is_left_out = root.is_some() && child.sharing().unbindable;
            if is_left_out || (next == 0 && !is_within(&at.vnode, &root_or_own)) {
                continue;
            }
            let below = child.copy(child.root().vnode);
            below.attach(Location { mount: copy.clone(), vnode: at.vnode });
            copies.push((child, below));
        }
        next += 1;
    }
    copies
}

/// Whether `mount` is `above` itself, or is mounted in it, directly or through other mounts.
pub(super) fn is_under(mount: &Arc<Mount>, above: &Arc<Mount>) -> bool {
    let mut mount = mount.clone();
    loop {
        if Arc::ptr_eq(&mount, above) {
            return true;
        }
        match mount.parent() {
            Some(parent) => mount = parent.mount,
            None => return false,
        }
    }
}
