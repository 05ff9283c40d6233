//! The device: its registers, the memory that it uses, and the commands that it has.

use crate::memory::{
    ADMIN_COMMANDS, ADMIN_COMPLETIONS, COMMANDS, COMPLETIONS, DESCRIPTIONS, ENTRIES, LISTS, Mapped, Memory,
};
use alloc::vec::Vec;
use block::SECTOR;
use block::description::Description;
use block::service::{self, Ended, Running};
use block::work::{Command, Limits};
use l4::ipc;
use l4::x2::{ThreadId, Time};
use nvme::Failure;
use nvme::command::{self, About, Words};
use nvme::controller::{self, REGISTERS};
use nvme::identify;
use nvme::pages::{self, LIST_BYTES};
use nvme::queue::{Completed, Queue};
use rt::root::pci::{self, Function, Region};

/// The numbers of the admin queues and of the I/O queues.
const ADMIN: u16 = 0;
const IO: u16 = 1;
/// How often is looked whether the controller has carried out an admin command, and how long it may
/// take: five seconds.
const LOOK: Time = Time::period(100);
const LOOKS: usize = 50_000;

/// The device's function and registers, while it is stopped or runs.
pub(crate) struct Disk {
    function: Function,
    controller: Option<Controller>,
    /// The thread that gets the interrupts.
    thread: ThreadId,
}

type Controller = controller::Controller<Mapped>;

/// A device that runs.
pub(crate) struct Started {
    controller: Controller,
    queue: Queue<'static>,
    memory: Memory,
    /// For each identifier of a command, the request that it belongs to.
    owners: Vec<usize>,
    interrupts: [ThreadId; 1],
    /// The number of the namespace that is the disk.
    namespace: u32,
    description: Description,
    about: identify::Controller,
}

impl Disk {
    /// Finds the device.
    pub(crate) fn open(thread: ThreadId) -> Result<Disk, Failure> {
        let function = pci::function(0)?;
        let Region::Memory { base, size } = function.region(0)? else { return Err(Failure::Unknown) };
        if size < REGISTERS {
            return Err(Failure::Unknown);
        }
        let controller = Some(Controller::new(Mapped::open(base)?)?);
        Ok(Disk { function, controller, thread })
    }
}

/// Waits between two looks at the controller.
fn wait() {
    ipc::sleep(Time::period(1000));
}

impl service::Device for Disk {
    type Running = Started;

    fn start(&mut self) -> Result<Started, Failure> {
        let mut controller = self.controller.take().ok_or(Failure::Unknown)?;
        // It is stopped before the function may write memory: what it did for an earlier driver is
        // over.
        controller.stop(wait)?;
        let memory = Memory::allocate()?;
        let vector = u16::from(self.function.messages > 1);
        let interrupts = [self.function.attach(vector.into(), self.thread)?];
        let mut admin = memory.queue(ADMIN_COMMANDS, ADMIN_COMPLETIONS);
        controller.start(
            admin.size(),
            memory.address(ADMIN_COMMANDS),
            memory.address(ADMIN_COMPLETIONS),
            wait,
        )?;
        let mut ask = |words: Words| carry_out(&mut controller, &mut admin, &words);
        let mut describe = |about| {
            ask(command::identify(about, memory.address(DESCRIPTIONS)))?;
            Ok::<_, Failure>(memory.description())
        };
        let about = identify::controller(&describe(About::Controller)?);
        let namespace =
            identify::first_namespace(&describe(About::Namespaces)?).ok_or(Failure::NoNamespace)?;
        let description = describe(About::Namespace(namespace))?;
        let description = identify::namespace(&description, &about).ok_or(Failure::NoNamespace)?;
        ask(command::set_queues())?;
        ask(command::create_completion(IO, ENTRIES, vector, memory.address(COMPLETIONS)))?;
        ask(command::create_submission(IO, ENTRIES, memory.address(COMMANDS)))?;
        let queue = memory.queue(COMMANDS, COMPLETIONS);
        let owners = alloc::vec![0; ENTRIES.into()];
        Ok(Started { controller, queue, memory, owners, interrupts, namespace, description, about })
    }

    fn stop(&mut self, started: Started) -> Result<(), Failure> {
        let Started { mut controller, queue, memory, interrupts: [interrupt], .. } = started;
        drop(queue);
        controller.stop(wait)?;
        self.controller = Some(controller);
        pci::detach(interrupt)?;
        #[allow(unsafe_code, reason = "that nothing uses the memory is a promise")]
        // SAFETY: the queue in this memory has been dropped above, the admin queue at the
        // end of `start`, and the device uses none after it was stopped.
        unsafe {
            memory.free()?;
        }
        Ok(())
    }
}

/// Has the controller carry out an admin command.
fn carry_out(controller: &mut Controller, admin: &mut Queue<'_>, words: &Words) -> Result<(), Failure> {
    admin.give(words);
    admin.new_tail().into_iter().for_each(|tail| controller.set_tail(ADMIN, tail));
    for _ in 0..LOOKS {
        if let Some(Completed { status, .. }) = admin.take()? {
            admin.new_head().into_iter().for_each(|head| controller.set_head(ADMIN, head));
            return if status == 0 { Ok(()) } else { Err(Failure::Refused(status)) };
        }
        ipc::sleep(LOOK);
    }
    Err(Failure::Late)
}

impl Running for Started {
    type Error = Failure;

    fn interrupts(&self) -> &[ThreadId] {
        &self.interrupts
    }

    fn description(&self) -> &Description {
        &self.description
    }

    fn limits(&self) -> Limits {
        self.about.limits
    }

    fn identity(&self) -> &[u8] {
        &self.about.serial
    }

    fn take(&mut self) -> Result<Option<Ended>, Failure> {
        let ended = self.queue.take()?;
        Ok(ended.map(|Completed { id, status }| (self.owners[usize::from(id)], command::result(status))))
    }

    fn give(&mut self, command: Command<'_>, owner: usize) -> Result<bool, Failure> {
        let Some(id) = self.queue.next() else { return Ok(false) };
        let (namespace, unit) = (self.namespace, u64::from(self.description.logical) / SECTOR);
        let words = match command {
            Command::Flush => command::flush(namespace),
            Command::Discard(sector, sectors) => {
                let range = command::range(sector / unit, sectors / unit as u32);
                command::discard(namespace, self.memory.write_range(id, range))
            }
            Command::Read(sector, pieces) | Command::Write(sector, pieces) => {
                let is_write = matches!(command, Command::Write(..));
                let bytes: u64 = pieces.iter().map(|piece| piece.length).sum();
                let list = self.memory.address(LISTS + LIST_BYTES * u64::from(id));
                let write = |index, page| self.memory.write_list(id, index, page);
                let memory = pages::memory(pieces, list, write).ok_or(Failure::Pages)?;
                let blocks = (bytes / SECTOR / unit) as u32;
                command::transfer(is_write, namespace, sector / unit, blocks, memory)
            }
        };
        self.queue.give(&words);
        self.owners[usize::from(id)] = owner;
        Ok(true)
    }

    fn notify(&mut self) {
        self.queue.new_head().into_iter().for_each(|head| self.controller.set_head(IO, head));
        self.queue.new_tail().into_iter().for_each(|tail| self.controller.set_tail(IO, tail));
    }

    fn sleep(&mut self) -> bool {
        // The controller interrupts for each completion that comes from now on.
        self.queue.is_ready()
    }
}
