//! MemoryControl: privileged. It comes with the rest of the interface; until then every parameter is invalid
//! (X.2 rule 9.1). The result is in RDX; MR1 stays in RAX, the stub moves MR0 to RCX.

use x2::ErrorCode;

use super::{check_privilege, set_error};
use crate::scheduler::Next;
use crate::thread::ThreadRef;

pub(super) fn system_call(current: ThreadRef) -> Next {
    set_error(current, check_privilege(current).err().unwrap_or(ErrorCode::InvalidParameter));
    current.registers.rdx.set(0);
    current.registers.rdi.set(current.local_id.get());
    Next::Return
}
