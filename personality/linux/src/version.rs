//! The version of Linux that programs see (uname(2), /proc/version).

/// The release in utsname.
pub(crate) const RELEASE: &str = "6.1.0-macadamia";

/// The version in utsname.
pub(crate) const VERSION: &str = "#1 SMP Macadamia";
