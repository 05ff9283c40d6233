//! Tests of the driver of a network interface, against the network that QEMU makes for one guest:
//! its router is 10.0.2.2, and its DHCP server gives the guest 10.0.2.15.

use crate::report::Report;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Write;
use l4::ipc;
use l4::utcb;
use l4::x2::extension::ACCEPT_NOTIFICATION;
use l4::x2::{ThreadId, Time};
use net::head::Head;
use net::interface::{Interface, Notified, Places};
use net::offload::Offload;
use rt::root::{Console, Status};

/// The places of the memory for frames.
const PLACES: Places = Places { area: 0x5000_0000, buffers: 0x5100_0000 };
const BITS: u64 = 1 << 7;
/// How long the client waits for a notification.
const PATIENCE: Time = Time::period(10_000_000);
/// How long a client of a driver that ends waits for a frame, and how often until it gives up.
const LOOK: Time = Time::period(20_000);
const LOOKS: usize = 500;

const OWN: [u8; 4] = [10, 0, 2, 15];
const ROUTER: [u8; 4] = [10, 0, 2, 2];
const BROADCAST: [u8; 6] = [0xff; 6];
/// The types of frames.
const IPV4: [u8; 2] = [8, 0];
const ARP: [u8; 2] = [8, 6];

fn open() -> Result<Interface, Status> {
    // SAFETY: the acceptor takes no mappings or strings.
    unsafe { utcb::set_buffer_register(0, ACCEPT_NOTIFICATION) };
    Interface::open("net", PLACES, notified(), Offload::default())
}

fn notified() -> Notified {
    Notified { thread: utcb::my_global_id(), bits: BITS }
}

/// The main function of the client.
pub(crate) fn test() -> ! {
    let mut report = Report::plan(6);
    let mut net = open().expect("there is a network interface");
    let address = net.description().address;
    let is_qemu = address[..3] == [0x52, 0x54, 0] && net.description().mtu == 1500;
    report.test(is_qemu, "NET0001", "the interface has an address and an MTU");
    let places = Places { area: 0x5200_0000, buffers: 0x5300_0000 };
    let again = Interface::open("net", places, notified(), Offload::default()).map(drop);
    report.test(again == Err(Status::InUse), "NET0002", "the interface has one client");
    report.test(net.client.link(), "NET0003", "the link is up");
    let router = exchange(&mut net, &arp_request(address), arp_answer);
    report.test(router.is_some(), "NET0004", "the router answers a question for its address");
    let offered = exchange(&mut net, &discover(address), offer);
    report.test(offered == Some(OWN), "NET0005", "the server of addresses offers one");
    let mut answers = 0;
    for number in 0..3 * net::BUFFERS {
        let question = echo_request(address, router.unwrap_or(BROADCAST), number as u16);
        answers += usize::from(exchange(&mut net, &question, |frame| echo_answer(frame, number)).is_some());
    }
    let all = answers == 3 * net::BUFFERS;
    report.test(all, "NET0006", "more frames than there are buffers pass in both directions");
    l4::start::halt()
}

/// How often root starts a driver again.
const RESTARTS: usize = 5;

/// The main function of a client of a driver that ends again and again.
pub(crate) fn test_ends() -> ! {
    let mut report = Report::plan(3);
    let mut net = open().expect("there is a network interface");
    let address = net.description().address;
    let router = exchange_with_ends(&mut net, &arp_request(address), &mut 0, arp_answer);
    let router = router.unwrap_or(BROADCAST);
    let (mut answers, mut ends) = (0, 0);
    for number in 0..COUNT {
        let question = echo_request(address, router, number as u16);
        let answer = exchange_with_ends(&mut net, &question, &mut ends, |frame| echo_answer(frame, number));
        answers += usize::from(answer.is_some());
    }
    report.test(ends == RESTARTS, "NET0010", "the client goes on with each driver that is started again");
    report.test(answers == COUNT, "NET0011", "each question gets its answer");
    report.test(net.client.link() && !net.client.is_gone(), "NET0012", "the last driver stays");
    l4::start::halt()
}

/// How many questions are asked of a driver that ends.
const COUNT: usize = 200;

/// The main function of a client without a network interface.
pub(crate) fn test_without() -> ! {
    let mut report = Report::plan(1);
    let opened = open().map(drop);
    report.test(opened == Err(Status::NotFound), "NET0020", "without the device there is no interface");
    l4::start::halt()
}

/// The main function of a client that waits for changes of the link.
pub(crate) fn test_link() -> ! {
    let mut report = Report::plan(2);
    let net = open().expect("there is a network interface");
    let _ = writeln!(Console, "# unplug.");
    report.test(wait_for_link(&net, false), "NET0030", "the client is told that the link is down");
    let _ = writeln!(Console, "# plug.");
    report.test(wait_for_link(&net, true), "NET0031", "the client is told that it is up again");
    l4::start::halt()
}

fn wait_for_link(net: &Interface, up: bool) -> bool {
    // Only notifications end the wait: the driver has to tell its client of the change.
    while net.client.link() != up {
        if !is_notified() {
            return false;
        }
    }
    true
}

/// Waits for a notification. Returns whether one has come.
fn is_notified() -> bool {
    ipc::receive_timeout(ThreadId::ANY, PATIENCE).is_ok()
}

