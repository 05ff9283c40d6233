//! Mach's return codes.

/// The errors of the library, with Mach's names and numbers (`KERN_SUCCESS`, 0, is `Ok`).
///
/// The code says which side is to blame: for a bad argument or address it is the caller, for
/// `Memory*` the pager, for [`ResourceShortage`](Self::ResourceShortage) the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum KernError {
    /// An address is not mapped, or a range wraps or leaves the map.
    InvalidAddress = 1,
    /// The memory is mapped, but not with the rights that the access or request needs.
    ProtectionFailure = 2,
    /// The range asked for is taken, or no free range is large enough.
    NoSpace = 3,
    /// An argument has no meaning: an unaligned address, a length of zero where none is allowed, an
    /// unknown value.
    InvalidArgument = 4,
    /// The operation failed for a reason without a code of its own.
    Failure = 5,
    /// Out of frames, of server memory or of kernel memory. Nothing was changed, unless the
    /// operation says otherwise.
    ResourceShortage = 6,
    /// The caller lacks the right.
    NoAccess = 8,
    /// The backing object is gone: its pager died, or the page lies beyond its end.
    MemoryFailure = 9,
    /// The pager reported an error for the page.
    MemoryError = 10,
    /// The receive right is a member of no port set.
    NotInSet = 12,
    /// The name denotes another right already.
    NameExists = 13,
    /// The operation was interrupted before it was done.
    Aborted = 14,
    /// The name is not known.
    InvalidName = 15,
    /// The name denotes no task, or one that has ended.
    InvalidTask = 16,
    /// The name denotes rights, but not the right that the operation needs.
    InvalidRight = 17,
    /// A number or choice has no meaning for the operation.
    InvalidValue = 18,
    /// A right would get more user references than can be counted.
    UrefsOverflow = 19,
    /// The right handed over is null or of a dead port.
    InvalidCapability = 20,
    /// The task has the right already, under another name.
    RightExists = 21,
    /// The page that a pager gives is in memory already.
    MemoryPresent = 23,
    /// The name denotes no object of the right kind, or one that has ended.
    InvalidObject = 29,
    /// The thread or task is terminated.
    Terminated = 37,
    /// The operation exists but not for these arguments or this machine.
    NotSupported = 46,
    /// The time given for the operation ran out.
    OperationTimedOut = 49,
}

/// The result of most operations.
pub type KernResult<T = ()> = Result<T, KernError>;

impl KernError {
    /// The number of the code in Mach's interfaces.
    pub fn code(self) -> i32 {
        self as i32
    }

    /// The error with this number.
    pub fn from_code(code: u64) -> Option<Self> {
        use KernError::*;
        let all = [
            InvalidAddress,
            ProtectionFailure,
            NoSpace,
            InvalidArgument,
            Failure,
            ResourceShortage,
            NoAccess,
            MemoryFailure,
            MemoryError,
            NotInSet,
            NameExists,
            Aborted,
            InvalidName,
            InvalidTask,
            InvalidRight,
            InvalidValue,
            UrefsOverflow,
            InvalidCapability,
            RightExists,
            MemoryPresent,
            InvalidObject,
            Terminated,
            NotSupported,
            OperationTimedOut,
        ];
        all.into_iter().find(|error| *error as u64 == code)
    }
}

impl core::fmt::Display for KernError {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.write_str(match self {
            Self::InvalidAddress => "invalid address",
            Self::ProtectionFailure => "protection failure",
            Self::NoSpace => "no space available",
            Self::InvalidArgument => "invalid argument",
            Self::Failure => "failure",
            Self::ResourceShortage => "resource shortage",
            Self::NoAccess => "no access",
            Self::MemoryFailure => "memory failure",
            Self::MemoryError => "memory error",
            Self::NotInSet => "not in set",
            Self::NameExists => "name exists",
            Self::Aborted => "aborted",
            Self::InvalidName => "invalid name",
            Self::InvalidTask => "invalid task",
            Self::InvalidRight => "invalid right",
            Self::InvalidValue => "invalid value",
            Self::UrefsOverflow => "user references overflow",
            Self::InvalidCapability => "invalid capability",
            Self::RightExists => "right exists",
            Self::MemoryPresent => "the page is in memory already",
            Self::InvalidObject => "invalid object",
            Self::Terminated => "terminated",
            Self::NotSupported => "not supported",
            Self::OperationTimedOut => "operation timed out",
        })
    }
}

impl core::error::Error for KernError {}
