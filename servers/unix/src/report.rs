//! Messages of the server on the system's log.

use alloc::string::String;
use core::fmt::{self, Write};
use mach_l4::StartError;
use rt::root::{Console, Status};

/// Prints a line by one write, so that no other server's text comes in between.
pub(crate) fn say(line: fmt::Arguments<'_>) {
    // An error is ignored: there is no other place where it could be reported.
    let _ = Console.write_str(&alloc::format!("{line}\n"));
}

/// Why the Unix server could not start.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Root has not given the server a start page.
    NoStartPage,
    /// The server does not understand this argument.
    Argument(String),
    /// The streams of bytes from and to the host cannot be opened.
    NoStreams(Status),
    /// Root has no boot module with the root file system.
    NoImage(Status),
    /// Root did not answer how much memory the server may have.
    NoMemoryFromRoot(Status),
    /// The machine library could not start.
    Machine(StartError),
    /// There is too little memory for the server.
    NoMemory,
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::NoStartPage => formatter.write_str("root has not written a start page"),
            Failure::Argument(word) => write!(formatter, "argument '{word}' is not understood"),
            Failure::NoImage(status) => {
                write!(formatter, "there is no boot module {}: {status:?}", crate::IMAGE)
            }
            Failure::NoStreams(status) => {
                write!(formatter, "the streams of the host cannot be opened: {status:?}")
            }
            Failure::NoMemoryFromRoot(status) => write!(formatter, "root gives no memory: {status:?}"),
            Failure::Machine(error) => write!(formatter, "{error}"),
            Failure::NoMemory => formatter.write_str("there is not enough memory"),
        }
    }
}
