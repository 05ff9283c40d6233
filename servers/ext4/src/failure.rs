//! Errors, as the numbers that the client gets and as the words that explain a refused mount.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use rsext4::{ErrorContext, Ext4Error, Ext4ErrorKind, FeatureSet};

/// Linux' numbers of errors.
pub(crate) mod number {
    pub(crate) const EPERM: u32 = 1;
    pub(crate) const ENOENT: u32 = 2;
    pub(crate) const EIO: u32 = 5;
    pub(crate) const EBADF: u32 = 9;
    pub(crate) const ENOMEM: u32 = 12;
    pub(crate) const EBUSY: u32 = 16;
    pub(crate) const EEXIST: u32 = 17;
    pub(crate) const ENOTDIR: u32 = 20;
    pub(crate) const EISDIR: u32 = 21;
    pub(crate) const EINVAL: u32 = 22;
    pub(crate) const EFBIG: u32 = 27;
    pub(crate) const ENOSPC: u32 = 28;
    pub(crate) const EROFS: u32 = 30;
    pub(crate) const EMLINK: u32 = 31;
    pub(crate) const ENAMETOOLONG: u32 = 36;
    pub(crate) const ENOTEMPTY: u32 = 39;
    pub(crate) const ENODATA: u32 = 61;
    pub(crate) const EOPNOTSUPP: u32 = 95;
    pub(crate) const EDQUOT: u32 = 122;
}

/// Why a request fails: a number of Linux'.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure(pub(crate) u32);

impl From<Ext4Error> for Failure {
    fn from(error: Ext4Error) -> Failure {
        Failure(match error.kind() {
            Ext4ErrorKind::NotFound => number::ENOENT,
            Ext4ErrorKind::AlreadyExists => number::EEXIST,
            Ext4ErrorKind::NotDirectory => number::ENOTDIR,
            Ext4ErrorKind::IsDirectory => number::EISDIR,
            Ext4ErrorKind::NotEmpty => number::ENOTEMPTY,
            Ext4ErrorKind::Busy => number::EBUSY,
            Ext4ErrorKind::BadFileDescriptor => number::EBADF,
            Ext4ErrorKind::InvalidInput => number::EINVAL,
            Ext4ErrorKind::Overflow | Ext4ErrorKind::FileTooLarge => number::EFBIG,
            Ext4ErrorKind::NoSpace => number::ENOSPC,
            Ext4ErrorKind::NoMemory => number::ENOMEM,
            Ext4ErrorKind::QuotaExceeded => number::EDQUOT,
            Ext4ErrorKind::TooManyLinks => number::EMLINK,
            Ext4ErrorKind::ReadOnly | Ext4ErrorKind::JournalAborted => number::EROFS,
            Ext4ErrorKind::PermissionDenied => number::EPERM,
            Ext4ErrorKind::Unsupported
            | Ext4ErrorKind::UnsupportedFeature
            | Ext4ErrorKind::UnsupportedCapability => number::EOPNOTSUPP,
            Ext4ErrorKind::Io
            | Ext4ErrorKind::Corrupted
            | Ext4ErrorKind::ChecksumMismatch
            | Ext4ErrorKind::Timeout
            | Ext4ErrorKind::BadSuperblock
            | Ext4ErrorKind::InvalidMagic => number::EIO,
        })
    }
}

/// The names of features that a reader has to know, by their bits.
const INCOMPATIBLE: [(u32, &str); 8] = [
    (0x1, "compression"),
    (0x8, "journal_dev"),
    (0x10, "meta_bg"),
    (0x400, "ea_inode"),
    (0x1000, "dirdata"),
    (0x4000, "large_dir"),
    (0x8000, "inline_data"),
    (0x10000, "encrypt"),
];
/// The names of features that a writer has to know, by their bits.
const FOR_WRITERS: [(u32, &str); 7] = [
    (0x80, "snapshot"),
    (0x100, "quota"),
    (0x200, "bigalloc"),
    (0x800, "replica"),
    (0x1000, "read-only"),
    (0x8000, "verity"),
    (0x10000, "orphan_present"),
];

/// Why a file system cannot be mounted: the number, and the words.
pub(crate) fn refusal(error: Ext4Error) -> (u32, String) {
    match (error.kind(), error.context()) {
        (_, Some(ErrorContext::Feature { set, bits })) => {
            let known: &[(u32, &str)] = match set {
                FeatureSet::Incompatible => &INCOMPATIBLE,
                FeatureSet::ReadOnlyCompatible => &FOR_WRITERS,
            };
            let names: Vec<String> = (0..32)
                .map(|bit| 1_u32 << bit)
                .filter(|bit| bits & bit != 0)
                .map(|bit| match known.iter().find(|(known, _)| *known == bit) {
                    Some((_, name)) => String::from(*name),
                    None => format!("{bit:#x}"),
                })
                .collect();
            let what = match set {
                FeatureSet::Incompatible => "it has features that are not supported",
                FeatureSet::ReadOnlyCompatible => "features allow only a mount that is read-only",
            };
            (number::EINVAL, format!("{what}: {}", names.join(", ")))
        }
        (Ext4ErrorKind::InvalidMagic, _) => (number::EINVAL, "it is no ext4 file system".into()),
        (Ext4ErrorKind::UnsupportedCapability, _) => (
            number::EINVAL,
            "it has multiple mount protection or a journal on another device, which are not supported".into(),
        ),
        (Ext4ErrorKind::BadSuperblock, _) => {
            (number::EINVAL, "its superblock cannot be right, or the disk is too small for it".into())
        }
        (Ext4ErrorKind::ChecksumMismatch, _) => (number::EIO, "a checksum is wrong: use e2fsck".into()),
        (Ext4ErrorKind::Corrupted, _) => (number::EIO, "it is damaged: use e2fsck".into()),
        _ => (Failure::from(error).0, format!("{error}")),
    }
}
