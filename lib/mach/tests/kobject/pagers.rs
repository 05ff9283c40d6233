//! Memory objects of programs: one program maps the memory of a port, and another has its pages.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use mach::KernError;
use mach::ipc::typed::MsgOptions;
use mach::ipc::{Disposition, Name, PortType};
use mach::machine::PAGE_SIZE;
use message::Memory;

use crate::call;
use crate::support::{BUFFER, Program, System};

const INIT: u32 = 2200;
const TERMINATE: u32 = 2201;
const DATA_REQUEST: u32 = 2203;
const DATA_UNLOCK: u32 = 2204;
const LOCK_COMPLETED: u32 = 2206;
const SUPPLY_COMPLETED: u32 = 2207;
const DATA_RETURN: u32 = 2208;
const CHANGE_COMPLETED: u32 = 2209;
const READ: u64 = 1;
const WRITE: u64 = 2;
/// The `lock_value` that changes nothing.
const NO_CHANGE: u32 = 8;
/// Where the pager makes the pages that it supplies.
const PAGES: u64 = BUFFER + 4 * PAGE_SIZE;

/// Polls a future once.
fn poll<T>(future: &mut Pin<Box<dyn Future<Output = T> + '_>>) -> Option<T> {
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// A program that has the pages of a memory object, and one that maps the object.
struct Pair {
    pager: Program,
    client: Program,
    port: Name,
    control: u64,
    /// The address of the first of four pages in the client.
    address: u64,
}

impl Pair {
    /// Maps the object, whose pager is not ready yet.
    async fn new(system: &System, copy: u32) -> Self {
        let (pager, client) = (system.program().await, system.program().await);
        let port = pager.port();
        let right = pager.space().extract_right(port, Disposition::MakeSend).unwrap();
        let object = client.name(right);
        let mut pair = Self { pager, client, port, control: 0, address: 0 };
        pair.address = pair.map(object, copy).await;
        let (id, words) = pair.message().await;
        assert_eq!((id, words[5]), (INIT, PAGE_SIZE));
        pair.control = words[1];
        pair
    }

    /// The object, whose pager is ready.
    async fn ready(system: &System, copy: u32) -> Self {
        let pair = Self::new(system, copy).await;
        call!(pair.pager, mach, pair.control, memory_object_ready(1, 2)).unwrap();
        let attributes = call!(pair.pager, mach, pair.control, memory_object_get_attributes());
        assert_eq!(attributes.unwrap(), (1, 1, 2));
        pair
    }

    async fn map(&self, object: u64, copy: u32) -> u64 {
        let (own, size) = (self.client.own(), 4 * PAGE_SIZE);
        call!(self.client, mach, own, vm_map(0, size, 0, 1, object, 0, copy, 7, 7, 1)).unwrap()
    }

    /// Receives a message to the pager: its id and the words of its body.
    async fn message(&self) -> (u32, Vec<u64>) {
        self.message_at(self.port).await
    }

    async fn message_at(&self, port: Name) -> (u32, Vec<u64>) {
        let mut bytes = [0; 256];
        let options = MsgOptions::RECEIVE | MsgOptions::RECEIVE_TIMEOUT;
        self.pager.message(options, &mut bytes, 0, port).await.unwrap();
        let words = bytes[32..].as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        (u32::from_le_bytes(bytes[28..32].try_into().unwrap()), words.collect())
    }

    /// The next message must ask for a page of the object.
    async fn request(&self) -> (u64, u64) {
        let (id, words) = self.message().await;
        assert_eq!((id, words[1], words[5]), (DATA_REQUEST, self.control, PAGE_SIZE));
        (words[3], words[7])
    }

    /// Supplies pages full of bytes of one value, with a lock.
    async fn supply(&self, offset: u64, pages: u64, value: u8, lock: u32, reply_to: Name) {
        let bytes = vec![value; (pages * PAGE_SIZE) as usize];
        self.pager.task.map().copyout(PAGES, &bytes).await.unwrap();
        let data = Memory { address: PAGES, count: bytes.len() as u32, deallocate: false };
        let to = u64::from(reply_to.0);
        call!(self.pager, mach, self.control, memory_object_data_supply(offset, data, lock, 0, to)).unwrap();
    }

    /// Begins to read the first byte of a page.
    fn read(&self, page: u64) -> Pin<Box<dyn Future<Output = Result<u8, KernError>> + '_>> {
        Box::pin(async move {
            let mut byte = [0];
            let address = self.address + page * PAGE_SIZE;
            let read = self.client.task.map().copyin(address, &mut byte).await;
            read.map(|()| byte[0]).map_err(|fault| fault.error)
        })
    }

    /// Begins to write the first byte of a page.
    fn write(&self, page: u64, byte: u8) -> Pin<Box<dyn Future<Output = Result<(), KernError>> + '_>> {
        Box::pin(async move {
            let address = self.address + page * PAGE_SIZE;
            let written = self.client.task.map().copyout(address, &[byte]).await;
            written.map_err(|fault| fault.error)
        })
    }
}

