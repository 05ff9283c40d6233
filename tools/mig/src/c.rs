//! C stubs over Mach messages. The modules `typed`, `untyped` and `trailer` have the code that
//! differs between the dialects.
//!
//! A stub reads or writes a message with a cursor, the C variable `At_`, that moves from item to
//! item. If every item has a fixed size, the compiler turns the cursor into constants. The stub
//! copies items with `memcpy`, since an item in a message need not be aligned for its C type.

mod demux;
mod header;
mod item;
mod parameter;
mod prologue;
mod server;
mod structs;
pub(crate) mod text;
mod trailer;
mod typed;
mod untyped;
mod user;

pub use header::{definitions_header, header, internal_header, server_header};
pub use server::server;
pub use user::{separate_users, user};

use crate::interface::Interface;

/// The options of the command line that affect the generated C files.
#[derive(Clone, Debug, Default)]
pub struct CStyle {
    /// The prefix of the names of the client's functions, in front of the definition's own prefix.
    pub prefix: String,
    /// Whether the server's file has a table of the names of its routines.
    pub symbols: bool,
    /// The name by which the client's file includes its header.
    pub header: String,
}

impl CStyle {
    /// The name of the client's function for a routine.
    fn user_name(&self, interface: &Interface, routine: &str) -> String {
        format!("{}{}{routine}", self.prefix, interface.user_prefix)
    }
}

/// The name of the server's function for a routine.
fn server_name(interface: &Interface, routine: &str) -> String {
    format!("{}{routine}", interface.server_prefix)
}
