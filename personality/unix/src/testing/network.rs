//! A network whose stack is in another task, as far as a test on the host can have one.

use crate::Environment;
use crate::network::{Attachment, Network};
use inet::placement::{LONGEST, SHORT, Transport, answer};
use inet::{Instant, Limits, Stack};
use std::cell::Cell;
use std::sync::Arc;

thread_local! {
    static ELSEWHERE: Cell<bool> = const { Cell::new(false) };
}

/// Runs a test whose systems have their network in another task.
pub fn elsewhere(test: impl FnOnce()) {
    ELSEWHERE.set(true);
    test();
    ELSEWHERE.set(false);
}

/// Places the network in another task, if the test is run by [`elsewhere`].
pub fn place(network: &Network, environment: Arc<dyn Environment>) {
    if ELSEWHERE.get() {
        network.move_out();
        network.connect(Box::new(Task::new(&network.attachment(), environment)));
    }
}

/// The task, which is called and not sent messages.
pub struct Task {
    stack: Stack,
    environment: Arc<dyn Environment>,
    answer: Vec<u8>,
}

impl Task {
    /// A task that has been told this.
    pub fn new(about: &Attachment, environment: Arc<dyn Environment>) -> Task {
        let limits = Limits { memory: about.memory, sockets: about.sockets, ..Limits::default() };
        let mut stack = Stack::new(about.seed, limits);
        stack.identify_from(about.first);
        Task { stack, environment, answer: Vec::new() }
    }
}

impl Transport for Task {
    fn call(&mut self, request: &[u8], long: bool) -> Option<&[u8]> {
        let now = Instant::from_micros(self.environment.monotonic().as_micros() as u64);
        assert!(answer(&mut self.stack, now, request, &mut self.answer), "there is such a request");
        assert!(self.answer.len() <= if long { LONGEST } else { SHORT });
        Some(&self.answer)
    }
}
