//! Kernel objects as ports: programs call the library by messages, with the clients that `mig` has
//! written, and the servers that `mig` has written carry the calls out.

mod hosts;
mod memory;
mod names;
mod support;
mod tasks;
