//! Property tests: random requests, steps, ends of servers and failing calls, in any order.

use super::*;
use proptest::prelude::*;

const SERVERS: &str = "
server a\nprogram p\nmemory 256K\nthreads 5\nspaces 3\ninterrupt 3\nmodule m\ndma 16K\nports 0x80..0x8f\ndevice 0x10000000 8K\nrestart yes
server b\nprogram p\nmemory 256K\nthreads 3\nspaces 2\nkernel-memory 1M\nrestart yes
server c\nprogram p\nmemory 128K\n";

/// How a word of a random request is made.
#[derive(Clone, Debug)]
enum Word {
    /// Any number. Small ones and those near a power of two are more frequent.
    Number(u64),
    /// The first thread of a server.
    First(usize),
    /// A word from one of root's earlier answers: a thread, a space or a share.
    Answered(usize),
    /// A space that a server owns or owned, and a thread that root has made.
    Space(usize),
    Thread(usize),
    /// The address of a page of [`ROOM`].
    Address(u64),
}

#[derive(Clone, Debug)]
enum Action {
    /// A request from a thread: the first one of a server, or one that root has made.
    Request { server: usize, made: Option<usize>, label: u64, words: Vec<Word> },
    /// A step of a work item in the queue.
    Step(usize),
    /// After this number of calls the kernel refuses all; `None`: it refuses none.
    Refuse(Option<u32>),
    /// Whether root has no memory for itself.
    OutOfMemory(bool),
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        0u64..8,
        (0u64..20).prop_map(|pages| pages * PAGE),
        (0u32..64, -2i64..3).prop_map(|(bit, off)| (1u64 << bit).wrapping_add_signed(off)),
        any::<u64>(),
    ]
}

fn a_word() -> impl Strategy<Value = Word> {
    prop_oneof![
        3 => number().prop_map(Word::Number),
        2 => (0usize..3).prop_map(Word::First),
        2 => any::<usize>().prop_map(Word::Answered),
        1 => any::<usize>().prop_map(Word::Space),
        3 => (0u64..12).prop_map(Word::Address),
    ]
}

/// Words that fit the request `label`, as a server would send them.
fn likely_words(label: u64) -> BoxedStrategy<Vec<Word>> {
    let address = (0u64..12).prop_map(Word::Address);
    let pages =
        prop_oneof![Just(1u64), Just(2), Just(3), Just(4)].prop_map(|pages| Word::Number(pages * PAGE));
    let number = |values: &[u64]| proptest::sample::select(values.to_vec()).prop_map(Word::Number);
    let first = (0usize..3).prop_map(Word::First);
    let made = any::<usize>().prop_map(Word::Thread);
    let thread = prop_oneof![4 => first.clone(), 1 => made.clone()];
    let space = any::<usize>().prop_map(Word::Space);
    let answered = any::<usize>().prop_map(Word::Answered);
    match label {
        request::ROOT_MEMORY_ALLOCATE | request::ROOT_MEMORY_POOL | request::ROOT_MEMORY_FREE => {
            (address, pages).prop_map(|(address, size)| vec![address, size]).boxed()
        }
        request::ROOT_MEMORY_DMA => {
            let words = (address, pages, number(&[24, 32, 64]), number(&[0, 1]));
            words.prop_map(|(at, size, bits, kept)| vec![at, size, bits, kept]).boxed()
        }
        request::ROOT_SHARE_CREATE | request::ROOT_POOL_CREATE => {
            (address, pages, thread).prop_map(|(at, size, partner)| vec![at, size, partner]).boxed()
        }
        request::ROOT_POOL_FIND => {
            (number(&[1, 2, 3, 4]), pages).prop_map(|(pool, offset)| vec![pool, offset]).boxed()
        }
        request::ROOT_SHARE_RENEW => {
            (number(&[1, 2, 3, 4]), thread).prop_map(|(share, partner)| vec![share, partner]).boxed()
        }
        request::ROOT_SHARE_MAP => {
            (number(&[1, 2, 3, 4]), address).prop_map(|(share, at)| vec![share, at]).boxed()
        }
        request::ROOT_SPACE_CREATE => thread
            .prop_map(|handler| {
                let numbers = [0x7000_0000, 0x6000_0000, 16, 1, 0, 4096].map(Word::Number);
                numbers.into_iter().chain([handler]).collect()
            })
            .boxed(),
        request::ROOT_SPACE_THREAD_CREATE => {
            (space, number(&[1, 2, 3]), thread).prop_map(|(a, b, c)| vec![a, b, c]).boxed()
        }
        request::ROOT_SPACE_DELETE => space.prop_map(|space| vec![space]).boxed(),
        request::ROOT_THREAD_DELETE | request::ROOT_SPACE_THREAD_DELETE => {
            made.prop_map(|thread| vec![thread]).boxed()
        }
        request::ROOT_NAME_REGISTER => thread.prop_map(|thread| vec![thread]).boxed(),
        request::ROOT_INTERRUPT_ATTACH => thread.prop_map(|thread| vec![Word::Number(3), thread]).boxed(),
        request::ROOT_INTERRUPT_DETACH => Just(vec![Word::Number(3)]).boxed(),
        request::ROOT_MODULE_MAP => {
            Just(words_of(0x6000_0000, "m").into_iter().map(Word::Number).collect::<Vec<_>>()).boxed()
        }
        request::ROOT_NAME_LOOKUP => (0u64..2, proptest::sample::select(vec!["a", "b", "c", "d"]))
            .prop_map(|(wait, name)| words_of(wait, name).into_iter().map(Word::Number).collect())
            .boxed(),
        request::ROOT_THREAD_CREATE => Just(vec![Word::Number(0x100_0000), Word::Number(0x5000)]).boxed(),
        request::ROOT_MEMORY_AVAILABLE => Just(Vec::new()).boxed(),
        request::ROOT_EXIT | request::ROOT_SERVER => number(&[0, 1, 2]).prop_map(|word| vec![word]).boxed(),
        _ => answered.prop_map(|word| vec![word]).boxed(),
    }
}

