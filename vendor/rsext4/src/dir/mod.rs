//! Directory creation, lookup, and bootstrap helpers.

mod bootstrap;
mod insert;
mod lookup;
mod mkdir;
mod name;
mod path;
mod request;

pub use bootstrap::{create_lost_found_directory, create_root_directory_entry};
pub use insert::insert_dir_entry;
pub(crate) use insert::insert_dir_entry_raw;
pub use lookup::get_inode_with_num;
pub(crate) use mkdir::{create_directory_at, ensure_directory};
pub use mkdir::{mkdir, mkdir_with_owner};
pub use name::FileName;
pub use path::normalize_path;
pub(crate) use request::{CreateEntryRequest, LinkEntryRequest};
