//! poll, select and epoll.

use crate::call::{Call, Done};
use core::time::Duration;
use mach::Machine;

pub(crate) async fn poll_until<M: Machine>(
    _call: &Call<'_, M>,
    _array: u64,
    _count: u64,
    _deadline: Option<Duration>,
) -> Done {
    Err(unix::Error::ENOSYS.into())
}
