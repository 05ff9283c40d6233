//! Guest images: root file systems of unmodified Debian programs, made from Debian's packages.
//!
//! `guests/images.toml` says what is in them, `guests/packages.lock` which versions of which
//! packages that means. The packages are fetched by the machine's apt, checked, and kept below
//! `target`. They are installed into a system of their own, isolated from this host.

#![forbid(unsafe_code)]

mod apt;
mod archive;
mod at_terminal;
mod definitions;
mod disk;
mod go;
mod host;
mod image;
mod install;
mod interact;
pub mod linux;
mod lock;
mod login;
mod namespace;
mod output;
mod package;
mod packages;
mod piped;
mod power_cuts;
mod record;
mod run;
mod script;
mod session;
mod stick;
mod streams;
mod suite;
mod tar;
mod telnet;
mod terminal;
mod tree;

use anyhow::Result;
use mac_machine::boots::{self, Verdict};
use mac_machine::suites::Run;

pub use image::{Request, make};
pub use interact::{Options as InteractOptions, pictures, run as interact};
pub use output::output;
pub use packages::{Options as PackagesOptions, run as packages};
pub use record::{Options as RecordOptions, run as record};
pub use run::{Options as RunOptions, run};
pub use session::{Kernel, Start};
pub use stick::DiskOptions;
pub use suite::ids;

/// Boots a suite, be it of native programs or of guests, and judges. An error means that the
/// machine could not even be started.
pub fn boot(run: &Run) -> Result<Verdict> {
    if !run.suite.guest.is_empty() {
        return suite::run(run);
    }
    if !run.suite.interactive.is_empty() {
        return interact::run_suite(run);
    }
    if !run.suite.piped.is_empty() {
        return piped::run(run);
    }
    if run.suite.stick {
        return stick::run(run);
    }
    boots::run(run)
}
