//! sigma0: the pager of the root task and the first owner of all physical memory. When sigma0
//! touches a page or maps it to another thread, the kernel first maps the page to sigma0 at its
//! physical address.
#![cfg_attr(target_os = "none", no_std, no_main)]

mod physical;

use l4::ipc::{self, Message, Received};
use l4::{kip, syscall, utcb};
use sigma0::memory_map::{self, Image, Memory};
use sigma0::pool::State;
use sigma0::server::{Answer, Clients, Ports, Server};
use x2::kip as layout;
use x2::{Fpage, MapItem, ThreadId};

l4::program!(run);

fn run() -> ! {
    let mut server = server();
    let mut received = ipc::wait();
    loop {
        // After an error there is no request to answer: the receiver of the last answer did not
        // exist or did not wait.
        let answer = received.ok().and_then(|request| Some((request.from, answer(&mut server, request)?)));
        received = match answer {
            Some((client, message)) => ipc::reply_wait(client, message),
            None => ipc::wait(),
        };
    }
}

fn answer(server: &mut Server<'_>, request: Received) -> Option<Message> {
    if request.tag.untyped() < 2 {
        return None;
    }
    let item = match server.serve(request.from, request.tag, [request.word(0), request.word(1)])? {
        Answer::Done => return Some(Message::new(0)),
        Answer::Map { fpage, attributes } if set_attributes(fpage, attributes) => {
            let base = fpage.region().map_or(0, |region| region.base);
            MapItem::map(fpage, base)
        }
        Answer::Grant(fpage) => MapItem::grant(fpage, fpage.region().map_or(0, |region| region.base)),
        Answer::Map { .. } | Answer::Refused => MapItem::map(Fpage::NIL, 0),
    };
    Some(Message::new(0).map_item(item))
}

/// Sets memory attributes (X.2 rule 9.4). Returns whether the memory has them now.
fn set_attributes(fpage: Fpage, attributes: u64) -> bool {
    if attributes == 0 {
        return true;
    }
    utcb::set_message_register(0, fpage.raw() & !7);
    // SAFETY: the memory belongs to the client, and sigma0 does not use it; the UTCB pointer is
    // this thread's.
    unsafe { syscall::memory_control(0, [attributes, 0, 0, 0], utcb::pointer()) == 1 }
}

fn server() -> Server<'static> {
    let page = kip();
    let image = |server: usize, owner| Image {
        low: page.word(server + layout::server::LOW),
        high: page.word(server + layout::server::HIGH),
        owner,
    };
    let sigma1 = ThreadId::interrupt(page.thread_info().user_base + 1);
    let images = [
        image(layout::SIGMA0, None),
        image(layout::SIGMA1, Some(sigma1)),
        image(layout::ROOT, Some(page.root())),
    ];
    let mut memory = Memory::new(physical::initial_memory());
    memory_map::fill(&mut memory, page.memory_descriptors(), &images)
        .expect("the initial table has nodes for every descriptor");
    let mut ports = Ports::new(physical::ports());
    ports.set(0, 0xffff, State::OnRequest).expect("the table is empty");
    let threads = page.thread_info();
    let kernel = threads.system_base..threads.user_base;
    Server::new(physical::enlarge(memory), ports, page.root(), kernel, clients())
}

/// The threads that sigma0 serves: all if its command line has the word `sigma0=open`, which the
/// kernel copies from its own command line; otherwise those of root.
fn clients() -> Clients {
    let open = physical::with_boot_info(|info| {
        info.records().any(|record| match record {
            x2::boot_info::Record::SimpleExec { program, command_line }
                if program.initial_ip == kip().word(layout::SIGMA0 + layout::server::IP) =>
            {
                command_line.split(|&byte| byte == b' ').any(|word| word == b"sigma0=open")
            }
            _ => false,
        })
    });
    if open.unwrap_or(false) { Clients::Everybody } else { Clients::Root }
}
