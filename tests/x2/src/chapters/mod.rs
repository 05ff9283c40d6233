//! The tests, one module for each chapter of the interface.

use crate::framework::Chapter;

mod ipc;
mod kip;

/// All chapters, in the order in which they run.
pub(crate) const ALL: &[Chapter] =
    &[Chapter { name: "kip", tests: kip::TESTS }, Chapter { name: "ipc", tests: ipc::TESTS }];
