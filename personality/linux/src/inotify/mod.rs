//! Reports of changes of files to programs (inotify(7)).
//!
//! A [`Watch`] is an observer of one file, and belongs to a [`Notifier`], the inotify instance that
//! a program has open.

mod notifier;

#[cfg(test)]
mod tests;

pub(crate) use notifier::{Event, Notifier, WatchHow};

use alloc::sync::{Arc, Weak};
use bitflags::bitflags;
use core::sync::atomic::{AtomicU32, Ordering};
use unix::account::Charge;
use unix::vfs::{Change, Changes, DeviceNumber, Observer, Observing};

bitflags! {
    /// The events that inotify reports, by its bits.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub(crate) struct Events: u32 {
        /// The watched file was read.
        const ACCESS = 1;
        /// The contents of the file changed.
        const MODIFY = 2;
        /// The attributes of the file changed.
        const ATTRIBUTES = 4;
        /// A file that was open for writing was closed.
        const CLOSE_WRITE = 8;
        /// A file that was open for reading only was closed.
        const CLOSE_OTHER = 0x10;
        /// The file was opened.
        const OPEN = 0x20;
        /// A file was moved out of the watched directory.
        const MOVED_FROM = 0x40;
        /// A file was moved into the watched directory.
        const MOVED_TO = 0x80;
        /// A file was made in the watched directory.
        const CREATE = 0x100;
        /// A file was removed from the watched directory.
        const DELETE = 0x200;
        /// The watched file itself was removed.
        const DELETE_SELF = 0x400;
        /// The watched file itself was moved.
        const MOVE_SELF = 0x800;
        /// Events were lost because the queue was full (IN_Q_OVERFLOW).
        const OVERFLOW = 0x4000;
        /// The watch was removed (IN_IGNORED).
        const IGNORED = 0x8000;
        /// The event concerns a directory.
        const DIRECTORY = 0x4000_0000;
    }
}

impl Events {
    /// The events that a program can ask for.
    pub(crate) const ASKED: Events = Events::from_bits_retain(0xfff);

    /// The inotify events of a change.
    fn of(change: &Change<'_>) -> Events {
        const EVENTS: [(Changes, Events); 12] = [
            (Changes::ACCESS, Events::ACCESS),
            (Changes::MODIFY, Events::MODIFY),
            (Changes::ATTRIBUTES, Events::ATTRIBUTES),
            (Changes::CLOSE_WRITE, Events::CLOSE_WRITE),
            (Changes::CLOSE_OTHER, Events::CLOSE_OTHER),
            (Changes::OPEN, Events::OPEN),
            (Changes::MOVED_FROM, Events::MOVED_FROM),
            (Changes::MOVED_TO, Events::MOVED_TO),
            (Changes::CREATE, Events::CREATE),
            (Changes::DELETE, Events::DELETE),
            (Changes::DELETE_SELF, Events::DELETE_SELF),
            (Changes::MOVE_SELF, Events::MOVE_SELF),
        ];
        let found = EVENTS.iter().filter(|(kind, _)| change.kinds.contains(*kind));
        // That a directory itself was removed or moved is reported without the bit.
        let is_own = change.kinds.intersects(Changes::DELETE_SELF | Changes::MOVE_SELF);
        let kind = if change.directory && !is_own { Events::DIRECTORY } else { Events::empty() };
        found.fold(kind, |all, (_, event)| all | *event)
    }
}

/// A watch: one file that an inotify instance watches.
pub(crate) struct Watch {
    notifier: Weak<Notifier>,
    id: i32,
    /// The [`Events`] to report. Accesses are relaxed: a change of the file during a change of the
    /// mask may be judged by either mask.
    mask: AtomicU32,
    once: bool,
    /// The number of the file, and the device that it is on.
    file: (u64, DeviceNumber),
    _charge: Charge,
    _observing: Observing,
}

impl Watch {
    fn new(
        notifier: Weak<Notifier>,
        id: i32,
        (mask, once): (Events, bool),
        file: (u64, DeviceNumber),
        charge: Charge,
    ) -> Arc<Watch> {
        let mask = AtomicU32::new(mask.bits());
        Arc::new(Watch { notifier, id, mask, once, file, _charge: charge, _observing: Observing::new() })
    }

    fn mask(&self) -> Events {
        Events::from_bits_retain(self.mask.load(Ordering::Relaxed))
    }
}

impl Observer for Watch {
    fn changed(&self, change: &Change<'_>) {
        let events = Events::of(change) & (self.mask() | Events::DIRECTORY);
        if (events - Events::DIRECTORY).is_empty() {
            return;
        }
        let Some(notifier) = self.notifier.upgrade() else { return };
        let name = change.name.unwrap_or_default().to_vec();
        notifier.add(Event { watch: self.id, events, cookie: change.cookie, name });
        if self.once {
            notifier.forget(self.id);
        }
    }

    fn deleted(&self) {
        if let Some(notifier) = self.notifier.upgrade() {
            notifier.forget(self.id);
        }
    }
}
