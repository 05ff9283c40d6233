//! The internet protocols in a task of their own, if the configuration has the server `network`.

use crate::LOOPBACK;
use crate::again;
use crate::network::{NAME, ask_for_address};
use crate::places::NET_NEWS;
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt::Arguments;
use core::sync::atomic::{AtomicU64, Ordering};
use inet::InterfaceIndex;
use l4::x2::ThreadId;
use mach_l4::L4Machine;
use network_server::client::{self, Attachment, Link};
use rt::root::Status;
use unix::network::Network;
use unix::poll::{PollQueue, Readiness, until_ready};
use unix::sync::SpinLock;
use unix::thread::System;
use unix::{AttemptError, Environment};

/// The server of the network.
pub(crate) struct NetworkTask {
    /// The worker that is notified.
    notified: ThreadId,
    /// The server's thread.
    server: AtomicU64,
    /// Whether the server has notified since it was last asked which sockets are ready.
    has_news: SpinLock<bool>,
    queue: PollQueue,
}

impl NetworkTask {
    /// Finds the server, if there is one. The calling thread must be the worker that is notified.
    /// Blocks until the server has started.
    pub(crate) fn open() -> Option<Arc<NetworkTask>> {
        let server = client::find().ok()?;
        Some(Arc::new(NetworkTask {
            notified: l4::utcb::my_global_id(),
            server: AtomicU64::new(server.raw()),
            has_news: SpinLock::new(false),
            queue: PollQueue::new(),
        }))
    }

    /// Wakes the task that asks which sockets are ready, if the bits are the server's.
    pub(crate) fn notified(&self, bits: u64) {
        if bits & NET_NEWS != 0 {
            *self.has_news.lock() = true;
            self.queue.wake(Readiness::READ);
        }
    }

    /// Asks which sockets are ready, whenever the server says that some are. Never returns.
    pub(crate) async fn listen(self: Arc<Self>, network: Arc<Network>) {
        loop {
            let told = until_ready(&self.queue, Readiness::READ, || {
                match core::mem::take(&mut *self.has_news.lock()) {
                    true => Ok(()),
                    false => Err(AttemptError::WouldBlock),
                }
            });
            // The attempt has no error but that it would block, after which it is repeated.
            let _ = told.await;
            network.refresh();
        }
    }

    /// Attaches to the server that runs now: the network has no sockets then. Sets the loopback up.
    ///
    /// # Errors
    /// Those of [`Link::attach`].
    pub(crate) fn attach(&self, network: &Network, random: &dyn Environment) -> Result<(), Status> {
        let about = network.attachment();
        let word = |at: usize| core::array::from_fn(|index| about.seed[8 * at + index]);
        let mut key = [0; 8];
        random.fill_random(&mut key);
        let attached = Link::attach(&Attachment {
            seed: core::array::from_fn(|at| u64::from_le_bytes(word(at))),
            key: u64::from_le_bytes(key),
            memory: about.memory as u64,
            sockets: about.sockets as u64,
            first: about.first,
            thread: self.notified,
            bits: NET_NEWS,
        });
        let (link, server) = attached?;
        // Relaxed ordering: the id is all that there is to know.
        self.server.store(server.raw(), Ordering::Relaxed);
        network.connect(Box::new(link));
        network.with(|stack| stack.set_up(LOOPBACK, true)).map_err(|_| Status::NotFound)
    }

    /// Attaches to the server that is started in place of one that has ended or does not answer.
    /// Ends when none is started any more.
    pub(crate) async fn look_after(
        self: Arc<Self>,
        system: Arc<System<L4Machine>>,
        log: impl Fn(Arguments<'_>),
    ) {
        let (network, clock) = (system.vfs().network.clone(), system.environment().clone());
        loop {
            let has_ended = || {
                client::has_ended(ThreadId::from_raw(self.server.load(Ordering::Relaxed)))
                    || !network.is_connected()
            };
            again::ended(&*clock, has_ended).await;
            network.disconnect();
            if !again::connect(&*clock, || self.attach(&network, &*clock)).await {
                log(format_args!(
                    "the server {} has ended for good: there is no network",
                    network_server::NAME
                ));
                return;
            }
            log(format_args!(
                "the server {} is there again, without the sockets of before",
                network_server::NAME
            ));
            if let Some(index) = interface(&network) {
                ask_for_address(&system, index, &log);
            }
        }
    }
}

/// The interface that the server has, in addition to the loopback.
pub(crate) fn interface(network: &Network) -> Option<InterfaceIndex> {
    let mut all = network.interface_names().into_iter();
    all.find(|(_, name)| name == NAME).map(|(index, _)| index)
}
