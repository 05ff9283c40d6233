//! Terminals: settings, the line discipline, job control, pseudoterminals.
//!
//! A [`Terminal`] has two sides. Programs see a [`TerminalFile`]. The other side is a driver (of a
//! serial line) or the master of a pseudoterminal: it gives the terminal the input
//! ([`Terminal::receive`]) and takes the output ([`Terminal::take_output`]).

mod devpts;
mod discipline;
mod file;
mod job;
mod output;
mod pty;
mod settings;
mod terminal;
mod virtual_console;

#[cfg(test)]
mod tests;

pub use devpts::PtsOptions;
pub use file::TerminalFile;
pub use pty::{PtyMaster, Ptys};
pub use settings::{Characters, ControlModes, InputModes, LocalModes, OutputModes, Settings, WindowSize};
pub use terminal::{Flow, Flush, SetWhen, Terminal};
pub use virtual_console::{Locks, MAJOR as CONSOLE_MAJOR, Screen, VirtualConsoles};
