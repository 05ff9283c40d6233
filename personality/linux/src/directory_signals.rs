//! Signals when a directory changes (F_NOTIFY of fcntl(2)).

use crate::signals_of_files::information;
use alloc::sync::{Arc, Weak};
use bitflags::bitflags;
use core::any::Any;
use mach::Machine;
use unix::account::{Account, Charge, Kept, Setting};
use unix::file::OpenFile;
use unix::sync::SpinLock;
use unix::thread::System;
use unix::vfs::{Change, Changes, FileType, Observer, Observing};
use unix::{Error, Result};

bitflags! {
    /// What a program asks to be told of.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Asked: u32 {
        const ACCESS = 1;
        const MODIFY = 2;
        const CREATE = 4;
        const DELETE = 8;
        const RENAME = 0x10;
        const ATTRIBUTES = 0x20;
        /// It is told again and again, not once.
        const AGAIN = 0x8000_0000;
    }
}

impl Asked {
    /// What it may ask for that a change is.
    fn of(kinds: Changes) -> Asked {
        const ALL: [(Changes, Asked); 8] = [
            (Changes::ACCESS, Asked::ACCESS),
            (Changes::MODIFY, Asked::MODIFY),
            (Changes::CREATE, Asked::CREATE),
            (Changes::MOVED_TO, Asked::CREATE),
            (Changes::DELETE, Asked::DELETE),
            (Changes::MOVED_FROM, Asked::DELETE),
            (Changes::RENAMED, Asked::RENAME),
            (Changes::ATTRIBUTES, Asked::ATTRIBUTES),
        ];
        let found = ALL.iter().filter(|(kind, _)| kinds.contains(*kind));
        found.fold(Asked::empty(), |all, (_, asked)| all | *asked)
    }
}

/// The observer of a directory that is open, kept by its open file description.
struct Teller<M: Machine> {
    system: Weak<System<M>>,
    file: Weak<OpenFile>,
    /// What the program asks for, and by which descriptor it did so last.
    state: SpinLock<(Asked, i32)>,
    _charge: Charge,
    _observing: Observing,
}

/// Asks for signals to the owner of an open directory, in addition to what was asked before; with
/// nothing to ask for there are no more. `ENOTDIR`, `ENOSPC`.
pub(crate) fn ask<M: Machine>(
    system: &Arc<System<M>>,
    file: &Arc<OpenFile>,
    account: &Arc<Account>,
    descriptor: i32,
    argument: u32,
) -> Result<()> {
    let vnode =
        file.vnode().filter(|vnode| vnode.file_type() == FileType::Directory).ok_or(Error::ENOTDIR)?;
    let asked = Asked::from_bits_truncate(argument);
    if asked.difference(Asked::AGAIN).is_empty() {
        drop(file.keep(None));
        return Ok(());
    }
    let before = file.kept().and_then(|kept| kept.downcast::<Teller<M>>().ok());
    if let Some(teller) = before {
        let mut state = teller.state.lock();
        *state = (state.0 | asked, descriptor);
        return Ok(());
    }
    let hooks = vnode.hooks().ok_or(Error::EINVAL)?;
    let most = account.settings().get(Setting::ObservedFiles);
    let charge = account.charge(Kept::ObservedFiles, 1, |sum| sum <= most).ok_or(Error::ENOSPC)?;
    let teller = Arc::new(Teller {
        system: Arc::downgrade(system),
        file: Arc::downgrade(file),
        state: SpinLock::new((asked, descriptor)),
        _charge: charge,
        _observing: Observing::new(),
    });
    let observer: Weak<Teller<M>> = Arc::downgrade(&teller);
    hooks.observers.with(|observers| observers.push(observer));
    let kept: Arc<dyn Any + Send + Sync> = teller;
    drop(file.keep(Some(kept)));
    Ok(())
}

impl<M: Machine> Observer for Teller<M> {
    fn changed(&self, change: &Change<'_>) {
        const MESSAGE: i32 = 3;
        const EVENTS: u32 = 0x441;
        let descriptor = {
            let mut state = self.state.lock();
            if !state.0.intersects(Asked::of(change.kinds)) {
                return;
            }
            if !state.0.contains(Asked::AGAIN) {
                state.0 = Asked::empty();
            }
            state.1
        };
        let (Some(system), Some(file)) = (self.system.upgrade(), self.file.upgrade()) else { return };
        if let Some(owner) = file.signal_owner() {
            let information = information(&file, descriptor, MESSAGE, EVENTS);
            system.processes().with(|table| table.signal_for_file(&owner, information));
        }
    }

    fn deleted(&self) {}
}
