//! The system calls swapon(2) and swapoff(2).

use crate::call::{Call, Done};
use mach::Machine;
use unix::signal::RestartKind;
use unix::swap::SwapFlags;
use unix::{Error, Privilege};

const PRIORITY: u32 = 0x7fff;
const PREFER: u32 = 0x8000;
const DISCARD: u32 = 0x1_0000;
/// Discards once, when the area is added, and pages when they are freed; without either, both.
const DISCARD_ONCE: u32 = 0x2_0000;
const DISCARD_PAGES: u32 = 0x4_0000;

pub(crate) async fn swapon<M: Machine>(call: &Call<'_, M>) -> Done {
    let bits = call.uint(1);
    if bits & !(PRIORITY | PREFER | DISCARD | DISCARD_ONCE | DISCARD_PAGES) != 0 {
        return Err(Error::EINVAL.into());
    }
    if !call.has(Privilege::Administrator) {
        return Err(Error::EPERM.into());
    }
    let path = call.path(0).await?;
    let flags = SwapFlags {
        priority: (bits & PREFER != 0).then_some((bits & PRIORITY) as u16),
        discard: bits & DISCARD != 0 && bits & (DISCARD_ONCE | DISCARD_PAGES) != DISCARD_PAGES,
    };
    let (context, host) = (call.thread.context(), call.system().host());
    context.caller().swap_on(&path, flags, &|line| host.log(line)).await?;
    Ok(0)
}

pub(crate) async fn swapoff<M: Machine>(call: &Call<'_, M>) -> Done {
    if !call.has(Privilege::Administrator) {
        return Err(Error::EPERM.into());
    }
    let path = call.path(0).await?;
    let context = call.thread.context();
    call.wait(RestartKind::Never, context.caller().swap_off(&path)).await??;
    Ok(0)
}
