//! Virtio 1 devices on PCI, for drivers (Virtual I/O Device Version 1.1, chapters 2, 3 and 4.1).
//!
//! | module | subject |
//! |---|---|
//! | [`capability`] | where a PCI function has the parts of its registers |
//! | [`registers`] | access to these parts |
//! | [`mapped`] | access to registers that are mapped into memory |
//! | [`function`] | a PCI function that root gives to a driver |
//! | [`setup`] | reset, features, queues, start |
//! | [`memory`] | memory of a queue, which driver and device share |
//! | [`left`] | what an earlier driver has left in this memory |
//! | [`queue`] | requests of several pieces of memory, and their completion |
//!
//! The device is not trusted. Whatever it writes is checked, and what the driver itself has written
//! into shared memory is not read back. A device that breaks the rules makes the driver's next call
//! fail ([`Error::Broken`]); no call panics or waits for ever. That the device writes only where it
//! was asked to is beyond the reach of this library: only an IOMMU can enforce it.
#![cfg_attr(not(test), no_std)]
#![deny(unsafe_code)]

extern crate alloc;

pub mod capability;
pub mod function;
pub mod left;
pub mod mapped;
pub mod memory;
pub mod queue;
pub mod registers;
pub mod setup;

#[cfg(test)]
mod tests;

use rt::root::Status;

/// The reason why an operation on a device has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The PCI function lacks a part of a modern device's registers, or names a place for it where
    /// there are no registers.
    NotModern,
    /// The device does not offer version 1, or refuses the features that were chosen among those
    /// that it offers.
    Features,
    /// The device has not completed a reset in time.
    NoReset,
    /// The device has no queue with this number, or the queue cannot have this size.
    NoQueue,
    /// The device has not accepted the number of an interrupt message.
    NoVector,
    /// The device's configuration changed during each attempt to read it, or is too short.
    Configuration,
    /// The queue has too few free descriptors for the request now. Completed requests free more.
    Full,
    /// The request has no pieces, more pieces than the queue can ever hold, or 4 GiB or more in
    /// all.
    Length,
    /// The device has written what no correct device writes. The queue cannot be used any more.
    Broken,
    /// Root has refused a request for the device's resources, with this status.
    Root(Status),
}

impl core::fmt::Display for Error {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Debug::fmt(self, formatter)
    }
}

impl From<Status> for Error {
    fn from(status: Status) -> Error {
        Error::Root(status)
    }
}

/// Features on which a driver and a device agree, as bits of one number (chapter 6).
pub mod features {
    /// A descriptor may lead to a table of further descriptors.
    pub const INDIRECT: u64 = 1 << 28;
    /// Driver and device tell each other at which entry of a ring they want to be notified.
    pub const EVENT_INDEX: u64 = 1 << 29;
    /// The device conforms to version 1 or later. Required by this library.
    pub const VERSION_1: u64 = 1 << 32;
    /// The device uses the addresses that the platform has for it, through an IOMMU if there is
    /// one. The library always accepts this, because root tells drivers only such addresses.
    pub const ACCESS_PLATFORM: u64 = 1 << 33;
}
