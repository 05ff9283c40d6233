//! JBD2 journal support for the ext4 implementation.

#[allow(clippy::module_inception)]
pub mod jbd2;
/// Journal implementation data structures.
pub mod jbdstruct;
