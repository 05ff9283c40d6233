//! Requests to a block device, in memory that its driver shares with one client
//! (`interfaces/block.defs`). Neither side trusts the other. [`ring::lane`] is one direction of the
//! way.
//!
//! | module | subject |
//! |---|---|
//! | [`request`] | what a request asks for, and its words in shared memory |
//! | [`area`] | the shared memory |
//! | `attach` | how a client finds the driver and shares memory with it |
//! | [`client`] | the client's half: several requests outstanding, and a driver that may end |
//! | [`driver`] | the driver's half: checked requests, with the addresses of their memory |
//! | [`work`] | how a request becomes commands of the device |
//! | [`service`] | the program of a driver, whatever its device is |
//! | [`pools`] | where the pages of the client's pools are for the device |
//! | [`description`] | what the device is and can do |
//!
//! # Order
//!
//! Requests may be carried out in any order, with one exception: a flush comes after all writes and
//! discards that were issued before it, so that they are on stable storage when it is answered. The
//! client's half holds a flush back until these are answered. The device need not know of this
//! order.
//!
//! # A driver that ends
//!
//! When a driver has ended, its client attaches to the one that was started in its place, and
//! issues all requests again that have no answer yet, in their order ([`client::Client::restart`]).
//! Each may have been carried out before, completely or in part: a read or a write of the same data
//! can be repeated. The memory of a request is the device's until the request is answered. A write
//! that was answered before is with the device, whose cache does not end with the driver.
#![cfg_attr(not(any(test, loom)), no_std)]
#![deny(unsafe_code)]

extern crate alloc;

pub mod area;
pub mod client;
pub mod description;
#[cfg(not(loom))]
pub mod device;
pub mod driver;
pub mod pools;
pub mod request;
#[cfg(not(loom))]
pub mod service;
pub mod work;

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;

/// How many requests the driver has at a time, at most.
#[cfg(not(loom))]
pub const SLOTS: usize = 64;
/// Loom explores all interleavings, which are too many with more.
#[cfg(loom)]
pub const SLOTS: usize = 2;

/// The number of bytes of a sector, the unit of places on a device.
pub const SECTOR: u64 = 512;
/// The number of bytes of a page, the unit of memory.
pub const PAGE: u64 = 4096;

/// The notification bit by which the client tells the driver that there are requests.
pub const WORK: u64 = 1;

/// Why a request has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The device reports an error.
    Device,
    /// The device cannot do this.
    Unsupported,
    /// The device is read-only.
    ReadOnly,
    /// The request is not valid: sectors beyond the end of the device, or memory that is in no pool
    /// or is not as long as the sectors.
    Invalid,
    /// The driver has broken the rules of the ring, and is not used any more.
    Broken,
    /// The driver has ended, and no other is started in its place.
    Gone,
    /// The client has no memory to keep the request.
    Shortage,
}

impl Error {
    /// The errors that a driver reports, each with its number in an answer.
    const REPORTED: [(Error, u32); 4] =
        [(Error::Device, 1), (Error::Unsupported, 2), (Error::ReadOnly, 3), (Error::Invalid, 4)];

    /// The number of a result in an answer.
    fn number(result: Result<(), Error>) -> u32 {
        let Err(error) = result else { return 0 };
        let known = Error::REPORTED.iter().find(|(other, _)| *other == error);
        known.map_or(1, |&(_, number)| number)
    }

    /// The result of this number. A number that no driver writes is an error of the device.
    fn result(number: u32) -> Result<(), Error> {
        if number == 0 {
            return Ok(());
        }
        let known = Error::REPORTED.iter().find(|(_, other)| *other == number);
        Err(known.map_or(Error::Device, |&(error, _)| error))
    }
}
