//! Frames in both directions, and drivers that end.

use super::*;
use crate::client::{Client, Refused};
use crate::head::{Checksum, Head, Segments};
use crate::offload::Offload;
use crate::{LONGEST, SHORTEST};
use proptest::prelude::*;
use std::collections::VecDeque;

#[test]
fn a_frame_is_sent_with_its_head() {
    let (memory, area) = (Memory::new(), Area::default());
    let mut client = Client::new(memory.buffers());
    client.restart(&area);
    let mut device = Device::new(&area);
    assert!(device.driver.sleep(), "there are empty buffers");
    while device.driver.take_empty().is_some() {}
    assert!(!device.driver.sleep() && client.must_notify());
    assert!(!device.driver.sleep());
    let checksum = Some(Checksum { start: 34, offset: 16 });
    let segments = Some(Segments { v6: false, size: 1460, header: 54 });
    let head = Head { checksum, segments, checked: false };
    for length in [SHORTEST, 1514, BUFFER - HEAD, BUFFER - HEAD + 1, LONGEST] {
        let bytes = frame(length as u8, length);
        client.send(&head, &bytes).unwrap();
        let sent = device.driver.take().unwrap();
        let expected = [1, 1, 54, 0, 0xb4, 5, 34, 0, 16, 0, 0, 0].to_vec();
        assert!(memory.read(&sent) == (expected, bytes), "{length}");
        device.driver.sent(&sent);
    }
    assert!(client.must_notify() && !client.must_notify(), "the driver sleeps, and is told once");
    assert_eq!(device.driver.take(), None);
}

#[test]
fn sides_that_both_sleep_do_not_wake_each_other() {
    let (memory, area) = (Memory::new(), Area::default());
    let mut client = Client::new(memory.buffers());
    client.restart(&area);
    let mut device = Device::new(&area);
    while device.driver.take_empty().is_some() {}
    client.send(&Head::default(), &[7; 60]).unwrap();
    assert!(!client.must_notify(), "the driver has not slept yet");
    assert!(device.driver.sleep() && device.driver.take().is_some());
    assert!(!device.driver.sleep() && !client.sleep_to_receive() && !client.sleep_to_send());
    assert!(!client.must_notify() && !device.driver.must_notify(), "there is nothing new");
    client.send(&Head::default(), &[7; 60]).unwrap();
    assert!(client.must_notify());
}

#[test]
fn frames_that_a_driver_has_sent_are_not_sent_again_after_its_end() {
    let (memory, area) = (Memory::new(), Area::default());
    let mut client = Client::new(memory.buffers());
    client.restart(&area);
    let mut device = Device::new(&area);
    let bytes: Vec<_> = (0..8).map(|number| frame(number, 60)).collect();
    for frame in &bytes {
        client.send(&Head::default(), frame).unwrap();
    }
    // The driver ends when it has sent some of them, and has taken one more.
    for _ in 0..5 {
        let sent = device.driver.take().unwrap();
        device.driver.sent(&sent);
    }
    device.driver.take().unwrap();
    client.detach();
    let area = Area::default();
    client.restart(&area);
    let mut device = Device::new(&area);
    let again: Vec<_> =
        core::iter::from_fn(|| device.driver.take()).map(|sent| memory.read(&sent).1).collect();
    assert_eq!(again, bytes[5..]);
}

#[test]
fn what_a_driver_that_has_ended_left_of_nonsense_is_no_fault_of_the_next() {
    let (memory, area) = (Memory::new(), Area::default());
    let mut client = Client::new(memory.buffers());
    client.restart(&area);
    let mut device = Device::new(&area);
    client.send(&Head::default(), &[7; 60]).unwrap();
    let sent = device.driver.take().unwrap();
    // It says twice that the frame was sent.
    device.driver.sent(&sent);
    device.driver.sent(&sent);
    client.detach();
    assert!(!client.is_gone());
    let area = Area::default();
    client.restart(&area);
    client.send(&Head::default(), &[8; 60]).unwrap();
    let mut device = Device::new(&area);
    assert_eq!(memory.read(&device.driver.take().unwrap()).1, [8; 60]);
}

#[test]
fn frames_that_are_none_are_refused() {
    let (memory, area) = (Memory::new(), Area::default());
    let mut client = Client::new(memory.buffers());
    assert_eq!(client.send(&Head::default(), &[0; 60]), Err(Refused::Full), "there is no driver yet");
    client.restart(&area);
    for length in [0, SHORTEST - 1, LONGEST + 1] {
        assert_eq!(client.send(&Head::default(), &frame(0, length)), Err(Refused::Length));
    }
    client.fail();
    assert_eq!(client.send(&Head::default(), &[0; 60]), Err(Refused::Gone));
    assert!(client.is_gone() && !client.sleep_to_send() && client.receive(&mut Vec::new()).is_none());
}

#[test]
fn a_client_without_free_buffers_is_told_when_there_are_some() {
    let (memory, area) = (Memory::new(), Area::default());
    let mut client = Client::new(memory.buffers());
    client.restart(&area);
    let mut device = Device::new(&area);
    for _ in 0..BUFFERS {
        client.send(&Head::default(), &[7; 60]).unwrap();
    }
    assert_eq!(client.send(&Head::default(), &[7; 60]), Err(Refused::Full));
    // A received frame is no room: the client would ask for ever.
    assert!(device.receive(&memory, &[1; 60]));
    assert!(client.sleep_to_receive() && !client.sleep_to_send());
    let sent = device.driver.take().unwrap();
    device.driver.sent(&sent);
    assert!(device.driver.must_notify() && client.sleep_to_send());
    client.send(&Head::default(), &[7; 60]).unwrap();
    assert_eq!(client.send(&Head::default(), &[7; 60]), Err(Refused::Full));
}

