//! The lab: measures and counts, keeps and compares results, and draws charts of them.
#![forbid(unsafe_code)]

pub mod bench;
mod chart;
pub mod measure;
pub mod trace;