#[test]
fn a_page_is_what_the_pager_supplies() {
    let system = System::new();
    system.run(async {
        let pair = Pair::new(&system, 0).await;
        let mut read = pair.read(1);
        assert_eq!(poll(&mut read), None, "the pager is not ready");
        call!(pair.pager, mach, pair.control, memory_object_ready(0, 0)).unwrap();
        assert_eq!(poll(&mut read), None);
        assert_eq!(pair.request().await, (PAGE_SIZE, READ));
        // The other pages were not asked for, and are dropped.
        let done = pair.pager.port();
        pair.supply(0, 3, 7, 0, done).await;
        assert_eq!(poll(&mut read), Some(Ok(7)));
        let (id, words) = pair.message_at(done).await;
        assert_eq!((id, words[3], words[5], words[7]), (SUPPLY_COMPLETED, 0, 3 * PAGE_SIZE, 0));
        drop(read);
        let mut read = pair.read(0);
        assert_eq!(poll(&mut read), None);
        assert_eq!(pair.request().await.0, 0);
    });
}

#[test]
fn a_page_without_data_is_zeros_and_errors_reach_the_user() {
    let system = System::new();
    system.run(async {
        let pair = Pair::ready(&system, 0).await;
        let mut read = pair.read(0);
        assert_eq!(poll(&mut read), None);
        pair.request().await;
        call!(pair.pager, mach, pair.control, memory_object_data_unavailable(0, PAGE_SIZE)).unwrap();
        assert_eq!(poll(&mut read), Some(Ok(0)));
        let mut read = pair.read(1);
        assert_eq!(poll(&mut read), None);
        pair.request().await;
        call!(pair.pager, mach, pair.control, memory_object_data_error(PAGE_SIZE, PAGE_SIZE, 5)).unwrap();
        assert_eq!(poll(&mut read), Some(Err(KernError::MemoryError)));
        let mut read = pair.read(2);
        assert_eq!(poll(&mut read), None);
        call!(pair.pager, mach, pair.control, memory_object_destroy(5)).unwrap();
        assert_eq!(poll(&mut read), Some(Err(KernError::MemoryError)));
    });
}

#[test]
fn a_pager_that_dies_or_is_silent_gives_errors() {
    for dies in [true, false] {
        let system = System::new();
        system.run(async {
            let pair = Pair::ready(&system, 0).await;
            let mut read = pair.read(0);
            assert_eq!(poll(&mut read), None);
            if dies {
                pair.pager.space().destroy(pair.port).unwrap();
            }
            let before = mach::machine::Machine::now(&system.machine);
            assert_eq!(read.await, Err(KernError::MemoryError));
            assert!(dies == (mach::machine::Machine::now(&system.machine) - before < 1_000_000));
        });
    }
}

