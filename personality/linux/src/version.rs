//! The version of Linux that programs see (uname(2), /proc/version).

/// The release of the system, which programs see in struct utsname.
pub(crate) const RELEASE: &str = "6.1.0-macadamia";

/// The version of the system, which programs see in struct utsname.
pub(crate) const VERSION: &str = "#1 SMP Macadamia";
