//! ProcessorControl(RDI processor, RSI internal kHz, RDX external kHz, R8 millivolts): privileged;
//! result in RAX (X.2 rule 9.5). Frequencies and voltages are the firmware's business on this
//! machine: a processor that exists keeps what it has.

use x2::ErrorCode;

use super::{arguments, check_privilege, return_result};
use crate::arch;
use crate::scheduler::Next;
use crate::thread::ThreadRef;

pub(super) fn system_call(current: ThreadRef) -> Next {
    let number = arguments::ProcessorControl::of(current).processor();
    let exists = number < u64::from(arch::cpu_count());
    let found = if exists { Ok(()) } else { Err(ErrorCode::InvalidParameter) };
    return_result(current, check_privilege(current).and(found));
    Next::Return
}
