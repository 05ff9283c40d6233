//! SystemClock: RAX = microseconds (X.2 rule 2.1).

use crate::arch;
use crate::scheduler::Next;
use crate::thread::ThreadRef;

use super::arguments;

pub(super) fn system_call(current: ThreadRef) -> Next {
    arguments::SystemClock::of(current).set_clock(arch::clock());
    Next::Return
}
