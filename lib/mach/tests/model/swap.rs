//! Swap space for tests, in a table, slow in the machine's virtual time.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use mach::machine::simulated::Simulated;
use mach::machine::{Machine, PAGE_SIZE};
use mach::vm::{BoxFuture, DataRequest, DataReturn, DefaultPager, Pager, SwapPager, VmObject};
use mach::{KernError, KernResult};

/// A default pager that checks what it is told: a page is returned only where it was reserved, and
/// requested and forgotten only where it is.
pub(crate) struct Swap {
    delay: u64,
    state: Arc<Mutex<Space>>,
}

/// The swap space of a machine.
pub(crate) struct Space {
    /// How many more pages there is room for.
    room: usize,
    /// The number of writes that still succeed; the next fails.
    fail: Option<u32>,
    files: Vec<Weak<SwapFile>>,
}

/// The pages that a pager has: reserved without contents, or with them.
type Kept = BTreeMap<u64, Option<Vec<u8>>>;

pub(crate) struct SwapFile {
    pages: Mutex<Kept>,
    owner: Mutex<(Weak<VmObject<Simulated>>, u64)>,
    space: Arc<Mutex<Space>>,
    delay: u64,
}

impl Swap {
    /// Swap space for so many pages.
    pub(crate) fn new(delay: u64, room: usize) -> Arc<Self> {
        let state = Space { room, fail: None, files: Vec::new() };
        Arc::new(Self { delay, state: Arc::new(Mutex::new(state)) })
    }

    pub(crate) fn set_fail(&self, fail: Option<u32>) {
        self.state.lock().unwrap().fail = fail;
    }

    pub(crate) fn room(&self) -> usize {
        self.state.lock().unwrap().room
    }

    /// The objects that have pages here, and the numbers of these pages.
    pub(crate) fn owners(&self) -> Vec<(Arc<VmObject<Simulated>>, Vec<u64>)> {
        let files: Vec<_> = self.state.lock().unwrap().files.iter().filter_map(Weak::upgrade).collect();
        let owner = |file: &Arc<SwapFile>| {
            let (object, first) = file.owner.lock().unwrap().clone();
            let pages = file.pages.lock().unwrap();
            // A page before the object's first one is hidden, and goes by itself.
            let pages = pages.keys().filter_map(|at| Some(at.checked_sub(first)? / PAGE_SIZE)).collect();
            Some((object.upgrade()?, pages))
        };
        files.iter().filter_map(owner).collect()
    }
}

impl DefaultPager<Simulated> for Swap {
    fn has_room(&self) -> bool {
        self.room() > 0
    }

    fn create(&self, object: &Arc<VmObject<Simulated>>) -> KernResult<Arc<dyn SwapPager<Simulated>>> {
        let file = Arc::new(SwapFile {
            pages: Mutex::default(),
            owner: Mutex::new((Arc::downgrade(object), 0)),
            space: self.state.clone(),
            delay: self.delay,
        });
        self.state.lock().unwrap().files.push(Arc::downgrade(&file));
        Ok(file)
    }
}

impl Drop for SwapFile {
    fn drop(&mut self) {
        self.space.lock().unwrap().room += self.pages.get_mut().unwrap().len();
    }
}

impl SwapPager<Simulated> for SwapFile {
    fn reserve(&self, offset: u64, pages: usize) -> usize {
        let (mut kept, mut space) = (self.pages.lock().unwrap(), self.space.lock().unwrap());
        for page in 0..pages {
            let at = offset + page as u64 * PAGE_SIZE;
            space.room += usize::from(kept.remove(&at).is_some());
            if space.room == 0 {
                return page;
            }
            space.room -= 1;
            kept.insert(at, None);
        }
        pages
    }

    fn forget(&self, offset: u64) {
        self.pages.lock().unwrap().remove(&offset).expect("only a page that is there is forgotten");
        self.space.lock().unwrap().room += 1;
    }

    fn moved(&self, object: Weak<VmObject<Simulated>>, offset: u64) {
        *self.owner.lock().unwrap() = (object, offset);
    }

    fn take_over(&self, from: &dyn SwapPager<Simulated>, from_offset: u64, offset: u64) -> bool {
        let from: &dyn Any = from;
        let from: &SwapFile = from.downcast_ref().expect("it is of this default pager");
        let page = from.pages.lock().unwrap().remove(&from_offset).expect("only what is there moves");
        assert!(page.is_some(), "it has contents");
        assert!(self.pages.lock().unwrap().insert(offset, page).is_none(), "nothing is there");
        true
    }
}

impl Pager<Simulated> for SwapFile {
    fn data_request<'a>(&'a self, request: DataRequest<'a, Simulated>) -> BoxFuture<'a, KernResult<usize>> {
        Box::pin(async move {
            request.machine.sleep_until(request.machine.now() + self.delay).await;
            let pages = self.pages.lock().unwrap();
            for at in (0..request.length()).step_by(PAGE_SIZE as usize) {
                let page = pages.get(&(request.offset + at as u64)).and_then(Option::as_ref);
                request.write(at, page.expect("only what was paged out is asked for"));
            }
            Ok(request.length())
        })
    }

    fn data_return<'a>(&'a self, data: DataReturn<'a, Simulated>) -> BoxFuture<'a, KernResult> {
        Box::pin(async move {
            data.machine.sleep_until(data.machine.now() + self.delay).await;
            {
                let fail = &mut self.space.lock().unwrap().fail;
                match fail.take() {
                    Some(0) => return Err(KernError::Failure),
                    left => *fail = left.map(|left| left - 1),
                }
            }
            for at in (0..data.length()).step_by(PAGE_SIZE as usize) {
                let mut page = vec![0; PAGE_SIZE as usize];
                data.read(at, &mut page);
                let mut pages = self.pages.lock().unwrap();
                let place = pages.get_mut(&(data.offset + at as u64)).expect("it was reserved");
                assert!(place.replace(page).is_none(), "a page is returned once");
            }
            Ok(())
        })
    }
}