fn a_request() -> impl Strategy<Value = Action> {
    // Ends of servers are rare, or most requests would come from servers that have ended.
    let label = prop_oneof![
        60 => request::ROOT_MEMORY_ALLOCATE..=request::ROOT_POOL_FIND + 1,
        1 => Just(request::ROOT_EXIT),
        1 => any::<u64>().prop_map(|label| label >> 16),
    ];
    label.prop_flat_map(|label| {
        let words = prop_oneof![
            5 => likely_words(label),
            1 => proptest::collection::vec(a_word(), 0..9),
        ];
        (0usize..3, proptest::option::weighted(0.2, any::<usize>()), words)
            .prop_map(move |(server, made, words)| Action::Request { server, made, label, words })
    })
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        20 => a_request(),
        20 => any::<usize>().prop_map(Action::Step),
        1 => prop_oneof![Just(None), (0u32..6).prop_map(Some)].prop_map(Action::Refuse),
        1 => proptest::bool::weighted(0.2).prop_map(Action::OutOfMemory),
    ]
}

/// The words of root's answers so far: all of them, and those that name spaces and threads.
#[derive(Default)]
struct Known {
    words: Vec<u64>,
    spaces: Vec<u64>,
    threads: Vec<u64>,
}

impl Known {
    fn note(&mut self, answer: &Answer) {
        match *answer {
            Answer::One(word) => {
                self.words.push(word);
                self.threads.push(word);
            }
            Answer::Two(space, thread) => {
                self.words.extend([space, thread]);
                self.spaces.push(space);
                self.threads.push(thread);
            }
            _ => {}
        }
    }

    fn word(&self, root: &Root, word: &Word) -> u64 {
        let known = |words: &[u64], at: usize| words.get(at % words.len().max(1)).copied().unwrap_or(0);
        match *word {
            Word::Number(word) => word,
            Word::First(index) => root.system.servers[index].first.map_or(0, ThreadId::raw),
            Word::Answered(at) => known(&self.words, at),
            Word::Space(at) => known(&self.spaces, at),
            Word::Thread(at) => known(&self.threads, at),
            Word::Address(page) => room(page),
        }
    }
}

fn act(root: &mut Root, known: &mut Known, action: &Action) {
    match action {
        Action::Request { server, made, label, words } => {
            let first = root.system.servers[*server].first.unwrap_or(ThreadId::NIL);
            let from = made.map_or(first, |at| ThreadId::from_raw(known.word(root, &Word::Thread(at))));
            let words: Vec<u64> = words.iter().map(|word| known.word(root, word)).collect();
            if let Some(answer) = root.send(from, *label, &words) {
                known.note(&answer);
            }
        }
        Action::Step(at) if !root.queue.is_empty() => root.step(at % root.queue.len()),
        Action::Step(_) => root.check(),
        Action::Refuse(calls) => root.machine().calls_left.set(*calls),
        Action::OutOfMemory(is_out) => root.machine().is_out_of_memory = *is_out,
    }
    for (_, answer) in core::mem::take(&mut root.answers) {
        known.note(&answer);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// For any requests, order of steps and failing calls: when no work is left, root's tables, the
    /// kernel's and the quotas agree, and no server has the memory of another.
    #[test]
    fn no_sequence_of_requests_makes_roots_tables_untrue(
        actions in proptest::collection::vec(action(), 1..150),
    ) {
        let mut root = Root::start(SERVERS);
        let mut known = Known::default();
        for action in &actions {
            act(&mut root, &mut known, action);
        }
        root.finish();
    }

    /// After all servers have ended, all memory is free, except that which devices may still write.
    #[test]
    fn after_all_servers_have_ended_all_memory_is_free(actions in proptest::collection::vec(action(), 1..80)) {
        let mut root = Root::start(SERVERS);
        let mut known = Known::default();
        actions.iter().for_each(|action| act(&mut root, &mut known, action));
        root.machine().calls_left.set(None);
        root.machine().is_out_of_memory = false;
        root.finish();
        loop {
            let Some(index) = root.running().next() else { break };
            root.request(index, request::ROOT_EXIT, &[0]);
        }
        let frames = &root.system.resources.frames;
        prop_assert_eq!(frames.free() + frames.size_of(ServerIndex::MAX - 1), MEMORY.end - MEMORY.start);
        prop_assert_eq!(root.machine().spaces.len() + root.machine().threads.len(), 0);
    }
}
