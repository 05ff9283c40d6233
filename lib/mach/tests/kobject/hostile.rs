//! Hostile tasks: random calls with random arguments on random ports. The library does not panic,
//! keeps each task to its limits, and nothing is left when all tasks have ended.

use std::collections::BTreeSet;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use mach::ipc::typed::MsgOptions;
use mach::ipc::{Limits, Name, PortType};
use mach::machine::PAGE_SIZE;
use mach::vm::Placement;
use mig::interface::Routine;

use crate::objects::{Objects, program_with_objects};
use crate::requests::{self, Chooser};
use crate::support::{BUFFER, Program, System};

const INTERFACES: [&str; 6] = ["gnumach", "mach", "mach_debug", "mach_host", "mach_i386", "mach_port"];

/// The limits of each task: small, so that tasks come to them.
const LIMITS: Limits = Limits { names: 200, bytes: 300_000, queue: 5, longest_queue: 16, message: 1 << 18 };

struct Random {
    state: u64,
    /// The names of the task.
    names: Vec<u32>,
    /// The names that were given to the task for objects of each kind, some of which may be gone.
    objects: Objects,
}

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % below
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.next(all.len() as u64) as usize]
    }
}

impl Chooser for Random {
    fn kind(&mut self, _received: Option<u32>) -> u32 {
        16 + self.next(6) as u32
    }

    fn name(&mut self, of: &str) -> u32 {
        let fitting = self.objects.of(of).to_vec();
        if !fitting.is_empty() && self.next(4) > 0 {
            return self.of(&fitting);
        }
        match self.next(8) {
            0 => self.of(&[0, u32::MAX, 12_345]),
            _ if self.names.is_empty() => 1,
            _ => {
                let at = self.next(self.names.len() as u64) as usize;
                self.names[at]
            }
        }
    }

    fn number(&mut self, _bits: u32) -> u64 {
        match self.next(10) {
            0..4 => self.next(9),
            4 | 5 if !self.names.is_empty() => u64::from(self.name("")),
            6 => self.next(64) * PAGE_SIZE,
            7 => BUFFER + self.next(20) * PAGE_SIZE + self.of(&[0, 0, 4, 7]),
            8 => self.of(&[u64::MAX, 1 << 63, 1 << 47, 0x7fff_ffff, 0x8000_0000, 65_535]),
            _ => self.of(&[16, 17, 18, 19, 20, 21, 69, 70, 72]),
        }
    }

    fn count(&mut self, most: u64) -> u64 {
        if most == 1024 { self.of(&[0, 1, 30, 1024, 1024, 1024]) } else { self.next(most + 1) }
    }

    fn memory(&mut self, _bytes: u64) -> u64 {
        self.of(&[BUFFER + PAGE_SIZE, BUFFER + PAGE_SIZE + 5, BUFFER + 15 * PAGE_SIZE, 0, 0x7000_0000])
    }
}

/// Sends a request, and receives what has come for the task. A call that waits is interrupted.
/// Calls `replied` with the id and the result of each reply.
fn send(system: &System, program: &Program, bytes: &[u8], reply: Name, mut replied: impl FnMut(u32, u32)) {
    if system.run(program.task.map().copyout(BUFFER, bytes)).is_err() {
        return;
    }
    {
        let options = MsgOptions::SEND | MsgOptions::SEND_TIMEOUT;
        let mut sent = pin!(program.try_message(options, bytes.len(), Name::NULL));
        let mut context = Context::from_waker(Waker::noop());
        for round in 0.. {
            if let Poll::Ready(_) = sent.as_mut().poll(&mut context) {
                break;
            }
            program.interruption.interrupt();
            if round == 3 {
                // The thread ends in the middle of the call.
                break;
            }
            system.machine.advance_to_next_timer();
        }
    }
    let options = MsgOptions::RECEIVE | MsgOptions::RECEIVE_TIMEOUT;
    while system.run(program.try_message(options, 0, reply)).is_ok() {
        let mut head = [0; 48];
        if system.run(program.task.map().copyin(BUFFER, &mut head)).is_ok() {
            let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().unwrap());
            replied(word(28), word(40));
        }
    }
}

