//! The network server as a program: root has started it, with the driver of the network interface
//! if there is one. With the argument `end-after=COUNT` it ends in the middle of its work
//! ([`driver::end`]), when so many frames were passed and requests answered.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

use alloc::vec;
use direct::Decoder;
use driver::{WORK, end};
use inet::placement::LONGEST;
use inet::{Instant, Stack};
use interfaces::network::serve;
use l4::direct::Direct;
use l4::extension;
use l4::syscall::system_clock;
use l4::x2::extension::{ACCEPT_NOTIFICATION, NOTIFICATION_LABEL};
use l4::x2::{ThreadId, Time};
use net::interface::{Notified, Places};
use network_server::card::Card;
use network_server::service::{Service, Surroundings};
use rt::root::{self, Status, memory, names};

l4::program!(run, kip = rt::start_page::KIP, stack = 256 << 10);

rt::growing_heap!(1 << 20);

/// The addresses of the memory that is shared with the driver, and of the buffers for frames.
const PLACES: Places = Places { area: 0x4000_0000, buffers: 0x4100_0000 };
/// The buffers of sockets get one part in so many of the memory; the rest is for what else belongs
/// to sockets, and for frames.
const BUFFERS_PART: u64 = 2;

/// The machine, as the service wants it.
struct Machine {
    card: Option<Card>,
    /// Whether more frames wait to be passed.
    has_more: bool,
    /// When the driver is looked after again.
    look: u64,
}

impl Surroundings for Machine {
    fn now(&self) -> Instant {
        Instant::from_micros(system_clock())
    }

    fn notify(&self, thread: ThreadId, bits: u64) -> bool {
        extension::notify(thread, bits).is_ok()
    }

    fn begin(&mut self, stack: &mut Stack) {
        if let Some(card) = &mut self.card {
            card.begin(stack);
        }
    }

    fn pass(&mut self, stack: &mut Stack, now: Instant) {
        self.has_more = self.card.as_mut().is_some_and(|card| card.pass(stack, now));
    }
}

fn run() -> ! {
    root::report_panics();
    end::prepare();
    let own = l4::utcb::my_global_id();
    let card = match Card::open(PLACES, Notified { thread: own, bits: WORK }) {
        Ok(card) => Some(card),
        Err(Status::NotFound) => None,
        Err(status) => panic!("the network interface cannot be opened: {status:?}"),
    };
    let available = memory::available().expect("root says how much memory there is") / BUFFERS_PART;
    let mut service = Service::new(Machine { card, has_more: false, look: 0 }, available as usize);
    names::register(own).expect("it is a thread of this server");
    serve_for_ever(&mut service)
}

fn serve_for_ever(service: &mut Service<Machine>) -> ! {
    #[allow(unsafe_code, reason = "what the thread accepts is an invariant of all its memory")]
    // SAFETY: the acceptor takes no mappings or strings.
    unsafe {
        l4::utcb::set_buffer_register(0, ACCEPT_NOTIFICATION)
    };
    let (mut request, mut answer) = (vec![0; LONGEST], vec![0; LONGEST]);
    let mut registers = Direct::notified();
    let mut received = registers.wait_for(&mut [request.as_mut_slice()], Time::ZERO);
    loop {
        if let Ok((from, tag)) = received
            && !(from.is_nil() && tag.label() == NOTIFICATION_LABEL)
        {
            // A short request has no string.
            let length = Decoder::new(&registers, tag).string(LONGEST).unwrap_or(0);
            let reply = serve(service, from, tag, &mut registers, &[&request[..length]], &mut answer);
            end::step();
            let wait = wait(service);
            received = match reply {
                Some(reply) => registers.reply_wait_for(from, &reply, &mut [request.as_mut_slice()], wait),
                None => registers.wait_for(&mut [request.as_mut_slice()], wait),
            };
            continue;
        }
        // The driver says that there are frames, or something is due, or the receiver of an answer
        // has ended.
        look_after(service);
        service.work();
        let wait = wait(service);
        received = registers.wait_for(&mut [request.as_mut_slice()], wait);
    }
}

/// Looks after the driver, if it is time. Overwrites the message registers.
fn look_after(service: &mut Service<Machine>) {
    let now = system_clock();
    if let Some((stack, machine)) = service.stack()
        && let Some(card) = &mut machine.card
        && now >= machine.look
    {
        machine.look = now.saturating_add(card.look_after(stack, now));
    }
}

/// For how long there is nothing to do but requests and what the driver notifies.
fn wait(service: &mut Service<Machine>) -> Time {
    let Some((stack, machine)) = service.stack() else { return Time::NEVER };
    let deadline = stack.next_deadline().map_or(u64::MAX, Instant::micros);
    let look = if machine.card.is_some() { machine.look } else { u64::MAX };
    match deadline.min(look).saturating_sub(system_clock()) {
        0 => Time::ZERO,
        _ if machine.has_more => Time::ZERO,
        time => Time::period(time),
    }
}