#[test]
fn changed_pages_return_to_the_pager() {
    let system = System::new();
    system.run(async {
        let pair = Pair::ready(&system, 0).await;
        let mut write = pair.write(0, 9);
        assert_eq!(poll(&mut write), None);
        assert_eq!(pair.request().await, (0, WRITE));
        pair.supply(0, 1, 7, 0, Name::NULL).await;
        assert_eq!(poll(&mut write), Some(Ok(())));
        let done = pair.pager.port();
        let to = u64::from(done.0);
        call!(pair.pager, mach, pair.control, memory_object_lock_request(0, PAGE_SIZE, 1, 1, NO_CHANGE, to))
            .unwrap();
        let (id, words) = pair.message().await;
        assert_eq!((id, words[3], words[4] >> 32), (DATA_RETURN, 0, PAGE_SIZE));
        let bytes = pair.pager.read(words[5], 4).await;
        assert_eq!(bytes, [9, 7, 7, 7]);
        let (id, words) = pair.message_at(done).await;
        assert_eq!((id, words[3], words[5]), (LOCK_COMPLETED, 0, PAGE_SIZE));
        // The page has left memory, so it is asked for again.
        let mut read = pair.read(0);
        assert_eq!(poll(&mut read), None);
        assert_eq!(pair.request().await, (0, READ));
        // A write to a page with a lock asks the pager.
        pair.supply(0, 1, 8, WRITE as u32, Name::NULL).await;
        assert_eq!(poll(&mut read), Some(Ok(8)));
        let mut write = pair.write(0, 1);
        assert_eq!(poll(&mut write), None);
        let (id, words) = pair.message().await;
        assert_eq!((id, words[3], words[7] & WRITE), (DATA_UNLOCK, 0, WRITE));
        call!(pair.pager, mach, pair.control, memory_object_lock_request(0, PAGE_SIZE, 0, 0, 0, 0)).unwrap();
        assert_eq!(poll(&mut write), Some(Ok(())));
        call!(pair.pager, mach, pair.control, memory_object_change_attributes(0, 0, to)).unwrap();
        assert_eq!(pair.message_at(done).await.0, CHANGE_COMPLETED);
    });
}

#[test]
fn tasks_that_map_one_object_share_it_and_a_copy_is_private() {
    let system = System::new();
    system.run(async {
        let pair = Pair::ready(&system, 0).await;
        let right = pair.pager.space().extract_right(pair.port, Disposition::MakeSend).unwrap();
        let object = pair.client.name(right);
        let copy = pair.map(object, 1).await;
        let mut write = pair.write(0, 9);
        assert_eq!(poll(&mut write), None);
        pair.request().await;
        pair.supply(0, 1, 7, 0, Name::NULL).await;
        assert_eq!(poll(&mut write), Some(Ok(())));
        drop(write);
        let shared = pair.map(object, 0).await;
        assert_eq!(pair.client.read(shared, 1).await, [9]);
        assert_eq!(pair.client.read(copy, 1).await, [7], "what the object was when it was copied");
    });
}

#[test]
fn the_end_of_the_last_mapping_ends_the_object() {
    let system = System::new();
    system.run(async {
        let pair = Pair::ready(&system, 0).await;
        let mut write = pair.write(1, 9);
        assert_eq!(poll(&mut write), None);
        pair.request().await;
        pair.supply(PAGE_SIZE, 1, 7, 0, Name::NULL).await;
        assert_eq!(poll(&mut write), Some(Ok(())));
        drop(write);
        pair.client.task.map().deallocate(pair.address, 4 * PAGE_SIZE).await.unwrap();
        // What was changed returns first.
        let (id, words) = pair.message().await;
        assert_eq!((id, words[3]), (DATA_RETURN, PAGE_SIZE));
        assert_eq!(pair.pager.read(words[5], 2).await, [9, 7]);
        let (id, words) = pair.message().await;
        assert_eq!(id, TERMINATE);
        for name in [words[1], words[3]] {
            let kind = pair.pager.space().port_type(Name(name as u32)).unwrap();
            assert!(kind.contains(PortType::RECEIVE), "{kind:?}");
        }
        assert_eq!(words[1], pair.control);
    });
}

#[test]
fn what_is_no_pager_cannot_be_mapped_and_only_controls_accept_answers() {
    let system = System::new();
    system.run(async {
        let pair = Pair::ready(&system, 0).await;
        let own = pair.client.own();
        let mapped = call!(pair.client, mach, own, vm_map(0, PAGE_SIZE, 0, 1, own, 0, 0, 7, 7, 1));
        assert!(mapped.is_err());
        // A request with bytes that are no whole page is refused, and nothing is supplied.
        let mut read = pair.read(0);
        assert_eq!(poll(&mut read), None);
        pair.request().await;
        let data = Memory { address: PAGES, count: 100, deallocate: false };
        let _ = call!(pair.pager, mach, pair.control, memory_object_data_supply(0, data, 0, 0, 0));
        assert_eq!(poll(&mut read), None);
    });
}
