//! Kernel objects as ports: programs call the library by messages, with the clients that `mig` has
//! written, and the servers that `mig` has written carry the calls out.

mod calls;
mod exceptions;
mod gnu;
mod hostile;
mod hosts;
mod memory;
mod names;
mod object_cache;
mod objects;
mod page_clusters;
mod pager_model;
mod pagers;
mod pair;
mod requests;
mod silent_pagers;
mod support;
#[allow(dead_code, reason = "the model asks more of swap space")]
#[path = "../model/swap.rs"]
mod swap;
mod tasks;
