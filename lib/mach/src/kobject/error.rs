//! The status that a caller gets for an error of the library.

use message::Status;

use crate::KernError;

/// A special number, a flavor or another argument has no meaning.
pub(super) const INVALID_ARGUMENT: Status = Status(4);
/// The call makes no sense on this machine.
pub(super) const FAILURE: Status = Status(5);
/// There is no memory.
pub(super) const RESOURCE_SHORTAGE: Status = Status(6);
/// The port stands for no task.
pub(super) const INVALID_TASK: Status = Status(16);
/// A number or choice has no meaning.
pub(super) const INVALID_VALUE: Status = Status(18);
/// A right is of another kind.
pub(super) const INVALID_CAPABILITY: Status = Status(20);
/// The port stands for no host.
pub(super) const INVALID_HOST: Status = Status(22);

impl From<KernError> for Status {
    /// The number in Mach 3's interfaces. Errors that only later systems have get the nearest one.
    fn from(error: KernError) -> Self {
        match error {
            KernError::Terminated => Status(26),
            KernError::OperationTimedOut => Status(27),
            KernError::InvalidObject => INVALID_ARGUMENT,
            KernError::NotSupported => FAILURE,
            error => Status(error.code()),
        }
    }
}
