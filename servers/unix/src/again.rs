//! Connects with a driver again that has ended and was started again.

use core::time::Duration;
use rt::root::Status;
use unix::Environment;

/// How often a driver is looked at, which may have ended.
pub(crate) const CHECK: Duration = Duration::from_millis(250);
/// How often is looked for the next driver, and how long one may take to be started.
const LOOK: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(10);

/// Waits until `has_ended` says that a driver has ended.
pub(crate) async fn ended(clock: &dyn Environment, has_ended: impl Fn() -> bool) {
    while !has_ended() {
        clock.sleep_until(clock.monotonic() + CHECK).await;
    }
}

/// Calls `attempt` until it has connected with the next driver. Returns false if none is started.
pub(crate) async fn connect(
    clock: &dyn Environment,
    mut attempt: impl FnMut() -> Result<(), Status>,
) -> bool {
    let deadline = clock.monotonic() + PATIENCE;
    loop {
        match attempt() {
            Ok(()) => return true,
            // The driver has not registered yet, or root has not taken back what the last one had.
            Err(Status::NotFound | Status::InUse) if clock.monotonic() < deadline => {}
            Err(_) => return false,
        }
        clock.sleep_until(clock.monotonic() + LOOK).await;
    }
}