#[test]
fn a_driver_with_few_empty_buffers_is_told_of_more() {
    let (memory, area) = (Memory::new(), Area::default());
    let mut client = Client::new(memory.buffers());
    client.restart(&area);
    let mut device = Device::new(&area);
    let mut received = Vec::new();
    for count in 0..BUFFERS {
        assert!(device.receive(&memory, &[1; 60]), "{count}");
    }
    assert!(!device.receive(&memory, &[1; 60]));
    assert!(!device.driver.sleep());
    assert!(client.receive(&mut received).is_some() && client.must_notify());
    assert!(device.receive(&memory, &[2; 60]));
    assert!(device.driver.take_empty().is_none());
}

#[test]
fn a_received_head_says_what_the_device_has_checked() {
    let mut bytes = [0; HEAD];
    assert_eq!(Head::read(&bytes), (Head::default(), 0));
    (bytes[0], bytes[10]) = (2, 3);
    assert_eq!(Head::read(&bytes), (Head { checked: true, ..Head::default() }, 3));
    let checksum = Some(Checksum { start: 54, offset: 16 });
    let head =
        Head { checksum, segments: Some(Segments { v6: true, size: 1440, header: 74 }), checked: true };
    assert_eq!(Head::read(&head.bytes()), (head, 0));
}

#[test]
fn the_link_is_down_until_the_driver_says_that_it_is_up() {
    let (memory, area) = (Memory::new(), Area::default());
    let mut client = Client::new(memory.buffers());
    client.restart(&area);
    let mut driver = Driver::new(&area, pages());
    assert!(!client.link() && !driver.set_link(false));
    assert!(driver.set_link(true) && client.link() && !driver.set_link(true));
    assert!(driver.set_link(false) && !client.link());
}

#[test]
fn each_offload_has_its_bit() {
    for number in 0..5 {
        assert_eq!(Offload::from_word(1 << number).word(), 1 << number);
    }
    assert_eq!(Offload::from_word(!0x1f), Offload::default());
}

/// How many buffers a frame has.
fn buffers(frame: &[u8]) -> usize {
    (HEAD + frame.len()).div_ceil(BUFFER)
}

proptest! {
    /// Random steps of both sides and of the device, and drivers that end: each frame to send comes
    /// to a device, whole, in order, and again only after the end of a driver, if the client has
    /// not collected the answer before. Received frames come whole and in order; those that an
    /// ended driver had are lost.
    #[test]
    fn frames_pass_in_order_and_survive_drivers(
        steps in proptest::collection::vec((0u8..8, 14usize..20_000), 1..400),
    ) {
        let memory = Memory::new();
        let areas: Vec<Area> = (0..=steps.len()).map(|_| Area::default()).collect();
        let mut areas = areas.iter();
        let area = areas.next().unwrap();
        let mut client = Client::new(memory.buffers());
        client.restart(area);
        let mut device = Device::new(area);
        let (mut number, mut to_send, mut had) = (0u8, VecDeque::new(), VecDeque::new());
        // The frames that this driver has answered, without those that the client has collected for
        // certain.
        let mut answered: Vec<Vec<u8>> = Vec::new();
        let mut to_receive: VecDeque<Vec<u8>> = VecDeque::new();
        for (step, length) in steps {
            number = number.wrapping_add(1);
            match step {
                0 | 1 => {
                    let bytes = frame(number, length);
                    let waiting = had.iter().map(|(_, bytes)| bytes).chain(&to_send);
                    let used: usize = waiting.chain(&answered).map(|bytes| buffers(bytes)).sum();
                    if used + buffers(&bytes) > BUFFERS {
                        // Without room the client collects what was answered.
                        answered.clear();
                    }
                    if client.send(&Head::default(), &bytes).is_ok() {
                        to_send.push_back(bytes);
                    }
                }
                2 => if let Some(sent) = device.driver.take() {
                    let next = to_send.pop_front();
                    prop_assert_eq!(Some(memory.read(&sent).1), next.clone());
                    had.push_back((sent, next.unwrap()));
                },
                3 => if let Some((sent, bytes)) = had.pop_front() {
                    device.driver.sent(&sent);
                    answered.push(bytes);
                },
                4 | 5 => {
                    let bytes = frame(number, length);
                    if device.receive(&memory, &bytes) {
                        to_receive.push_back(bytes);
                    }
                }
                6 => {
                    let mut received = Vec::new();
                    let head = client.receive(&mut received);
                    prop_assert_eq!(head.map(|_| received), to_receive.pop_front());
                }
                _ => {
                    let area = areas.next().unwrap();
                    client.detach();
                    client.restart(area);
                    device = Device::new(area);
                    let again: VecDeque<Vec<u8>> = had.drain(..).map(|(_, bytes)| bytes).collect();
                    let all: Vec<Vec<u8>> = again.into_iter().chain(to_send.drain(..)).collect();
                    let mut found = Vec::new();
                    while let Some(sent) = device.driver.take() {
                        let bytes = memory.read(&sent).1;
                        device.driver.sent(&sent);
                        found.push(bytes);
                    }
                    prop_assert!(found.ends_with(&all), "nothing is lost");
                    // Frames whose answers the client had not collected are sent again, too.
                    let more = &found[..found.len() - all.len()];
                    prop_assert!(answered.ends_with(more), "what was collected is not sent again");
                    answered = found;
                    to_receive.clear();
                }
            }
        }
        prop_assert!(!client.is_gone());
    }
}
