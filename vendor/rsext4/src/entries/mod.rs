//! Directory entry structures and traversal helpers.

pub mod classic_dir;
mod dir_entry;
mod disk;
pub(crate) mod htree_dir;
mod iterator;

pub use dir_entry::{Ext4DirEntry, Ext4DirEntry2, Ext4DirEntryTail, Ext4ExtentStatus};
pub(crate) use dir_entry::{decode_directory_record_length, encode_directory_record_length};
pub(crate) use htree_dir::{Ext4DxEntry, Ext4DxRootInfo};
pub use iterator::{DirEntryIterator, Ext4DirEntryInfo};
