//! The console: a terminal whose output the driver shows and whose input the driver brings.

use crate::Driver;
use alloc::sync::Arc;
use mach::Machine;
use unix::NotDone;
use unix::poll::{Readiness, until_ready};
use unix::tty::Terminal;

/// Bytes shown in one go.
const PIECE: usize = 480;

/// Shows what programs write to `terminal`, for ever.
pub async fn show<M: Machine, D: Driver<M>>(terminal: Arc<Terminal>, driver: &D) {
    let mut bytes = [0; PIECE];
    loop {
        let count = until_ready(terminal.driver_queue(), Readiness::READ, || {
            match terminal.take_output(&mut bytes) {
                0 => Err(NotDone::NotReady),
                count => Ok(count),
            }
        });
        if let Ok(count) = count.await {
            driver.show(&bytes[..count]).await;
        }
    }
}
