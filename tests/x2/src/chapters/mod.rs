//! The tests, with a module for each chapter of the interface.

use crate::framework::Chapter;

mod arrival;
mod breakpoints;
mod confinement;
mod crossing;
mod error_code;
mod exception;
mod exhaustion;
mod fast_path;
mod fast_report;
mod fast_timeout;
mod fault;
mod interrupt;
mod io;
mod ipc;
mod kip;
mod map;
mod map_control;
mod memory_control;
mod message_interrupt;
mod nodes;
mod notify;
mod orphans;
mod preemption;
mod processors;
mod propagation;
mod quota;
mod redirect;
mod redirector;
mod registers;
mod remapping;
mod schedule;
mod sigma0;
mod space;
mod state;
mod string;
mod thread;
mod thread_state;
mod timeout;
mod unmap;

/// All chapters, in the order in which they run.
pub(crate) const ALL: &[Chapter] = &[
    Chapter { name: "kip", tests: kip::TESTS },
    Chapter { name: "thread", tests: thread::TESTS },
    Chapter { name: "space", tests: space::TESTS },
    Chapter { name: "ipc", tests: ipc::TESTS },
    Chapter { name: "timeout", tests: timeout::TESTS },
    Chapter { name: "fast-path", tests: fast_path::TESTS },
    Chapter { name: "fast-report", tests: fast_report::TESTS },
    Chapter { name: "fast-timeout", tests: fast_timeout::TESTS },
    Chapter { name: "propagation", tests: propagation::TESTS },
    Chapter { name: "string", tests: string::TESTS },
    Chapter { name: "string-boundaries", tests: string::boundaries::TESTS },
    Chapter { name: "fault", tests: fault::TESTS },
    Chapter { name: "map", tests: map::TESTS },
    Chapter { name: "unmap", tests: unmap::TESTS },
    Chapter { name: "io", tests: io::TESTS },
    Chapter { name: "exception", tests: exception::TESTS },
    Chapter { name: "exhaustion", tests: exhaustion::TESTS },
    Chapter { name: "state", tests: state::TESTS },
    Chapter { name: "registers", tests: registers::TESTS },
    Chapter { name: "remapping", tests: remapping::TESTS },
    Chapter { name: "interrupt", tests: interrupt::TESTS },
    Chapter { name: "message-interrupt", tests: message_interrupt::TESTS },
    Chapter { name: "confinement", tests: confinement::TESTS },
    Chapter { name: "quota", tests: quota::TESTS },
    Chapter { name: "notify", tests: notify::TESTS },
    Chapter { name: "map-control", tests: map_control::TESTS },
    Chapter { name: "redirect", tests: redirect::TESTS },
    Chapter { name: "redirector", tests: redirector::TESTS },
    Chapter { name: "thread-state", tests: thread_state::TESTS },
    Chapter { name: "breakpoints", tests: breakpoints::TESTS },
    Chapter { name: "schedule", tests: schedule::TESTS },
    Chapter { name: "preemption", tests: preemption::TESTS },
    Chapter { name: "memory-control", tests: memory_control::TESTS },
    Chapter { name: "processors", tests: processors::TESTS },
    Chapter { name: "arrival", tests: arrival::TESTS },
    Chapter { name: "nodes", tests: nodes::TESTS },
    Chapter { name: "crossing", tests: crossing::TESTS },
    Chapter { name: "orphans", tests: orphans::TESTS },
    Chapter { name: "sigma0", tests: sigma0::TESTS },
    Chapter { name: "error-code", tests: error_code::TESTS },
];
