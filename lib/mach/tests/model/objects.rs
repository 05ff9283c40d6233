//! Steps of the driver that concern files and the device.

use std::cell::RefCell;
use std::rc::Rc;

use mach::KernError;
use mach::machine::{PAGE_SIZE, Protection};
use mach::vm::{CopyStrategy, Inheritance, LockRequest, MapRequest, Placement, ReturnPages};

use super::{DEVICE_PAGES, FILE_PAGES, ModelPage, PAGE, PAGES, World};
use crate::contents::{Contents, assert_same, copy_of, write};

impl World {
    pub(super) fn map_file(&mut self, task: usize, page: u64, count: u64, choice: u8, first: u8) {
        let file = &self.files[choice as usize & 1];
        let first = u64::from(first) % FILE_PAGES;
        let count = count.min(FILE_PAGES - first);
        let private = choice & 2 == 0;
        let (offset, size) = (first * PAGE_SIZE, count * PAGE_SIZE);
        let request = if private {
            MapRequest::private(file.object.clone(), offset, size)
        } else {
            MapRequest::shared(file.object.clone(), offset, size)
        };
        let request = request.at(Placement::Replace(Self::address(page)));
        let result = self.executor.block_on(self.tasks[task].map.map(&request));
        if self.failed(&result) {
            return;
        }
        assert_eq!(result, Ok(Self::address(page)));
        for number in 0..count {
            let original = file.pages[(first + number) as usize].clone();
            let cell = match (private, file.strategy) {
                (true, CopyStrategy::Symmetric) => Rc::new(RefCell::new(Contents::Of(original))),
                (true, CopyStrategy::Delay) => copy_of(&original, false),
                (false, _) => original,
            };
            let inheritance = if private { Inheritance::Copy } else { Inheritance::Share };
            let new = ModelPage { cell, shared: !private, inheritance, ..ModelPage::zero() };
            self.tasks[task].pages.insert(page + number, new);
        }
    }

    pub(super) fn map_device(&mut self, task: usize, page: u64, count: u64, choice: u8, first: u8) {
        let first = u64::from(first) % DEVICE_PAGES;
        // The range is often the whole object, so that large pages fit.
        let (page, first, count) =
            if choice & 1 == 0 { (page & !3, 0, DEVICE_PAGES) } else { (page, first, count) };
        let count = count.min(DEVICE_PAGES - first).min(PAGES - page);
        let (offset, size) = (first * PAGE_SIZE, count * PAGE_SIZE);
        let private = choice & 0xe == 0;
        let request = if private { MapRequest::private } else { MapRequest::shared };
        let request = request(self.device.clone(), offset, size).at(Placement::Replace(Self::address(page)));
        let result = self.executor.block_on(self.tasks[task].map.map(&request));
        if private {
            return assert_eq!(result, Err(KernError::NotSupported));
        }
        if self.failed(&result) {
            return;
        }
        assert_eq!(result, Ok(Self::address(page)));
        for number in 0..count {
            let cell = self.device_pages[(first + number) as usize].clone();
            let inheritance = Inheritance::Share;
            let new = ModelPage { cell, shared: true, device: true, inheritance, ..ModelPage::zero() };
            self.tasks[task].pages.insert(page + number, new);
        }
    }

    pub(super) fn write_file(&mut self, choice: u8, page: u64, length: u8) {
        let file = &self.files[choice as usize & 1];
        let offset = page * 700;
        let bytes = vec![self.next_byte; length as usize * 9];
        self.next_byte = self.next_byte.wrapping_add(13);
        // The object is written a page at a time, so that it is known how far an error has come.
        for (number, &byte) in bytes.iter().enumerate().step_by(97) {
            let at = offset + number as u64;
            match self.executor.block_on(file.object.write(at, &[byte])) {
                Ok(1) => write(&file.pages[at as usize / PAGE], at as usize % PAGE, &[byte]),
                Ok(0) => assert!(at >= FILE_PAGES * PAGE_SIZE),
                Ok(more) => panic!("{more} bytes written of one"),
                Err(KernError::ResourceShortage) => {
                    assert!(self.may_run_out, "out of memory without a reason")
                }
                Err(error) => assert_eq!(error, KernError::MemoryError),
            }
        }
    }

    pub(super) fn clean(&mut self, choice: u8) {
        let file = &self.files[choice as usize & 1];
        let result = self.executor.block_on(file.object.clean(0, u64::MAX));
        if result.is_err() {
            return assert_eq!(result, Err(KernError::MemoryError));
        }
        self.compare_file(choice, 0, FILE_PAGES);
    }

    /// Makes a request of a file's pager. The pager allows everything that it has prohibited, so no
    /// program sees a difference.
    pub(super) fn lock(&mut self, choice: u8, first: u64, count: u64, extra: u8) {
        let file = &self.files[choice as usize & 1];
        let first = first % FILE_PAGES;
        let end = (first + count).min(FILE_PAGES);
        let request = LockRequest {
            returned: if choice & 2 == 0 { ReturnPages::Dirty } else { ReturnPages::All },
            flush: choice & 4 == 0,
            prohibited: (choice & 8 == 0).then_some(Protection::from_bits_truncate(extra >> 1)),
        };
        let asked = file.object.lock_request(first * PAGE_SIZE, end * PAGE_SIZE, request);
        match self.executor.block_on(asked) {
            Ok(()) => self.compare_file(choice, first, end),
            Err(KernError::ResourceShortage) => assert!(self.may_run_out, "out of memory without a reason"),
            Err(error) => assert_eq!(error, KernError::MemoryError),
        }
    }

    /// Compares the contents of a file with its pager against the model.
    fn compare_file(&self, choice: u8, first: u64, end: u64) {
        let file = &self.files[choice as usize & 1];
        let contents = file.pager.contents.lock().unwrap();
        for number in first as usize..end as usize {
            let at = number * PAGE;
            assert_same(&contents[at..at + PAGE], &file.pages[number], at as u64, usize::MAX);
        }
    }
}
