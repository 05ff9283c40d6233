//! Errors, by their POSIX names. Front ends convert them to error numbers.

use crate::CopyError;

/// The result of an operation on behalf of a program.
pub type Result<T, E = Error> = core::result::Result<T, E>;

macro_rules! errors {
    ($($name:ident $text:literal,)*) => {
        /// Why an operation failed, as the program learns it. The names are those of POSIX and the
        /// manual pages.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Error { $(#[doc = $text] $name,)* }

        impl Error {
            /// Every error.
            #[cfg(any(test, feature = "testing"))]
            pub const ALL: &[Error] = &[$(Error::$name,)*];

            /// The error's name in POSIX, such as "ENOENT".
            #[cfg(any(test, feature = "testing"))]
            pub fn name(self) -> &'static str {
                match self { $(Error::$name => stringify!($name),)* }
            }
        }
    };
}

errors! {
    E2BIG "Argument list too long",
    EACCES "Permission denied",
    EADDRINUSE "Address in use",
    EADDRNOTAVAIL "Address not available",
    EAFNOSUPPORT "Address family not supported",
    EAGAIN "Resource unavailable, try again",
    EALREADY "Connection already in progress",
    EBADF "Bad file descriptor",
    EBADR "Invalid request descriptor",
    EBUSY "Device or resource busy",
    ECANCELED "Operation canceled",
    ECHILD "No child processes",
    ECONNABORTED "Connection aborted",
    ECONNREFUSED "Connection refused",
    ECONNRESET "Connection reset",
    EDEADLK "Resource deadlock would occur",
    EDESTADDRREQ "Destination address required",
    EDOM "Argument out of domain of function",
    EEXIST "File exists",
    EFAULT "Bad address",
    EFBIG "File too large",
    EHOSTUNREACH "Host is unreachable",
    EILSEQ "Illegal byte sequence",
    EINPROGRESS "Operation in progress",
    EINTR "Interrupted function",
    EINVAL "Invalid argument",
    EIDRM "Identifier removed",
    EIO "Input/output error",
    EISCONN "Socket is connected",
    EISDIR "Is a directory",
    ELIBBAD "Accessing a corrupted shared library",
    ELOOP "Too many levels of symbolic links",
    EMFILE "Too many open files",
    EMLINK "Too many links",
    EMSGSIZE "Message too large",
    ENAMETOOLONG "File name too long",
    ENETDOWN "Network is down",
    ENETUNREACH "Network unreachable",
    ENFILE "Too many files open in system",
    ENOBUFS "No buffer space available",
    ENODATA "No data available",
    ENODEV "No such device",
    ENOENT "No such file or directory",
    ENOEXEC "Executable file format error",
    ENOLCK "No locks available",
    ENOMSG "No message of the desired type",
    ENOMEM "Not enough space",
    ENOPROTOOPT "Protocol not available",
    ENOSPC "No space left on device",
    ENOSYS "Functionality not supported",
    ENOTBLK "Block device required",
    ENOTCONN "Socket not connected",
    ENOTDIR "Not a directory",
    ENOTEMPTY "Directory not empty",
    ENOTSOCK "Not a socket",
    ENOTSUP "Not supported",
    ENOTTY "Inappropriate input/output control operation",
    ENXIO "No such device or address",
    EOPNOTSUPP "Operation not supported on socket",
    EOVERFLOW "Value too large to be stored in data type",
    EOWNERDEAD "Previous owner died",
    EPERM "Operation not permitted",
    EPIPE "Broken pipe",
    EPROTO "Protocol error",
    EPROTONOSUPPORT "Protocol not supported",
    EPROTOTYPE "Protocol wrong type for socket",
    ERANGE "Result too large",
    EROFS "Read-only file system",
    ESOCKTNOSUPPORT "Socket type not supported",
    ESPIPE "Invalid seek",
    ESRCH "No such process",
    ESTALE "Stale file handle",
    ETIME "Timer expired",
    ETIMEDOUT "Connection timed out",
    ETOOMANYREFS "Too many references: cannot splice",
    ETXTBSY "Text file busy",
    EUSERS "Too many users",
    EXDEV "Cross-device link",
}

/// Why an attempt, which never blocks, was not successful. [`AttemptError::WouldBlock`] and
/// [`AttemptError::NotResident`] mean that nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptError {
    /// The attempt failed with an error for the program.
    Failed(Error),
    /// The object is not ready: wait on its queue, or return `EAGAIN` to the program.
    WouldBlock,
    /// A part of the user memory is not resident: call
    /// [`UserBuffer::resolve`](crate::UserBuffer::resolve), then try again.
    NotResident,
}

impl From<Error> for AttemptError {
    fn from(error: Error) -> AttemptError {
        AttemptError::Failed(error)
    }
}

impl From<CopyError> for AttemptError {
    fn from(error: CopyError) -> AttemptError {
        match error {
            CopyError::NotResident => AttemptError::NotResident,
            CopyError::Fault => AttemptError::Failed(Error::EFAULT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_names_are_distinct_and_those_of_posix() {
        let names: std::collections::BTreeSet<_> = Error::ALL.iter().map(|e| e.name()).collect();
        assert_eq!(names.len(), Error::ALL.len());
        assert!(names.iter().all(|n| n.starts_with('E')));
    }
}
