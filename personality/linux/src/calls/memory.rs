//! Calls on memory: mmap and related calls.

use crate::call::{Call, Done};
use core::sync::atomic::Ordering;
use mach::Machine;
use unix::exec::Rights;
use unix::memory::{Advice, Move, NewMapping, Place};
use unix::sync::Turns;
use unix::{Error, Privilege, Result};

fn rights(bits: u64) -> Result<Rights> {
    const GROWS: u64 = 0x300_0000;
    if bits & !(7 | GROWS) != 0 {
        return Err(Error::EINVAL);
    }
    Ok(Rights { read: bits & 1 != 0, write: bits & 2 != 0, execute: bits & 4 != 0 })
}

pub(crate) async fn mmap<M: Machine>(call: &Call<'_, M>) -> Done {
    const SHARED: u64 = 1;
    const PRIVATE: u64 = 2;
    const SHARED_VALIDATE: u64 = 3;
    const FIXED: u64 = 0x10;
    const ANONYMOUS: u64 = 0x20;
    const GROWSDOWN: u64 = 0x100;
    const LOCKED: u64 = 0x2000;
    const POPULATE: u64 = 0x8000;
    const HUGETLB: u64 = 0x4_0000;
    const FIXED_NOREPLACE: u64 = 0x10_0000;
    /// Flags of mmap that are hints, or without effect on Linux, too: DENYWRITE, EXECUTABLE,
    /// NORESERVE, NONBLOCK, STACK.
    const IGNORED: u64 = 0x800 | 0x1000 | 0x4000 | 0x1_0000 | 0x2_0000;
    /// MAP_32BIT, MAP_ABOVE4G and the sizes of huge pages.
    const PLACES: u64 = 0x40 | 0x80 | 0x7c00_0000;
    /// The flags that are older than MAP_SHARED_VALIDATE, which refuses the others.
    const OLD: u64 = 15 | FIXED | ANONYMOUS | GROWSDOWN | LOCKED | POPULATE | HUGETLB | IGNORED | PLACES;
    let (address, length, flags, offset) = (call.arg(0), call.arg(1), call.arg(3), call.arg(5));
    let shared = match flags & 15 {
        SHARED => true,
        PRIVATE => false,
        SHARED_VALIDATE if flags & ANONYMOUS != 0 => return Err(Error::EINVAL.into()),
        SHARED_VALIDATE if flags & !OLD != 0 => return Err(Error::EOPNOTSUPP.into()),
        SHARED_VALIDATE => true,
        _ => return Err(Error::EINVAL.into()),
    };
    if shared && flags & GROWSDOWN != 0 {
        return Err(Error::EINVAL.into());
    }
    if flags & HUGETLB != 0 {
        // There are no huge pages here.
        return Err(Error::ENOMEM.into());
    }
    let rights = Rights { ..rights(call.arg(2) & 7)? };
    let place = match () {
        () if flags & FIXED_NOREPLACE != 0 => Place::FixedFree(address),
        () if flags & FIXED != 0 => Place::Fixed(address),
        () => Place::Hint(address),
    };
    let mut file = match flags & ANONYMOUS {
        0 => Some(super::descriptor::file(call, 4)?),
        _ => None,
    };
    if let Some(zeros) = &file
        && zeros.maps_zeros(shared && rights.write)?
    {
        file = None;
    }
    if !offset.is_multiple_of(4096) {
        return Err(Error::EINVAL.into());
    }
    let new = NewMapping {
        place,
        length,
        rights,
        shared,
        file: file.as_ref().map(|file| (file, offset)),
        grows_down: flags & GROWSDOWN != 0,
        populate: flags & POPULATE != 0,
        locked: flags & LOCKED != 0,
    };
    Ok(call.memory().map_new(&new, &call.thread.limits()).await?)
}

pub(crate) async fn munmap<M: Machine>(call: &Call<'_, M>) -> Done {
    call.memory().unmap(call.arg(0), call.arg(1)).await?;
    Ok(0)
}

pub(crate) async fn mprotect<M: Machine>(call: &Call<'_, M>) -> Done {
    call.memory().protect(call.arg(0), call.arg(1), rights(call.arg(2))?).await?;
    Ok(0)
}

pub(crate) async fn mremap<M: Machine>(call: &Call<'_, M>) -> Done {
    let how = match call.arg(3) {
        0 => Move::No,
        1 => Move::Anywhere,
        3 => Move::To(call.arg(4)),
        _ => return Err(Error::EINVAL.into()),
    };
    let limits = call.thread.limits();
    Ok(call.memory().remap(call.arg(0), call.arg(1), call.arg(2), how, &limits).await?)
}

pub(crate) async fn brk<M: Machine>(call: &Call<'_, M>) -> Done {
    Ok(call.memory().set_break(call.arg(0), &call.thread.limits()).await)
}

pub(crate) async fn madvise<M: Machine>(call: &Call<'_, M>) -> Done {
    let advice = match call.uint(2) {
        // The advice is NORMAL, RANDOM, SEQUENTIAL, MERGEABLE, UNMERGEABLE, HUGEPAGE, NOHUGEPAGE,
        // DONTDUMP, DODUMP, COLD or PAGEOUT.
        0..=2 | 12..=17 | 20 | 21 => Advice::Hint,
        3 | 22 | 23 => Advice::Want,
        4 | 8 => Advice::Forget,
        10 => Advice::Fork(false),
        11 => Advice::Fork(true),
        _ => return Err(Error::EINVAL.into()),
    };
    call.memory().advise(call.arg(0), call.arg(1), advice).await?;
    Ok(0)
}

