mod death;
mod errors;
mod memory;
mod messages;
#[cfg(loom)]
mod models;
mod names;
mod notifications;
mod queues;
mod support;
