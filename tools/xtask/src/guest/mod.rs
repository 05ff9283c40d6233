//! Guest images: root file systems of unmodified Debian programs, made from Debian's packages.
//!
//! `guests/images.toml` says what is in them, `guests/packages.lock` which versions of which
//! packages that means. The packages are fetched by the machine's apt, checked, and kept below
//! `target`; nothing of them is installed or run here.

mod apt;
mod archive;
mod definitions;
mod go;
mod image;
mod interact;
mod linux;
mod lock;
mod measure;
mod output;
mod package;
mod packages;
mod record;
mod run;
mod script;
mod session;
mod suite;
mod tar;
mod telnet;
mod terminal;
mod tree;

pub(crate) use image::{Request, make};
pub(crate) use interact::{Options as InteractOptions, run as interact, run_suite as run_interactive};
pub(crate) use measure::{Options as MeasureOptions, run as measure};
pub(crate) use output::output;
pub(crate) use packages::{Options as PackagesOptions, run as packages};
pub(crate) use record::{Options as RecordOptions, run as record};
pub(crate) use run::{Options as RunOptions, run};
pub(crate) use session::{Kernel, Mode};
pub(crate) use suite::{ids, run as run_tests};
