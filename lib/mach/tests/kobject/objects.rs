//! Names of a task for kernel objects of all kinds.

use mach::ipc::PortRight;

use crate::call;
use crate::support::{Program, System};

/// Names for objects, by the kind of the object.
#[derive(Clone, Default)]
pub(crate) struct Objects {
    pub(crate) tasks: Vec<u32>,
    pub(crate) threads: Vec<u32>,
    pub(crate) hosts: Vec<u32>,
    pub(crate) processors: Vec<u32>,
    pub(crate) sets: Vec<u32>,
}

impl Objects {
    /// Names for the objects that a port of this type of the definitions stands for.
    pub(crate) fn of(&self, of: &str) -> &[u32] {
        match of {
            "task_t" | "vm_task_t" | "ipc_space_t" => &self.tasks,
            "thread_t" => &self.threads,
            "host_t" | "host_priv_t" => &self.hosts,
            "processor_t" | "processor_name_t" => &self.processors,
            "processor_set_t" | "processor_set_name_t" => &self.sets,
            _ => &[],
        }
    }
}

/// A program with ports of all kinds, and rights to objects of all kinds.
pub(crate) async fn program_with_objects(system: &System, others: &[Program]) -> (Program, Objects) {
    let program = system.program().await;
    let own = program.own();
    let kernel = system.kernel();
    let mut objects = Objects::default();
    let control = program.name(kernel.host_control_right());
    objects.hosts = Vec::from([program.name(kernel.host_right()) as u32, control as u32, control as u32]);
    objects.tasks = Vec::from([own as u32]);
    for other in others.iter().filter(|other| other.task.is_alive()) {
        objects.tasks.push(program.name_of(other) as u32);
    }
    for _ in 0..2 {
        objects.threads.push(call!(program, mach, own, thread_create()).unwrap() as u32);
    }
    let processors = call!(program, mach_host, control, host_processors()).unwrap();
    objects.processors = program.words(processors).await;
    let (set, name) = call!(program, mach_host, control, processor_set_create()).unwrap();
    let default = system.kernel().host().default_set().clone();
    assert!(!default.processors().is_empty(), "the default set keeps a processor");
    objects.sets = Vec::from([set as u32, set as u32, name as u32]);
    program.port_to_send();
    program.port();
    program.space().allocate(PortRight::PortSet).unwrap();
    program.space().allocate(PortRight::DeadName).unwrap();
    (program, objects)
}