pub(crate) async fn msync<M: Machine>(call: &Call<'_, M>) -> Done {
    const ASYNC: u32 = 1;
    const INVALIDATE: u32 = 2;
    const SYNC: u32 = 4;
    let flags = call.uint(2);
    if flags & !(ASYNC | INVALIDATE | SYNC) != 0 || flags & (ASYNC | SYNC) == ASYNC | SYNC {
        return Err(Error::EINVAL.into());
    }
    for file in call.memory().shared_files(call.arg(0), call.arg(1)).await? {
        file.vnode().inspect(|vnode| vnode.note_mapped_writes());
        if flags & SYNC != 0 {
            file.synchronize().await?;
        }
    }
    Ok(0)
}

/// mincore(2): all mapped pages are reported as resident, except for those that only swap space
/// has.
pub(crate) async fn mincore<M: Machine>(call: &Call<'_, M>) -> Done {
    if !call.arg(0).is_multiple_of(4096) {
        return Err(Error::EINVAL.into());
    }
    let pages = call.arg(1).div_ceil(4096);
    call.buffer(call.arg(2), pages)?;
    call.memory().check_mapped(call.arg(0), call.arg(1)).await?;
    let mut left = pages as usize;
    let mut at = call.arg(2);
    let mut turns = Turns::every(64);
    while left > 0 {
        turns.step().await;
        let count = left.min(256);
        let mut resident = [1; 256];
        let memory = call.memory();
        let (map, first) = (memory.map(), call.arg(0) + (pages - left as u64) * 4096);
        if map.paged_out_pages(first, first + count as u64 * 4096).await > 0 {
            for (page, resident) in (first..).step_by(4096).zip(&mut resident[..count]) {
                *resident = u8::from(map.paged_out_pages(page, page + 4096).await == 0);
            }
        }
        call.write(at, &resident[..count]).await?;
        at += count as u64;
        left -= count;
    }
    Ok(0)
}

/// mlock2(2): pages are locked when they are first used, with or without MLOCK_ONFAULT.
pub(crate) async fn mlock2<M: Machine>(call: &Call<'_, M>) -> Done {
    const ON_FAULT: u32 = 1;
    if call.uint(2) & !ON_FAULT != 0 {
        return Err(Error::EINVAL.into());
    }
    mlock(call, true).await
}

pub(crate) async fn mlock<M: Machine>(call: &Call<'_, M>, lock: bool) -> Done {
    let privileged = call.has(Privilege::LockMemory);
    call.memory().lock(call.arg(0), call.arg(1), lock, &call.thread.limits(), privileged).await?;
    Ok(0)
}

pub(crate) async fn mlockall<M: Machine>(call: &Call<'_, M>) -> Done {
    const ON_FAULT: u32 = 4;
    let flags = call.uint(0);
    if flags & !7 != 0 || flags & !ON_FAULT == 0 {
        return Err(Error::EINVAL.into());
    }
    lock_all(call, flags).await
}

pub(crate) async fn munlockall<M: Machine>(call: &Call<'_, M>) -> Done {
    lock_all(call, 0).await
}

async fn lock_all<M: Machine>(call: &Call<'_, M>, flags: u32) -> Done {
    let privileged = call.has(Privilege::LockMemory);
    let (current, future) = (flags & 1 != 0, flags & 2 != 0);
    call.memory().lock_all(current, future, &call.thread.limits(), privileged).await?;
    Ok(0)
}

/// membarrier(2): all threads of all programs execute a barrier, whichever the caller asks for.
/// Only a process that has said so before may ask for a private one.
pub(crate) fn membarrier<M: Machine>(call: &Call<'_, M>) -> Done {
    const QUERY: u32 = 0;
    const GLOBAL: u32 = 1;
    const GLOBAL_EXPEDITED: u32 = 2;
    const REGISTER_GLOBAL_EXPEDITED: u32 = 4;
    const PRIVATE_EXPEDITED: u32 = 8;
    const REGISTER_PRIVATE_EXPEDITED: u32 = 16;
    const PRIVATE_EXPEDITED_SYNC_CORE: u32 = 32;
    const REGISTER_PRIVATE_EXPEDITED_SYNC_CORE: u32 = 64;
    const ALL: u32 = 127;
    let memory = call.memory();
    match (call.uint(0), call.uint(1)) {
        (QUERY, 0) => return Ok(ALL.into()),
        (GLOBAL | GLOBAL_EXPEDITED, 0) => call.system().vm().machine().synchronize_processors(),
        (command @ (PRIVATE_EXPEDITED | PRIVATE_EXPEDITED_SYNC_CORE), 0) => {
            // The command that registers for a command is the next bit.
            if memory.notes().load(Ordering::Relaxed) & command << 1 == 0 {
                return Err(Error::EPERM.into());
            }
            call.system().vm().machine().synchronize_processors();
        }
        // A registration for barriers that serialise is none for the others.
        (
            command @ (REGISTER_GLOBAL_EXPEDITED
            | REGISTER_PRIVATE_EXPEDITED
            | REGISTER_PRIVATE_EXPEDITED_SYNC_CORE),
            0,
        ) => _ = memory.notes().fetch_or(command, Ordering::Relaxed),
        _ => return Err(Error::EINVAL.into()),
    }
    Ok(0)
}
