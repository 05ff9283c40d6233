//! The network interfaces of the Unix server: the frames between their drivers and the network.

use crate::again;
use crate::places::{NET, NET_BUFFERS, NET_NEWS};
use crate::report::say;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Arguments;
use core::time::Duration;
use inet::InterfaceIndex;
use mach_l4::L4Machine;
use net::client::Refused;
use net::interface::{Interface, Notified, Places};
use network_server::frames::{OFFLOAD, head, offload};
use rt::root::Status;
use unix::network::Network;
use unix::poll::{PollQueue, Readiness, until_ready};
use unix::sync::{SpinLock, Turns};
use unix::thread::{System, Thread};
use unix::{AttemptError, Environment};
use unix_server::start::write_file;

/// The name of the server that drives the interface, and the interface's own.
const SERVER: &str = "net";
pub(crate) const NAME: &str = "eth0";
/// After this many frames, other tasks run.
const TURN: u32 = 64;
/// How often is looked for an address at first, how often so, and how often later.
const LOOK: Duration = Duration::from_millis(50);
const PATIENCE: usize = 200;
const LATER: Duration = Duration::from_secs(5);

/// A network interface, and the tasks that wait for its driver.
pub(crate) struct Card {
    interface: SpinLock<Interface>,
    queue: PollQueue,
}

/// The thread that is notified: the worker that calls this.
fn notified() -> Notified {
    Notified { thread: l4::utcb::my_global_id(), bits: NET_NEWS }
}

impl Card {
    /// Opens the interface, unless there is none. The calling thread must be the worker that is
    /// notified. Blocks until the driver has started.
    pub(crate) fn open() -> Option<Arc<Card>> {
        let places = Places { area: NET, buffers: NET_BUFFERS };
        match Interface::open(SERVER, places, notified(), OFFLOAD) {
            Ok(interface) => {
                Some(Arc::new(Card { interface: SpinLock::new(interface), queue: PollQueue::new() }))
            }
            Err(Status::NotFound) => None,
            Err(status) => {
                say(format_args!("unix: the network interface cannot be opened: {status:?}"));
                None
            }
        }
    }

    /// Wakes the tasks that wait for the driver, whose notification bits are `bits`.
    pub(crate) fn notified(&self, bits: u64) {
        if bits & NET_NEWS != 0 {
            self.queue.wake(Readiness::READ | Readiness::WRITE);
        }
    }

    /// Adds the interface to the network.
    ///
    /// # Errors
    /// `ENOMEM`: memory is short.
    pub(crate) fn attach(&self, network: &Network) -> unix::Result<InterfaceIndex> {
        let interface = self.interface.lock();
        let about = interface.description();
        let index = network.attach(NAME, about.address, about.mtu.into(), offload(about))?;
        network.link(index, interface.client.link());
        Ok(index)
    }

    /// Passes received frames and the state of the link to the network. Ends when there is no
    /// driver any more.
    pub(crate) async fn receive(self: Arc<Self>, network: Arc<Network>, index: InterfaceIndex) {
        let (mut frame, mut link) = (Vec::new(), self.interface.lock().client.link());
        let mut turns = Turns::every(TURN);
        loop {
            // As long as frames come, nothing has to be waited for.
            turns.step().await;
            let news = until_ready(&self.queue, Readiness::READ, || {
                let interface = &mut *self.interface.lock();
                loop {
                    let is_up = interface.client.link();
                    let head = interface.client.receive(&mut frame);
                    if head.is_some() || is_up != link || interface.client.is_gone() {
                        return Ok((head, is_up, interface.client.is_gone()));
                    }
                    interface.flush();
                    if !interface.client.sleep_to_receive() {
                        return Err(AttemptError::WouldBlock);
                    }
                }
            });
            // The attempt has no error but that it would block, after which it is repeated.
            let Ok((head, is_up, is_gone)) = news.await else { continue };
            if core::mem::replace(&mut link, is_up) != is_up {
                network.link(index, is_up);
            }
            if let Some(head) = head {
                network.received(index, &frame, head.checked);
            }
            if is_gone {
                network.link(index, false);
                return;
            }
        }
    }

