//! Terminals.
/// A terminal.
pub struct Terminal;
