use super::device::Model;
use super::model::Shared;
use crate::memory::{Addresses, Buffer, Layout};
use crate::queue::Piece;
use crate::setup::{
    ACKNOWLEDGE, DRIVER, DRIVER_OK, FAILED, FEATURES_OK, NEEDS_RESET, QUEUE_AVAILABLE, QUEUE_DESCRIPTORS,
    QUEUE_ENABLE, QUEUE_SIZE, QUEUE_USED, QUEUE_VECTOR, Setup,
};
use crate::{Error, features};

const OFFERED: u64 = features::VERSION_1 | features::EVENT_INDEX | features::INDIRECT | 1;

#[test]
fn a_device_is_set_up_in_the_order_that_the_specification_wants() {
    let mut model = Model::new(OFFERED);
    let shared = Shared::new(16, 0);
    let mut setup = Setup::begin(&mut model, features::EVENT_INDEX | 2).expect("a modern device");
    assert_eq!(setup.features(), features::VERSION_1 | features::EVENT_INDEX);
    assert_eq!((setup.queues(), setup.queue_size(1), setup.queue_size(2)), (2, 64, 0));
    setup.set_configuration_vector(0).expect("it has the message");
    let notify = setup.set_queue(1, &shared.memory(), Some(3)).expect("it has the queue");
    let mut device = setup.start();
    device.notify(notify);
    assert!(!device.needs_reset());
    assert_eq!(model.accepted, features::VERSION_1 | features::EVENT_INDEX);
    let begun = ACKNOWLEDGE | DRIVER;
    let all = [0, ACKNOWLEDGE, begun, begun | FEATURES_OK, begun | FEATURES_OK | DRIVER_OK];
    assert_eq!(model.history, all);
    assert_eq!(model.notified, [(4, 1)]);
    let of = |register| model.queues[&(1, register)];
    assert_eq!((of(QUEUE_SIZE), of(QUEUE_VECTOR), of(QUEUE_ENABLE)), (16, 3, 1));
    let long = |register| u64::from(of(register)) | u64::from(of(register + 4)) << 32;
    let Addresses { descriptors, available, used, .. } = shared.memory().addresses;
    assert_eq!([QUEUE_DESCRIPTORS, QUEUE_AVAILABLE, QUEUE_USED].map(long), [descriptors, available, used]);
}

#[test]
fn addresses_of_the_platform_are_accepted_if_they_are_offered() {
    let mut model = Model::new(OFFERED | features::ACCESS_PLATFORM);
    let setup = Setup::begin(&mut model, 0).expect("a modern device");
    assert_eq!(setup.features(), features::VERSION_1 | features::ACCESS_PLATFORM);
}

#[test]
fn a_device_of_an_earlier_version_and_one_that_refuses_have_failed() {
    for (offered, refused) in [(1, 0), (OFFERED, features::VERSION_1)] {
        let mut model = Model { refused, ..Model::new(offered) };
        assert_eq!(Setup::begin(&mut model, 1).err(), Some(Error::Features));
        assert_ne!(model.status & FAILED, 0);
    }
}

#[test]
fn a_device_that_does_not_reset_is_given_up() {
    let mut model = Model { ignores_reset: true, ..Model::new(OFFERED) };
    assert_eq!(Setup::begin(&mut model, 0).err(), Some(Error::NoReset));
}

#[test]
fn queues_and_messages_that_a_device_does_not_have_are_refused() {
    let mut model = Model::new(OFFERED);
    let mut setup = Setup::begin(&mut model, 0).unwrap();
    assert_eq!(setup.set_queue(2, &Shared::new(16, 0).memory(), None), Err(Error::NoQueue));
    assert_eq!(setup.set_queue(0, &Shared::new(128, 0).memory(), None), Err(Error::NoQueue));
    assert_eq!(setup.set_queue(0, &Shared::new(16, 0).memory(), Some(4)), Err(Error::NoVector));
    assert_eq!(setup.set_configuration_vector(9), Err(Error::NoVector));
    assert!(setup.set_queue(0, &Shared::new(16, 0).memory(), None).is_ok());
}

#[test]
fn a_register_for_notification_that_is_outside_is_not_used() {
    for (offset, is_right) in [(3, true), (4, false), (0xffff, false)] {
        let mut model = Model { notify_offset: offset, ..Model::new(OFFERED) };
        let mut setup = Setup::begin(&mut model, 0).unwrap();
        let result = setup.set_queue(0, &Shared::new(16, 0).memory(), None);
        assert_eq!(result.is_ok(), is_right, "{offset}");
        assert!(is_right || result == Err(Error::Broken));
    }
}

#[test]
fn the_configuration_is_read_as_it_was_at_one_moment() {
    let mut model = Model::new(OFFERED);
    let mut device = Setup::begin(&mut model, 0).unwrap().start();
    let mut bytes = [0; 3];
    assert_eq!((device.configuration(1, &mut bytes), bytes), (Ok(()), [2, 3, 4]));
    assert_eq!(device.configuration(2, &mut bytes), Err(Error::Configuration));
    assert_eq!(device.configuration(u32::MAX, &mut bytes), Err(Error::Configuration));
    model.is_restless = true;
    let mut device = Setup::begin(&mut model, 0).unwrap().start();
    assert_eq!(device.configuration(1, &mut bytes), Err(Error::Configuration));
}

#[test]
fn a_device_that_has_failed_says_so_and_can_be_reset() {
    let mut model = Model::new(OFFERED);
    Setup::begin(&mut model, 0).unwrap();
    model.status |= NEEDS_RESET;
    let mut device = Setup::begin(&mut model, 0).unwrap().start();
    assert!(!device.needs_reset(), "it was reset");
    assert!(device.reset().is_ok());
    assert_eq!(model.status, 0);
}

#[test]
fn the_parts_of_a_queue_do_not_overlap_and_are_aligned() {
    for (size, entries) in [(1, 0), (2, 3), (16, 0), (256, 4), (1 << 15, 1)] {
        let layout = Layout::new(size, entries).unwrap();
        let at = Addresses::of(layout, 0);
        let size = u64::from(size);
        assert!(at.available >= 16 * size && at.used >= at.available + 6 + 2 * size);
        assert!(at.tables >= at.used + 6 + 8 * size);
        assert_eq!((at.available % 2, at.used % 4, at.tables % 16), (0, 0, 0));
        assert_eq!(layout.bytes() as u64, at.tables + 16 * size * u64::from(entries));
    }
    assert!([0, 3, 100].iter().all(|&size| Layout::new(size, 0).is_none()));
}

#[test]
fn a_buffer_holds_its_bytes_and_no_more() {
    let memory: &'static mut [u8] = Vec::leak(vec![0; 8]);
    #[allow(unsafe_code, reason = "the memory of the test is never freed")]
    // SAFETY: the memory is used by the buffer only, and never freed.
    let buffer = unsafe { Buffer::at(memory.as_mut_ptr() as u64, 0x5000, 8) };
    assert_eq!((buffer.write(1..), buffer.write(9..11), buffer.length()), (8, 2, 8));
    let read = |count| {
        let mut bytes = Vec::new();
        buffer.read_each(count, |byte| bytes.push(byte));
        bytes
    };
    assert_eq!(read(3), [9, 10, 3]);
    assert_eq!(read(100), [9, 10, 3, 4, 5, 6, 7, 8]);
    assert_eq!(buffer.piece(100), Piece { address: 0x5000, length: 8 });
    assert_eq!(buffer.piece(2).length, 2);
}
