//! stat, statx, statfs, dirent64, iovec and the flags of files.
