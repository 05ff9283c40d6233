//! The contents of pages in the model, and a program's loads and stores on the library.

use std::cell::RefCell;
use std::rc::Rc;

use mach::KernError;
use mach::machine::simulated::Simulated;
use mach::machine::{PAGE_SIZE, Protection};
use mach::vm::VmMap;

use crate::driver::PAGE;

/// The contents of a page. All pages that refer to one cell have the same contents.
pub(crate) type Cell = Rc<RefCell<Contents>>;

pub(crate) enum Contents {
    Bytes(Vec<u8>),
    /// The page shows this page of a file until it is written (a private mapping of a symmetric
    /// file).
    Of(Cell),
    /// The contents are not defined, and not compared: see [`copy_of`].
    Any,
}

pub(crate) fn cell(bytes: Vec<u8>) -> Cell {
    Rc::new(RefCell::new(Contents::Bytes(bytes)))
}

/// The bytes to be seen, if they are defined.
pub(crate) fn bytes_of(cell: &Cell) -> Option<Vec<u8>> {
    match &*cell.borrow() {
        Contents::Bytes(bytes) => Some(bytes.clone()),
        Contents::Of(file) => bytes_of(file),
        Contents::Any => None,
    }
}

/// A private copy, as the library makes it, of a page. If the page is `shared`, others may write to
/// it.
///
/// A copy of a shared page shows writes to the file below until a program writes to the shared
/// page. The model does not know when that happens.
pub(crate) fn copy_of(cell: &Cell, shared: bool) -> Cell {
    let contents = match &*cell.borrow() {
        Contents::Bytes(bytes) => Contents::Bytes(bytes.clone()),
        Contents::Of(file) if !shared => Contents::Of(file.clone()),
        Contents::Of(_) | Contents::Any => Contents::Any,
    };
    Rc::new(RefCell::new(contents))
}

pub(crate) fn write(cell: &Cell, at: usize, new: &[u8]) {
    let mut contents = cell.borrow_mut();
    if let Contents::Of(file) = &*contents {
        let bytes = bytes_of(file);
        *contents = bytes.map_or(Contents::Any, Contents::Bytes);
    }
    if let Contents::Bytes(bytes) = &mut *contents {
        bytes[at..at + new.len()].copy_from_slice(new);
    }
}

/// Splits `bytes`, which begin at `address`, at page boundaries. Yields each part with its address.
pub(crate) fn in_pages(address: u64, mut bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let mut at = address;
    core::iter::from_fn(move || {
        let count = bytes.len().min(PAGE - at as usize % PAGE);
        let (now, later) = bytes.split_at(count);
        bytes = later;
        at += count as u64;
        (count > 0).then_some((at - count as u64, now))
    })
}

/// Compares the bytes that were found in a page from address `at` on with the model. Names the
/// first byte that differs.
pub(crate) fn assert_same(found: &[u8], cell: &Cell, at: u64, task: usize) {
    match &*cell.borrow() {
        Contents::Any => {}
        Contents::Of(file) => assert_same(found, file, at, task),
        Contents::Bytes(bytes) => {
            let expected = &bytes[at as usize % PAGE..][..found.len()];
            if found != expected {
                let differs = (0..found.len()).find(|&number| found[number] != expected[number]).unwrap_or(0);
                let (found, expected) = (found[differs], expected[differs]);
                panic!("task {task} at {:#x}: {found} instead of {expected}", at + differs as u64);
            }
        }
    }
}

/// Does a program's store. Returns how many bytes were stored, and why it stopped.
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

/// Does a program's load. Returns how many bytes were loaded, and why it stopped.
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
