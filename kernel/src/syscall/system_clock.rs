//! SystemClock: RAX = microseconds (X.2 rule 2.1).

use crate::arch;
use crate::scheduler::Next;
use crate::thread::ThreadRef;

pub(super) fn system_call(current: ThreadRef) -> Next {
    current.registers.rax().set(arch::clock());
    Next::Return
}
