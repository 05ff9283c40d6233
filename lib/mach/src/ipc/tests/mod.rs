mod death;
mod errors;
mod memory;
mod messages;
mod names;
mod notifications;
mod queues;
mod support;
