//! The real-time clock of a PC, that of the MC146818. The driver is the program of this package, an
//! ordinary server of root's.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod clock;
