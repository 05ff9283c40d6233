//! What a page holds in the model, and a program's loads and stores on the library.

use std::cell::RefCell;
use std::rc::Rc;

use mach::KernError;
use mach::machine::simulated::Simulated;
use mach::machine::{PAGE_SIZE, Protection};
use mach::vm::VmMap;

use crate::driver::PAGE;

/// What is to be seen at a page: whoever holds the same cell sees the same.
pub(crate) type Cell = Rc<RefCell<Contents>>;

pub(crate) enum Contents {
    Bytes(Vec<u8>),
    /// A file's page, until this one is written (a private mapping of a symmetric file).
    Of(Cell),
}

pub(crate) fn cell(bytes: Vec<u8>) -> Cell {
    Rc::new(RefCell::new(Contents::Bytes(bytes)))
}

/// The bytes to be seen.
pub(crate) fn bytes_of(cell: &Cell) -> Vec<u8> {
    match &*cell.borrow() {
        Contents::Bytes(bytes) => bytes.clone(),
        Contents::Of(file) => bytes_of(file),
    }
}

/// A private copy as the library makes it.
pub(crate) fn copy_of(cell: &Cell) -> Cell {
    let contents = match &*cell.borrow() {
        Contents::Bytes(bytes) => Contents::Bytes(bytes.clone()),
        Contents::Of(file) => Contents::Of(file.clone()),
    };
    Rc::new(RefCell::new(contents))
}

pub(crate) fn write(cell: &Cell, at: usize, new: &[u8]) {
    let mut bytes = bytes_of(cell);
    bytes[at..at + new.len()].copy_from_slice(new);
    *cell.borrow_mut() = Contents::Bytes(bytes);
}

/// Compares a page and names the first byte that differs.
pub(crate) fn assert_same(found: &[u8], expected: &[u8], page: u64, task: usize) {
    let differs = (0..PAGE).find(|&at| found[at] != expected[at]);
    if let Some(at) = differs {
        panic!("page {page} of task {task} at {at}: {} instead of {}", found[at], expected[at]);
    }
}

/// What a program's store does; bytes done, and why it stopped.
pub(crate) async fn store(map: &VmMap<Simulated>, address: u64, bytes: &[u8]) -> (usize, Option<KernError>) {
    let machine = map.vm().machine();
    let mut done = 0;
    while done < bytes.len() {
        let at = address + done as u64;
        let count = (bytes.len() - done).min((PAGE_SIZE - at % PAGE_SIZE) as usize);
        let written = map.with_pmap(|pmap| machine.user_write(pmap, at, &bytes[done..done + count]));
        if written == Some(Some(())) {
            done += count;
        } else if let Err(error) = map.fault(at, Protection::WRITE).await {
            return (done, Some(error));
        }
    }
    (done, None)
}

/// What a program's load does.
pub(crate) async fn load(
    map: &VmMap<Simulated>,
    address: u64,
    bytes: &mut [u8],
) -> (usize, Option<KernError>) {
    let machine = map.vm().machine();
    let mut done = 0;
    while done < bytes.len() {
        let at = address + done as u64;
        let count = (bytes.len() - done).min((PAGE_SIZE - at % PAGE_SIZE) as usize);
        let read = map.with_pmap(|pmap| machine.user_read(pmap, at, &mut bytes[done..done + count]));
        if read == Some(Some(())) {
            done += count;
        } else if let Err(error) = map.fault(at, Protection::READ).await {
            return (done, Some(error));
        }
    }
    (done, None)
}
