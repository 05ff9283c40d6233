//! Two programs: one maps the memory of a port, and the other has its pages.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use mach::KernError;
use mach::ipc::typed::MsgOptions;
use mach::ipc::{Disposition, Name};
use mach::machine::PAGE_SIZE;
use message::Memory;

use crate::call;
use crate::support::{BUFFER, Program, System};

pub(crate) const INIT: u32 = 2200;
pub(crate) const TERMINATE: u32 = 2201;
pub(crate) const DATA_REQUEST: u32 = 2203;
pub(crate) const DATA_UNLOCK: u32 = 2204;
pub(crate) const LOCK_COMPLETED: u32 = 2206;
pub(crate) const SUPPLY_COMPLETED: u32 = 2207;
pub(crate) const DATA_RETURN: u32 = 2208;
pub(crate) const CHANGE_COMPLETED: u32 = 2209;
pub(crate) const READ: u64 = 1;
pub(crate) const WRITE: u64 = 2;
/// The `lock_value` that changes nothing.
pub(crate) const NO_CHANGE: u32 = 8;
/// Where the pager makes the pages that it supplies.
pub(crate) const PAGES: u64 = BUFFER + 4 * PAGE_SIZE;

/// Polls a future once.
pub(crate) fn poll<T>(future: &mut Pin<Box<dyn Future<Output = T> + '_>>) -> Option<T> {
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// A program that has the pages of a memory object, and one that maps the object.
pub(crate) struct Pair {
    pub(crate) pager: Program,
    pub(crate) client: Program,
    pub(crate) port: Name,
    pub(crate) control: u64,
    /// The address of the first of four pages in the client.
    pub(crate) address: u64,
}

impl Pair {
    /// Maps the object, whose pager is not ready yet.
    pub(crate) async fn new(system: &System, copy: u32) -> Self {
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
    pub(crate) async fn ready(system: &System, copy: u32) -> Self {
        let pair = Self::new(system, copy).await;
        call!(pair.pager, mach, pair.control, memory_object_ready(0, 2)).unwrap();
        let attributes = call!(pair.pager, mach, pair.control, memory_object_get_attributes());
        assert_eq!(attributes.unwrap(), (1, 0, 2));
        pair
    }

    pub(crate) async fn map(&self, object: u64, copy: u32) -> u64 {
        let (own, size) = (self.client.own(), 4 * PAGE_SIZE);
        call!(self.client, mach, own, vm_map(0, size, 0, 1, object, 0, copy, 7, 7, 1)).unwrap()
    }

    /// Receives a message to the pager: its id and the words of its body.
    pub(crate) async fn message(&self) -> (u32, Vec<u64>) {
        self.message_at(self.port).await
    }

    pub(crate) async fn message_at(&self, port: Name) -> (u32, Vec<u64>) {
        Self::message_of(&self.pager, port).await
    }

    /// Receives a message to a pager: its id and the words of its body.
    pub(crate) async fn message_of(pager: &Program, port: Name) -> (u32, Vec<u64>) {
        let mut bytes = [0; 256];
        let options = MsgOptions::RECEIVE | MsgOptions::RECEIVE_TIMEOUT;
        pager.message(options, &mut bytes, 0, port).await.unwrap();
        let words = bytes[32..].as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        (u32::from_le_bytes(bytes[28..32].try_into().unwrap()), words.collect())
    }

    /// The next message must ask for a page of the object. Returns its offset and the access.
    pub(crate) async fn request(&self) -> (u64, u64) {
        let (id, words) = self.message().await;
        assert_eq!((id, words[1], words[5]), (DATA_REQUEST, self.control, PAGE_SIZE));
        (words[3], words[7])
    }

    /// The next message must ask for pages of the object. Returns their offset and length in pages.
    pub(crate) async fn request_of_pages(&self) -> (u64, u64) {
        let (id, words) = self.message().await;
        assert_eq!((id, words[1]), (DATA_REQUEST, self.control));
        (words[3] / PAGE_SIZE, words[5] / PAGE_SIZE)
    }

    /// Whether a message to the pager waits.
    pub(crate) fn has_message(&self) -> bool {
        self.pager.space().receive_status(self.port).unwrap().messages > 0
    }

    /// Supplies pages full of bytes of one value, with a lock.
    pub(crate) async fn supply(&self, offset: u64, pages: u64, value: u8, lock: u32, reply_to: Name) {
        self.supply_precious(offset, pages, value, (lock, 0), reply_to).await;
    }

    pub(crate) async fn supply_precious(
        &self,
        offset: u64,
        pages: u64,
        value: u8,
        (lock, precious): (u32, u32),
        reply_to: Name,
    ) {
        let bytes = vec![value; (pages * PAGE_SIZE) as usize];
        self.pager.task.map().copyout(PAGES, &bytes).await.unwrap();
        let data = Memory { address: PAGES, count: bytes.len() as u32, deallocate: false };
        let to = u64::from(reply_to.0);
        call!(self.pager, mach, self.control, memory_object_data_supply(offset, data, lock, precious, to))
            .unwrap();
    }

    /// Begins to read the first byte of a page.
    pub(crate) fn read(&self, page: u64) -> Pin<Box<dyn Future<Output = Result<u8, KernError>> + '_>> {
        Box::pin(async move {
            let mut byte = [0];
            let address = self.address + page * PAGE_SIZE;
            let read = self.client.task.map().copyin(address, &mut byte).await;
            read.map(|()| byte[0]).map_err(|fault| fault.error)
        })
    }

    /// Begins to write the first byte of a page.
    pub(crate) fn write(
        &self,
        page: u64,
        byte: u8,
    ) -> Pin<Box<dyn Future<Output = Result<(), KernError>> + '_>> {
        Box::pin(async move {
            let address = self.address + page * PAGE_SIZE;
            let written = self.client.task.map().copyout(address, &[byte]).await;
            written.map_err(|fault| fault.error)
        })
    }
}
