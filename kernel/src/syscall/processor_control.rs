//! ProcessorControl: privileged. It comes with the rest of the interface; until then every parameter is invalid
//! (X.2 rule 9.5).

use x2::ErrorCode;

use super::{check_privilege, return_result};
use crate::scheduler::Next;
use crate::thread::ThreadRef;

pub(super) fn system_call(current: ThreadRef) -> Next {
    return_result(current, check_privilege(current).and(Err(ErrorCode::InvalidParameter)));
    Next::Return
}
