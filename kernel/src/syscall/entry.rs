//! The time in which a handler of a system call works.

use core::marker::PhantomData;

/// One entry into the kernel, in which its processor does nothing else. A handler runs to its end
/// in one go: a thread that is here stays here meanwhile, unless the handler itself sends it away.
/// The value holds no data; what is borrowed from it ends with it. Only handlers of system calls
/// have one.
pub struct Entry(PhantomData<*const ()>);

impl Entry {
    /// The entry that the handler which calls this belongs to.
    pub(super) fn of_handler() -> Self {
        Self(PhantomData)
    }
}