fn routines() -> Vec<Routine> {
    let all = INTERFACES.iter().flat_map(|name| requests::interface(name).routines);
    all.flatten().collect()
}

/// Returns the ids of the calls that have succeeded.
fn run(seed: u64, steps: usize) -> BTreeSet<u32> {
    let mut succeeded = BTreeSet::new();
    let system = System::with(LIMITS);
    let routines = routines();
    let mut random = Random { state: seed, names: Vec::new(), objects: Objects::default() };
    let mut programs: Vec<Program> = Vec::new();
    let mut objects: Vec<Objects> = Vec::new();
    for step in 0..steps {
        while let Some(dead) = programs.iter().position(|program| !program.task.is_alive()) {
            programs.remove(dead);
            objects.remove(dead);
        }
        while programs.len() < 2 {
            let (program, its_objects) = system.run(program_with_objects(&system, &programs));
            programs.push(program);
            objects.push(its_objects);
        }
        if step % 200 == 199 {
            // Most tasks and processor sets that programs have made end.
            for task in system.kernel().host().tasks() {
                if !programs.iter().any(|program| program.task.id() == task.id()) {
                    system.run(task.terminate());
                }
            }
            system.run(programs[0].task.terminate());
            continue;
        }
        let at = random.next(programs.len() as u64) as usize;
        let program = &programs[at];
        let names = program.space().names().unwrap_or_default();
        let sends = |kind: PortType| kind.intersects(PortType::SEND);
        let targets: Vec<u32> =
            names.iter().filter(|(_, kind)| sends(*kind)).map(|(name, _)| name.0).collect();
        random.names = names.iter().map(|(name, _)| name.0).collect();
        random.objects = objects[at].clone();
        let Some(reply) = program.reply_name() else {
            system.run(program.task.terminate());
            continue;
        };
        let routine = &routines[random.next(routines.len() as u64) as usize];
        let to = match targets.is_empty() || random.next(10) > 0 {
            true => random.name(&routine.port().of.name.clone()),
            false => random.of(&targets),
        };
        let mut bytes = requests::request(routine, to, reply.0, &mut random);
        if random.next(8) == 0 {
            let at = random.next(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << random.next(8);
        }
        if random.next(40) == 0 {
            let length = random.next(bytes.len() as u64 + 1) as usize & !3;
            bytes.truncate(length);
        }
        send(&system, program, &bytes, reply, |id, result| {
            // Smaller ids are those of notifications.
            if result == 0 && id > 2000 {
                succeeded.insert(id - 100);
            }
        });
        assert!(program.space().bytes() <= LIMITS.bytes, "step {step}: more bytes than the limit");
        assert!(program.space().name_count() <= LIMITS.names, "step {step}: more names than the limit");
        if system.run(program.task.map().copyin(BUFFER, &mut [0; 8])).is_err() {
            // The program has unmapped its buffer.
            let request = mach::vm::MapRequest::anonymous(16 * PAGE_SIZE).at(Placement::Replace(BUFFER));
            if system.run(program.task.map().map(&request)).is_err() {
                system.run(program.task.terminate());
            }
        }
    }
    succeeded
}

#[test]
fn random_calls_of_hostile_tasks_leave_nothing() {
    let seeds: u64 = std::env::var("KOBJECT_SEEDS").map_or(8, |seeds| seeds.parse().unwrap());
    let succeeded: BTreeSet<u32> = (0..seeds).flat_map(|seed| run(seed * 7919 + 1, 1500)).collect();
    // The arguments are good often enough that most calls are carried out.
    let all = routines();
    let never: Vec<&str> = all
        .iter()
        .filter(|routine| routine.reply.is_some() && !succeeded.contains(&(routine.id as u32)))
        .map(|routine| routine.name.as_str())
        .collect();
    assert!(never.len() * 3 < all.len(), "calls that never succeed: {never:?}");
}
