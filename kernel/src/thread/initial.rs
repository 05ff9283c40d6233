//! The first threads: sigma0 and the root task, each in a privileged space of its own (ABI 2).

use x2::control::MAX_PRIORITY;
use x2::{Region, ThreadId, kip as kip_layout};

use super::{ipc, lifecycle};
use crate::initial_servers::InitialServer;
use crate::memory::OutOfMemory;
use crate::space::Space;
use crate::{arch, interrupt, kip};

/// Version of the initial servers' ids.
const VERSION: u32 = 1;
/// Thread number of sigma0 above UserBase; the next is sigma1's, which there is none of.
const SIGMA0: u32 = 0;
const ROOT: u32 = 2;
/// Where the initial servers have the kernel interface page.
const KIP_AREA: Region = Region { base: 0xbff0_0000, size_log2: kip_layout::SIZE_LOG2 };
/// The UTCB areas of the initial servers; the first thread's UTCB is the first.
const UTCB_AREA: Region = Region { base: 0xbf00_0000, size_log2: 18 };

/// Creates the initial servers, ready to run at the highest priority, sigma0 first.
pub fn create() -> Result<(), OutOfMemory> {
    let (sigma0, root) = kip::servers();
    let root_id = id(ROOT);
    create_server(id(SIGMA0), true, &sigma0, ThreadId::NIL, root_id)?;
    create_server(root_id, false, &root, id(SIGMA0), root_id)
}

fn id(server: u32) -> ThreadId {
    ThreadId::from_raw(u64::from(interrupt::user_base() + server) << 32 | u64::from(VERSION))
}

fn create_server(
    id: ThreadId,
    is_sigma0: bool,
    server: &InitialServer,
    pager: ThreadId,
    scheduler: ThreadId,
) -> Result<(), OutOfMemory> {
    let space = Space::create_initial(is_sigma0)?;
    let account = space.account();
    space.configure(Some(KIP_AREA), Some(UTCB_AREA))?;
    let thread = lifecycle::allocate(account, ThreadId::NIL, arch::cpu_number() as u16)?;
    lifecycle::install_recorded(thread, id, space, lifecycle::creators_home());
    thread.scheduler.set(scheduler);
    thread.priority.set(MAX_PRIORITY);
    thread.sensitive_priority.set(MAX_PRIORITY);
    let block = space.allocate_utcb(UTCB_AREA.base)?.ok_or(OutOfMemory)?;
    lifecycle::set_utcb(thread, block, UTCB_AREA.base);
    lifecycle::activate(thread, pager);
    // No start message comes, so the wait for one ends immediately: where the server begins stands
    // in the kernel interface page.
    thread.registers.rip.set(server.ip);
    thread.registers.rsp.set(server.sp);
    ipc::cancel_receive(thread);
    Ok(())
}

#[cfg(test)]
mod tests {
    use core::ptr::eq;

    use super::*;
    use crate::thread::table::threads;
    use crate::thread::tests::World;

    /// Rules: ABI 2.
    #[test]
    fn the_initial_servers_are_what_programs_rely_on() {
        let _world = World::new();
        let base = interrupt::user_base();
        let [sigma0, root] = [base, base + 2].map(|number| {
            let utcbs = 0xbf00_0000;
            let id = ThreadId::global(number, 1).expect("a version with low bits");
            let thread = threads().find(id).expect("the server exists").anywhere();
            let space = thread.space.get().expect("it has a space");
            assert_eq!(space.utcb_area(), Some(Region { base: utcbs, size_log2: 18 }));
            assert_eq!(space.kip_area().map(|area| area.base), Some(0xbff0_0000));
            assert!(space.is_privileged());
            assert_eq!((thread.priority.get(), thread.sensitive_priority.get()), (255, 255));
            assert_eq!(thread.local_id.get(), utcbs + x2::utcb::MR0_OFFSET);
            (thread, space)
        });
        assert!(!eq(sigma0.1, root.1), "each has a space of its own");
        assert!(sigma0.1.memory.is_sigma0() && !root.1.memory.is_sigma0());
        assert!(sigma0.0.pager().is_nil());
        assert_eq!(root.0.pager(), sigma0.0.id());
        assert_eq!([sigma0, root].map(|(thread, _)| thread.scheduler.get()), [root.0.id(); 2]);
        assert!(threads().by_number(base + 1).is_none(), "there is no sigma1");
    }
}
