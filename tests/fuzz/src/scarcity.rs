//! Directed calls of the controller. A space is made step by step, with a quota that is what it
//! uses, or little more. Calls about this space that need memory fail, and calls about the threads
//! of a space that is being made have errors which are rare otherwise.

use crate::attacker::call;
use crate::choose::Chooser;
use crate::invoke::Registers;
use crate::kind::Kind;
use crate::layout::{self, CONTROLLER, NUMBERS, UTCBS};
use crate::supervisor::FREE_NUMBERS;
use l4::thread::{self, ThreadControl};
use l4::{extension, kip, space};
use x2::extension::{ONE_MAP_ITEM, SpaceOption};
use x2::{Fpage, Rights, ThreadId};

/// The control bit of ThreadState by which extended state is written, from the buffer.
const WRITE_EXTENDED: u64 = 1 << 3;

/// Makes a space with little memory, under a thread number that the supervisor does not use, and
/// deletes it. If the supervisor has deleted it meanwhile, calls about it fail without harm.
pub(crate) fn make(chooser: Chooser<'_>) {
    let random = chooser.random;
    let id = layout::attacker(FREE_NUMBERS + random.below(NUMBERS - FREE_NUMBERS), 1);
    let root = kip().root();
    let inactive = ThreadControl { space: id, scheduler: root, pager: ThreadId::NIL, utcb: None };
    let made = thread::delete(id).and_then(|()| thread::control(id, inactive));
    if made.is_err() || extension::set_owner(id, root).is_err() {
        return;
    }
    let base = layout::utcb_area(3);
    let utcbs = Fpage::memory(base, (UTCBS * x2::utcb::SIZE).ilog2());
    for step in 0..3 {
        let used = extension::kernel_memory(id).unwrap_or_default();
        let _ = extension::set_quota(id, used + random.below(4) * 640);
        about(chooser, id);
        let _ = extension::set_quota(id, u64::MAX);
        // The first step sets the areas of the space; the others activate its thread.
        let _ = match step {
            0 => space::control(id, 0, layout::kip_area(), utcbs, ThreadId::ANY).map(drop),
            _ => thread::control(id, ThreadControl { pager: root, utcb: Some(base), ..inactive }),
        };
    }
    let _ = thread::delete(id);
}

/// Makes all calls about this space that need memory, and some with arbitrary arguments.
fn about(chooser: Chooser<'_>, id: ThreadId) {
    let (id, other, root) = (id.raw(), layout::attacker(0, 1).raw(), kip().root().raw());
    let any = |kind| Registers { rdi: id, ..chooser.prepare(kind) };
    for kind in [Kind::SpaceOptions, Kind::SpaceControl, Kind::SpaceControl, Kind::ThreadState] {
        call(kind, any(kind), &CONTROLLER);
    }
    let write = Registers { rsi: WRITE_EXTENDED, r8: 832, ..any(Kind::ThreadState) };
    call(Kind::ThreadState, write, &CONTROLLER);
    let open = Registers { rdi: id, rsi: SpaceOption::Open as u64, rdx: other, r8: 1, ..Default::default() };
    call(Kind::SpaceOptions, open, &CONTROLLER);
    // The address has no other page near it, so a page table is needed.
    let page = chooser.pool_page();
    let target = Fpage::memory(page ^ chooser.random.below(64) << 30, 12).with_rights(Rights::ALL).raw();
    let map = Registers { rdi: id, rsi: target, rdx: ONE_MAP_ITEM | 1, r8: page, ..Default::default() };
    call(Kind::MapControl, map, &CONTROLLER);
    let utcb = layout::utcb_area(3);
    let activate = Registers { rdi: id, r8: id, rdx: root, rsi: root, r9: utcb, ..Default::default() };
    call(Kind::ThreadControl, activate, &CONTROLLER);
}
