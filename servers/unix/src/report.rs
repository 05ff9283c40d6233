//! What the server says on the system's log.

use alloc::string::String;
use core::fmt::{self, Write};
use mach_l4::StartError;
use rt::root::{Console, Status};

/// Prints a line in one go, so that no other server's text comes in between.
pub(crate) fn say(line: fmt::Arguments<'_>) {
    // If the console does not work, there is no other place where that could be reported.
    let _ = Console.write_str(&alloc::format!("{line}\n"));
}

/// Why the Unix server could not start.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Root has not said what the server is to do.
    NoStartPage,
    /// This argument of the server is not understood.
    Argument(String),
    /// There is no root file system.
    NoImage(Status),
    /// Root did not answer how much memory the server may have.
    NoMemoryFromRoot(Status),
    /// The machine library could not start.
    Machine(StartError),
    /// There is too little memory.
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
            Failure::NoMemoryFromRoot(status) => write!(formatter, "root gives no memory: {status:?}"),
            Failure::Machine(error) => write!(formatter, "{error}"),
            Failure::NoMemory => formatter.write_str("there is not enough memory"),
        }
    }
}
