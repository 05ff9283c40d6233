//! The lab: what is measured and counted, how it is kept and compared, and the charts of it.
#![forbid(unsafe_code)]

pub mod bench;
mod chart;
pub mod measure;
pub mod trace;
