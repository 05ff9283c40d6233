//! Superblock checksum helpers.

use crate::{
    crc32c::{crc32c_append, crc32c_init, ext4_superblock_has_metadata_csum},
    endian::DiskFormat,
    superblock::Ext4Superblock,
};

/// Computes the `metadata_csum` checksum stored in `s_checksum`.
pub fn ext4_superblock_csum32(sb: &Ext4Superblock) -> u32 {
    let mut sb_bytes = [0u8; Ext4Superblock::SUPERBLOCK_SIZE];
    sb.to_disk_bytes(&mut sb_bytes);
    encoded_checksum(&sb_bytes)
}

fn encoded_checksum(bytes: &[u8]) -> u32 {
    crc32c_append(crc32c_init(), &bytes[..Ext4Superblock::SUPERBLOCK_SIZE - 4])
}

/// Encodes a superblock, whose checksum becomes that of its present fields.
pub(crate) fn encode_superblock_with_checksum(sb: &mut Ext4Superblock, bytes: &mut [u8]) {
    sb.to_disk_bytes(bytes);
    if ext4_superblock_has_metadata_csum(sb) {
        sb.s_checksum = encoded_checksum(bytes);
        let end = Ext4Superblock::SUPERBLOCK_SIZE;
        bytes[end - 4..end].copy_from_slice(&sb.s_checksum.to_le_bytes());
    }
}

/// Updates `s_checksum` when the filesystem enables `metadata_csum`.
pub fn ext4_update_superblock_checksum(sb: &mut Ext4Superblock) {
    if ext4_superblock_has_metadata_csum(sb) {
        sb.s_checksum = ext4_superblock_csum32(sb);
    }
}
