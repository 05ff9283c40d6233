//! Takes any bytes as a message: a header and a body that name the rights and the memory of a task.
//! Reads what arrives, and checks that nothing is left at the end.

use std::sync::Arc;

use mach::ipc::typed::{MsgArguments, MsgOptions, mach_msg};
use mach::ipc::{Disposition, Interruption, Ipc, Limits, MsgErrorKind, Name, NameRule, PortRight, Space};
use mach::machine::PAGE_SIZE;
use mach::machine::simulated::Simulated;
use mach::vm::{Placement, Vm, VmMap};

const BUFFER: u64 = 0x1000;
const BUFFER_SIZE: u64 = 4 * PAGE_SIZE;
const FRAMES: u32 = 256;

type Task = (Arc<Space<Simulated>>, Arc<VmMap<Simulated>>);

fn call(
    machine: &Simulated,
    task: &Task,
    options: MsgOptions,
    send_size: u32,
    receive_name: Name,
) -> Result<(), MsgErrorKind> {
    let arguments = MsgArguments {
        address: BUFFER,
        options: options | MsgOptions::SEND_TIMEOUT | MsgOptions::RECEIVE_TIMEOUT,
        send_size,
        receive_size: BUFFER_SIZE as u32,
        receive_name,
        timeout: 0,
        notify: Name(2),
    };
    let interruption = Interruption::new();
    machine.block_on(mach_msg(&task.0, &*task.1, &arguments, &interruption)).map_err(|error| error.kind)
}

/// Sends a message made of `data`, whose first byte selects the options, and returns the result.
///
/// # Panics
/// If a port or memory is left at the end.
pub(crate) fn send(data: &[u8]) -> Result<(), MsgErrorKind> {
    let Some((&options, data)) = data.split_first() else { return Ok(()) };
    let machine = Simulated::new(FRAMES);
    let vm = Vm::new(machine.clone()).unwrap();
    let limits = Limits { names: 64, bytes: 1 << 20, ..Limits::default() };
    let ipc = Ipc::new(&vm, NameRule::Lowest, limits).unwrap();
    let task = || {
        let map = machine.block_on(VmMap::new(&vm, PAGE_SIZE, 1 << 30)).unwrap();
        machine.block_on(map.allocate(Placement::Fixed(BUFFER), BUFFER_SIZE)).unwrap();
        (Space::new(&ipc), map)
    };
    let (server, client) = (task(), task());
    let port = server.0.allocate(PortRight::Receive).unwrap();
    assert_eq!(server.0.allocate(PortRight::Receive), Ok(Name(2)));
    // The client's names: 1 and 6 have a send right and a send-once right to the server, 2 is a
    // port with a send right, 3 has a send-once right to that port, 4 is a port set, 5 is a dead
    // name, 7 is a port.
    let give = |from: &Task, name, disposition| {
        let right = from.0.extract_right(name, disposition).unwrap();
        client.0.copyout_right(right).unwrap()
    };
    assert_eq!(give(&server, port, Disposition::MakeSend), Name(1));
    let own = client.0.allocate(PortRight::Receive).unwrap();
    give(&client, own, Disposition::MakeSend);
    give(&client, own, Disposition::MakeSendOnce);
    client.0.allocate(PortRight::PortSet).unwrap();
    client.0.allocate(PortRight::DeadName).unwrap();
    give(&server, port, Disposition::MakeSendOnce);
    client.0.allocate(PortRight::Receive).unwrap();
    let size = data.len().min(BUFFER_SIZE as usize);
    let message = &data[..size];
    machine.block_on(client.1.copyout(BUFFER, message)).unwrap();
    let options = match options % 4 {
        0 => MsgOptions::SEND_NOTIFY,
        1 => MsgOptions::SEND_CANCEL,
        _ => MsgOptions::empty(),
    };
    let sent = call(&machine, &client, options | MsgOptions::SEND, size as u32, Name::NULL);
    let receive = MsgOptions::RECEIVE | MsgOptions::RECEIVE_NOTIFY;
    while call(&machine, &server, receive, 0, port).is_ok() {}
    while call(&machine, &client, receive, 0, own).is_ok() {}
    drop((server, client));
    assert_eq!(ipc.ports(), 0);
    drop(ipc);
    assert_eq!(vm.statistics().free, FRAMES);
    drop(vm);
    assert_eq!(machine.reserved(), 0);
    sent
}
