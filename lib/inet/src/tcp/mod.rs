//! TCP (RFC 9293).

pub(crate) mod congestion;
pub(crate) mod connection;
pub(crate) mod half;
mod input;
pub(crate) mod output;
pub(crate) mod segment;
pub(crate) mod sequence;
pub(crate) mod waiting;

use crate::flow::{FlowKey, words};
use crate::hash::Key;
use crate::time::Instant;
use sequence::Seq;

/// The first number of a connection (RFC 6528): the time in units of 4 microseconds, and a secret
/// number for the two ends.
pub(crate) fn initial(flow: &FlowKey, key: Key, now: Instant) -> Seq {
    Seq((key.hash(&words(flow)) as u32).wrapping_add((now.micros() / 4) as u32))
}
