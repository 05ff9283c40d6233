//! The time in which a handler of a system call works.

use core::marker::PhantomData;

/// One entry into the kernel, in which its processor does nothing else: a handler runs to its end
/// in one go, and no thread that is here goes meanwhile but by what the handler does. It holds
/// nothing; what is borrowed from it ends with it. Only handlers of system calls have one.
pub struct Entry(PhantomData<*const ()>);

impl Entry {
    /// The entry that the handler which calls this belongs to.
    pub(super) fn of_handler() -> Self {
        Self(PhantomData)
    }
}