/// Sends a frame, and returns what `find` finds in a received frame; `None`: there is no answer.
fn exchange<T>(net: &mut Interface, frame: &[u8], find: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
    net.client.send(&Head::default(), frame).ok()?;
    net.flush();
    loop {
        if let Some(found) = receive(net, &find) {
            return Some(found);
        }
        if !net.client.sleep_to_receive() && !is_notified() {
            return None;
        }
    }
}

/// Like [`exchange`], with a driver that may end, which `ends` counts. Since a frame may be lost
/// then, it is sent again. Nothing notifies the client of an end: it has to look.
fn exchange_with_ends<T>(
    net: &mut Interface,
    frame: &[u8],
    ends: &mut usize,
    find: impl Fn(&[u8]) -> Option<T>,
) -> Option<T> {
    let mut again = true;
    for _ in 0..LOOKS {
        if core::mem::take(&mut again) {
            net.client.send(&Head::default(), frame).ok()?;
            net.flush();
        }
        if let Some(found) = receive(net, &find) {
            return Some(found);
        }
        if !net.client.sleep_to_receive() {
            let _ = ipc::receive_timeout(ThreadId::ANY, LOOK);
        }
        if net.has_ended() {
            while net.open_again("net", notified()).is_err() {
                ipc::sleep(LOOK);
            }
            *ends += 1;
            again = true;
        }
    }
    None
}

/// Takes the received frames until `find` finds something.
fn receive<T>(net: &mut Interface, find: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
    let mut frame = Vec::new();
    while net.client.receive(&mut frame).is_some() {
        net.flush();
        if let Some(found) = find(&frame) {
            return Some(found);
        }
    }
    None
}

fn ethernet(to: [u8; 6], from: [u8; 6], kind: [u8; 2], content: &[u8]) -> Vec<u8> {
    let mut frame = [&to[..], &from, &kind, content].concat();
    frame.resize(frame.len().max(60), 0);
    frame
}

/// The question for the address of the router (RFC 826).
fn arp_request(from: [u8; 6]) -> Vec<u8> {
    let content = [&[0, 1, 8, 0, 6, 4, 0, 1][..], &from, &OWN, &[0; 6], &ROUTER].concat();
    ethernet(BROADCAST, from, ARP, &content)
}

/// The router's address, if the frame is the answer.
fn arp_answer(frame: &[u8]) -> Option<[u8; 6]> {
    let is_answer =
        frame.len() >= 42 && frame[12..14] == ARP && frame[20..22] == [0, 2] && frame[28..32] == ROUTER;
    is_answer.then(|| core::array::from_fn(|index| frame[22 + index]))
}

/// The checksum of RFC 1071.
fn checksum(bytes: &[u8]) -> [u8; 2] {
    let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    (!(sum + (sum >> 16)) as u16).to_be_bytes()
}

/// A packet of IPv4.
fn packet(protocol: u8, from: [u8; 4], to: [u8; 4], content: &[u8]) -> Vec<u8> {
    let length = (20 + content.len() as u16).to_be_bytes();
    let mut header = vec![0x45, 0, length[0], length[1], 0, 0, 0, 0, 64, protocol, 0, 0];
    header.extend(from.into_iter().chain(to));
    let sum = checksum(&header);
    header[10..12].copy_from_slice(&sum);
    [header, content.to_vec()].concat()
}

/// The question for an address (RFC 2131): DHCPDISCOVER.
fn discover(from: [u8; 6]) -> Vec<u8> {
    let mut message = vec![0; 240];
    message[..8].copy_from_slice(&[1, 1, 6, 0, 0x4d, 0x61, 0x63, 0x61]);
    message[28..34].copy_from_slice(&from);
    message[236..].copy_from_slice(&[0x63, 0x82, 0x53, 0x63]);
    message.extend([53, 1, 1, 255]);
    let length = (8 + message.len() as u16).to_be_bytes();
    let datagram = [&[0, 68, 0, 67, length[0], length[1], 0, 0][..], &message].concat();
    ethernet(BROADCAST, from, IPV4, &packet(17, [0; 4], [255; 4], &datagram))
}

/// The address that is offered, if the frame is an offer.
fn offer(frame: &[u8]) -> Option<[u8; 4]> {
    let is_offer = frame.len() >= 62
        && frame[12..14] == IPV4
        && frame[23] == 17
        && frame[36..38] == [0, 68]
        && frame[46..50] == [0x4d, 0x61, 0x63, 0x61];
    is_offer.then(|| core::array::from_fn(|index| frame[58 + index]))
}

/// A question for an echo (RFC 792), of about as many bytes as a frame can have.
fn echo_request(from: [u8; 6], router: [u8; 6], number: u16) -> Vec<u8> {
    let mut message = vec![8, 0, 0, 0, 0x4d, 0x61];
    message.extend(number.to_be_bytes());
    message.extend((0..1400).map(|index| (index as u16).wrapping_mul(number) as u8));
    let sum = checksum(&message);
    message[2..4].copy_from_slice(&sum);
    ethernet(router, from, IPV4, &packet(1, OWN, ROUTER, &message))
}

/// Whether the frame is the echo of this number, with the same bytes.
fn echo_answer(frame: &[u8], number: usize) -> Option<()> {
    let number = number as u16;
    let is_echo = frame.len() >= 42 + 1400
        && frame[12..14] == IPV4
        && frame[23] == 1
        && frame[34] == 0
        && frame[40..42] == number.to_be_bytes()
        && frame[42..1442]
            .iter()
            .enumerate()
            .all(|(index, &byte)| byte == (index as u16).wrapping_mul(number) as u8);
    is_echo.then_some(())
}