    /// Sends the network's frames. Ends when there is no driver any more.
    pub(crate) async fn send(self: Arc<Self>, network: Arc<Network>, index: InterfaceIndex) {
        let mut turns = Turns::every(TURN);
        loop {
            network.frame_waits(index).await;
            while let Some(frame) = network.take_frame(index) {
                turns.step().await;
                let head = head(&frame);
                let sent = until_ready(&self.queue, Readiness::WRITE, || {
                    let interface = &mut *self.interface.lock();
                    loop {
                        match interface.client.send(&head, &frame.bytes) {
                            Err(Refused::Full) => {}
                            done => return Ok(done),
                        }
                        interface.flush();
                        if !interface.client.sleep_to_send() {
                            return Err(AttemptError::WouldBlock);
                        }
                    }
                });
                let sent = sent.await;
                network.recycle(frame);
                if matches!(sent, Ok(Err(Refused::Gone))) {
                    return;
                }
            }
            self.interface.lock().flush();
        }
    }

    /// Connects with the driver that is started in place of one that has ended. Ends when none is
    /// started any more.
    pub(crate) async fn look_after(
        self: Arc<Self>,
        clock: Arc<dyn Environment>,
        log: impl Fn(Arguments<'_>),
    ) {
        loop {
            again::ended(&*clock, || self.interface.lock().has_ended()).await;
            let again = || self.interface.lock().open_again(SERVER, notified());
            let is_there = again::connect(&*clock, again).await;
            if is_there {
                log(format_args!("the server {SERVER} is there again"));
            } else {
                log(format_args!("the server {SERVER} has ended for good: there is no network interface"));
                self.interface.lock().client.fail();
            }
            // Of what was done before the connection there is no notification.
            self.queue.wake(Readiness::READ | Readiness::WRITE);
            if !is_there {
                return;
            }
        }
    }
}

/// Sets the interface up with what the network's server of addresses says, and writes the servers
/// of names into /etc/resolv.conf, as often as they change. Never returns.
pub(crate) async fn configure(
    system: Arc<System<L4Machine>>,
    init: Arc<Thread<L4Machine>>,
    index: InterfaceIndex,
    log: impl Fn(Arguments<'_>),
) {
    let (network, clock) = (system.vfs().network.clone(), system.environment().clone());
    ask_for_address(&system, index, &log);
    let (mut known, mut taken, mut looks) = (None, None, 0);
    loop {
        let (lease, declined) = network.with(|stack| (stack.lease(index), stack.declined(index)));
        if let Some(declined) = declined.filter(|_| taken != declined) {
            let of = declined.mac.map(|byte| format!("{byte:02x}")).join(":");
            log(format_args!("{NAME} does not use the address {}, which {of} has", declined.address));
        }
        taken = declined;
        if let Some(lease) = lease
            && known.as_ref() != Some(&lease.name_servers)
        {
            log(format_args!("{NAME} has the address {} from {}", lease.prefix.address, lease.server));
            let lines: String =
                lease.name_servers.iter().map(|server| format!("nameserver {server}\n")).collect();
            known = Some(lease.name_servers);
            if let Err(error) = write_file(&init, b"/etc", b"resolv.conf", lines.as_bytes()).await {
                log(format_args!("/etc/resolv.conf cannot be written: {error:?}"));
            }
        } else if known.is_none() && taken.is_none() && looks == PATIENCE {
            log(format_args!("{NAME}: no server of addresses has answered yet"));
        }
        looks += 1;
        let pause = if known.is_none() && looks < PATIENCE { LOOK } else { LATER };
        clock.sleep_until(clock.monotonic() + pause).await;
    }
}

/// Sets the interface up, and asks the network's server of addresses for one.
pub(crate) fn ask_for_address(
    system: &System<L4Machine>,
    index: InterfaceIndex,
    log: &impl Fn(Arguments<'_>),
) {
    let name = String::from_utf8_lossy(&system.names().0).into_owned();
    let begun = system
        .vfs()
        .network
        .with(|stack| stack.set_up(index, true).and_then(|()| stack.start_dhcp(index, &name)));
    if let Err(error) = begun {
        log(format_args!("{NAME} gets no address: {error:?}"));
    }
}
