//! The version of Linux that programs are told.

/// The release.
pub(crate) const RELEASE: &str = "6.1.0-macadamia";

/// The version.
pub(crate) const VERSION: &str = "#1 SMP Macadamia";
