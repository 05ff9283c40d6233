//! Tests of memory nodes: the boot info describes them, and kernel objects are allocated in the
//! right node. The command line says which machine it is. On a machine without nodes the kernel
//! cannot be asked.

use crate::framework::arena;
use crate::framework::fixture::{Space, image_fault_answer, new_id, receive_as_pager, spawn};
use crate::framework::tests;
use core::slice;
use l4::console::kernel_statistic;
use l4::ipc::{self, Message};
use l4::thread::{self, ThreadControl};
use l4::{kip, utcb};
use x2::boot_info::{BootInfo, Nodes, Record};
use x2::control::UNCHANGED;
use x2::kdebug::statistic::{NODE_OF_SPACE, NODE_OF_TABLE, NODE_OF_THREAD, of_node};
use x2::protocol::page_fault_tag;
use x2::{MapItem, Rights, ThreadId};

tests! {
    NOD0001 [EXT 10.1] "the boot info tells the memory of each node, the node of each processor, and the distances" told;
    NOD0002 [EXT 10.2] "a thread and a space come from the node where their creator lives" creator;
    NOD0003 [EXT 10.2] "page tables come from the node where a thread of the space was sent last" tables_follow;
    NOD0004 [EXT 10.2] "when a node's kernel memory is used up the nearest node's is used, and then the others'" used_up;
}

const PAGE: u64 = 4096;
/// Addresses that no program has, with page tables of their own.
const FAR: u64 = 0x10_0000_0000;
const FAR_LOG2: u32 = 30;

/// The description of nodes in the boot info. The runner has its first page, which is all of it in
/// these suites.
fn nodes() -> Nodes<'static> {
    let address = kip().word(x2::kip::BOOT_INFO);
    let size = (PAGE - address % PAGE) as usize;
    // SAFETY: boot info lies outside this program, and no program changes it.
    let bytes = unsafe { slice::from_raw_parts(address as *const u8, size) };
    let info = BootInfo::new(bytes).expect("there is boot info, of one page");
    let found = info.records().find_map(|record| match record {
        Record::Nodes(nodes) => Some(nodes),
        _ => None,
    });
    found.expect("the machine has nodes")
}

fn processors() -> u64 {
    u64::from(kip().processor_info().processors)
}

/// The node of a processor.
fn node_of(processor: u64) -> u64 {
    nodes().of_processor(processor as usize).expect("every processor has one").into()
}

/// Moves `thread` to `processor`.
fn place(thread: ThreadId, processor: u64) {
    thread::schedule(thread, UNCHANGED, processor, UNCHANGED, UNCHANGED).expect("the processor exists");
}

/// The node in which an object of the kernel for a thread lies.
fn node(which: u64, thread: ThreadId, address: u64) -> u64 {
    kernel_statistic(of_node(which, thread.number(), address)).expect("kdb=test is needed")
}

fn told() {
    let nodes = nodes();
    assert!(nodes.count() > 1);
    for from in 0..nodes.count() {
        for to in 0..nodes.count() {
            let distance = nodes.distance(from, to).expect("each to each");
            assert_eq!(from == to, distance == 10, "from {from} to {to}: {distance}");
            // The suites give their machines these distances between nodes.
            assert!(
                from == to || distance == 20 + from.abs_diff(to) as u8,
                "from {from} to {to}: {distance}"
            );
        }
    }
    for processor in 0..processors() {
        assert_eq!(node_of(processor), processor.min(nodes.count() as u64 - 1));
    }
    assert_eq!(nodes.of_processor(processors() as usize), None);
    for (index, range) in nodes.memory().enumerate() {
        assert!(range.size > 0 && range.node < nodes.count() as u64);
        let apart = |other: x2::boot_info::NodeMemory| {
            other.start + other.size <= range.start || range.start + range.size <= other.start
        };
        assert!(nodes.memory().take(index).all(apart));
    }
    let has_memory = |node| nodes.memory().any(|range| range.node == node);
    assert!((0..nodes.count() as u64).all(has_memory));
}

fn creator() {
    let me = utcb::my_global_id();
    for processor in (0..processors()).chain((0..processors()).rev()) {
        place(me, processor);
        let home = node_of(processor);
        for _ in 0..10 {
            let of_mine = spawn(|| ());
            let space = Space::new();
            let of_its_own = space.spawn(|| ());
            for thread in [of_mine, of_its_own] {
                assert_eq!(node(NODE_OF_THREAD, thread, 0), home, "a thread made on processor {processor}");
            }
            assert_eq!(node(NODE_OF_SPACE, of_its_own, 0), home, "a space made on processor {processor}");
            assert_eq!(node(NODE_OF_TABLE, of_its_own, space.utcb_area), home, "the table of its UTCBs");
        }
    }
    place(me, 0);
}

fn tables_follow() {
    let me = utcb::my_global_id();
    let page = arena::page();
    for home in 0..processors() {
        place(me, home);
        let last = processors();
        let thread = Space::new().spawn_paged_by(me, move || {
            for place in 0..=last {
                arena::read_at(FAR + (place << FAR_LOG2));
            }
        });
        for next in 0..processors() {
            let address = FAR + (next << FAR_LOG2);
            let mut fault = receive_as_pager(thread).expect("it goes on");
            while let Some(answer) = image_fault_answer(fault) {
                ipc::reply(thread, answer).expect("it waits");
                fault = receive_as_pager(thread).expect("it goes on");
            }
            assert_eq!((fault.tag.without_flags(), fault.word(0)), (page_fault_tag(Rights::READ), address));
            place(thread, next);
            let answer = Message::new(0).map_item(MapItem::map(page.fpage(Rights::READ), address));
            ipc::reply(thread, answer).expect("it waits");
            assert_eq!(
                node(NODE_OF_TABLE, thread, address),
                node_of(next),
                "sent to processor {next} by {home}"
            );
        }
    }
    place(me, 0);
}

fn used_up() {
    let nodes = nodes();
    let me = utcb::my_global_id();
    let last = processors() - 1;
    place(me, last);
    let home = node_of(last);
    let distance = |node: u64| match nodes.distance(home as usize, node as usize) {
        Some(10) => 0,
        distance => distance.expect("it exists"),
    };
    let mut farthest = 0;
    for made in 0.. {
        assert!(made < 900, "so many spaces fit into one node");
        let first = new_id();
        let arguments =
            ThreadControl { space: first, scheduler: kip().root(), pager: ThreadId::NIL, utcb: None };
        thread::control(first, arguments).expect("there is memory");
        let now = distance(node(NODE_OF_TABLE, first, FAR));
        assert!(now >= farthest, "a nearer node has memory again");
        assert!(made > 0 || now == 0, "at first there is some");
        farthest = now;
        if farthest > 21 || farthest > 0 && nodes.count() == 2 {
            break;
        }
    }
    place(me, 0);
}
