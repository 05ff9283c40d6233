//! The kernel debugger.

mod user;

pub use user::breakpoint as user_breakpoint;
