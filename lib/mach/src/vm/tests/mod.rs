//! Tests of the memory system as a whole, on the simulated machine.

mod basic;
mod control;
mod copies;
mod lend;
mod pageout;
mod support;
