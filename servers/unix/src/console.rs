//! The console: a terminal whose output the driver shows and whose input the driver brings.

use crate::Driver;
use alloc::sync::Arc;
use mach::Machine;
use unix::poll::{Readiness, until_ready};
use unix::tty::Terminal;
use unix::{Environment, NotDone};

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

/// Brings what is typed to `terminal`, for ever.
pub async fn listen<M: Machine, D: Driver<M>>(
    terminal: Arc<Terminal>,
    driver: &D,
    environment: &dyn Environment,
) {
    let mut bytes = [0; PIECE];
    loop {
        let count = driver.typed(&mut bytes).await;
        let mut done = 0;
        while done < count {
            done += terminal.receive(&bytes[done..count], environment.monotonic());
            if done < count {
                let room = until_ready(terminal.driver_queue(), Readiness::WRITE, || {
                    if terminal.can_receive() { Ok(()) } else { Err(NotDone::NotReady) }
                });
                // Its attempt fails in no other way.
                let _ = room.await;
            }
        }
    }
}
