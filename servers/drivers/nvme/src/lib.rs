//! An NVMe disk (NVM Express, revision 1.3). The driver is the program of this package, an ordinary
//! server of root's; another server uses it through `lib/block`.
//!
//! This library has what does not need the device, or reaches it by [`controller::Registers`].
//!
//! | module | subject |
//! |---|---|
//! | [`controller`] | the registers: stopping and starting the controller, doorbells |
//! | [`queue`] | a submission queue with its completion queue |
//! | [`command`] | commands as words, and what their status means |
//! | [`pages`] | the memory of a command as a list of pages (PRP) |
//! | [`identify`] | what the controller and a namespace say of themselves |
#![cfg_attr(not(test), no_std)]
#![deny(unsafe_code)]

extern crate alloc;

pub mod command;
pub mod controller;
pub mod identify;
pub mod pages;
pub mod queue;

use core::fmt;
use rt::root::Status;

/// Why a disk cannot be used, or not any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The registers are not those of a controller that this driver knows.
    Unknown,
    /// The controller has not become ready, or has not stopped, in time.
    Late,
    /// The controller says that it has failed.
    Fatal,
    /// The controller has completed a command that it was not given.
    Broken,
    /// The controller has refused a command that it has to know, with this status.
    Refused(u16),
    /// There is no namespace, or the first one has no blocks of 512 bytes to 64 KiB without
    /// metadata.
    NoNamespace,
    /// The pages of a command cannot be written as a list of pages.
    Pages,
    /// Root has refused a request for the device's resources, with this status.
    Root(Status),
}

impl From<Status> for Failure {
    fn from(status: Status) -> Failure {
        Failure::Root(status)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Unknown => formatter.write_str("it is no NVMe controller of a known kind"),
            Failure::Late => formatter.write_str("the controller does not become ready"),
            Failure::Fatal => formatter.write_str("the controller reports that it has failed"),
            Failure::Broken => formatter.write_str("the controller has completed what it was not given"),
            Failure::Refused(status) => write!(formatter, "the controller refuses a command: {status:#x}"),
            Failure::NoNamespace => formatter.write_str("the controller has no namespace that can be used"),
            Failure::Pages => formatter.write_str("a request has memory that is not in whole pages"),
            Failure::Root(status) => write!(formatter, "root refuses it: {status:?}"),
        }
    }
}
