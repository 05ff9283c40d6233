//! Connects a terminal with its line: output goes to the line's driver, input comes from it. A line
//! is a serial port, or a virtual console of a screen.

use crate::telnet::{Decoder, Input};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::Future;
use unix::poll::{Readiness, until_ready};
use unix::tty::{Terminal, WindowSize};
use unix::{AttemptError, Environment};

/// The most bytes sent to the driver in one step.
const PIECE: usize = 480;

/// The way to a terminal that is not in this machine's memory.
pub trait Line: Sync {
    /// Shows bytes, after those of earlier calls.
    fn show(&self, bytes: &[u8]) -> impl Future<Output = ()> + Send;

    /// Reads bytes that were typed, and waits until there is at least one. At most one such future
    /// may exist for a line.
    fn typed(&self, buffer: &mut [u8]) -> impl Future<Output = usize> + Send;
}

/// Sends what programs write to `terminal` to its line; never returns.
pub async fn show(terminal: Arc<Terminal>, line: &impl Line) {
    let mut bytes = [0; PIECE];
    loop {
        let count = until_ready(terminal.driver_queue(), Readiness::READ, || {
            match terminal.take_output(&mut bytes) {
                0 => Err(AttemptError::WouldBlock),
                count => Ok(count),
            }
        });
        if let Ok(count) = count.await {
            line.show(&bytes[..count]).await;
        }
    }
}

/// Passes what is typed on the line to `terminal`; never returns. With `commands`, the line also
/// carries commands as in Telnet: window sizes, breaks and the time.
pub async fn listen(
    terminal: Arc<Terminal>,
    line: &impl Line,
    environment: &dyn Environment,
    commands: bool,
) {
    let mut bytes = [0; PIECE];
    let mut typed = Vec::with_capacity(PIECE);
    let mut decoder = Decoder::default();
    loop {
        let count = line.typed(&mut bytes).await;
        if !commands {
            receive(&terminal, &bytes[..count], environment).await;
            continue;
        }
        for &byte in &bytes[..count] {
            let command = match decoder.take(byte) {
                Some(Input::Typed(byte)) => {
                    typed.push(byte);
                    continue;
                }
                None => continue,
                Some(command) => command,
            };
            // What was typed before the command reaches the terminal before it.
            receive(&terminal, &typed, environment).await;
            typed.clear();
            match command {
                Input::Window { rows, columns } => {
                    terminal.set_window_size(WindowSize { rows, columns, ..terminal.window_size() });
                }
                Input::Time(time) => environment.advance_to(time),
                _ => terminal.receive_break(),
            }
        }
        receive(&terminal, &typed, environment).await;
        typed.clear();
    }
}

/// Passes all of `bytes` to the line discipline of `terminal`, waiting for room.
async fn receive(terminal: &Terminal, bytes: &[u8], environment: &dyn Environment) {
    let mut done = 0;
    while done < bytes.len() {
        done += terminal.receive(&bytes[done..], environment.monotonic());
        if done < bytes.len() {
            let room = until_ready(terminal.driver_queue(), Readiness::WRITE, || {
                if terminal.can_receive() { Ok(()) } else { Err(AttemptError::WouldBlock) }
            });
            // Waiting for room cannot fail.
            let _ = room.await;
        }
    }
}
