//! Two tasks with plain memory, to measure the cost of an RPC without a virtual memory system.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use mach::ipc::typed::{MsgArguments, MsgOptions, MsgResult, mach_msg};
use mach::ipc::{Disposition, Interruption, Ipc, Name, PortRight, Space, UserMemory};
use mach::machine::Machine;
use mach::vm::{MapCopy, VmMap};
use mach::{KernError, KernResult};

/// The size in bytes of a task's message buffer, which is at address 0.
pub(crate) const ROOM: usize = 8192;

/// A task's memory: a buffer, and a map for pages out of line.
pub(crate) struct Memory<M: Machine> {
    bytes: Mutex<[u8; ROOM]>,
    map: Arc<VmMap<M>>,
}

impl<M: Machine> UserMemory<M> for Memory<M> {
    async fn copyin(&self, address: u64, buffer: &mut [u8]) -> KernResult {
        let at = address as usize;
        buffer.copy_from_slice(&self.bytes.lock().unwrap()[at..at + buffer.len()]);
        Ok(())
    }
    async fn copyout(&self, address: u64, bytes: &[u8]) -> KernResult {
        let at = address as usize;
        self.bytes.lock().unwrap()[at..at + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
    async fn copy_pages(&self, start: u64, size: u64) -> KernResult<MapCopy<M>> {
        self.map.copy_pages(start, size).await
    }
    async fn insert_pages(&self, copy: MapCopy<M>) -> Result<u64, (KernError, MapCopy<M>)> {
        self.map.insert_pages(copy).await
    }
    async fn allocate(&self, size: u64) -> KernResult<u64> {
        UserMemory::allocate(&*self.map, size).await
    }
    async fn deallocate(&self, start: u64, size: u64) {
        UserMemory::deallocate(&*self.map, start, size).await;
    }
}

/// A task with one thread and its memory.
pub(crate) struct Task<M: Machine> {
    pub(crate) space: Arc<Space<M>>,
    pub(crate) memory: Memory<M>,
    interruption: Interruption,
}

/// Polls a future once.
pub(crate) fn poll<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Poll<T> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// The result of a future that is ready at the first poll.
pub(crate) fn now<T>(future: impl Future<Output = T>) -> T {
    match poll(pin!(future)) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it waits"),
    }
}

impl<M: Machine> Task<M> {
    pub(crate) fn new(ipc: &Arc<Ipc<M>>, map: Arc<VmMap<M>>) -> Self {
        let memory = Memory { bytes: Mutex::new([0; ROOM]), map };
        Self { space: Space::new(ipc), memory, interruption: Interruption::new() }
    }

    pub(crate) fn port(&self) -> Name {
        self.space.allocate(PortRight::Receive).unwrap()
    }

    /// Gives another task a send right, and returns its name there.
    pub(crate) fn give(&self, port: Name, other: &Self) -> Name {
        let right = self.space.extract_right(port, Disposition::MakeSend).unwrap();
        other.space.copyout_right(right).unwrap()
    }

    /// Writes a message into the buffer: the words of the header, then the body.
    pub(crate) fn write(&self, bits: u32, remote: Name, local: Name, body: &[u8]) {
        let mut bytes = self.memory.bytes.lock().unwrap();
        for (at, word) in [bits, 0, remote.0, 0, local.0, 0, 0, 0].into_iter().enumerate() {
            bytes[4 * at..4 * at + 4].copy_from_slice(&word.to_le_bytes());
        }
        bytes[32..32 + body.len()].copy_from_slice(body);
    }

    /// The word of 64 bits at an offset of the message in the buffer.
    pub(crate) fn word(&self, at: usize) -> u64 {
        let bytes = self.memory.bytes.lock().unwrap();
        u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
    }

    /// Unmaps memory that was received out of line.
    pub(crate) async fn deallocate(&self, start: u64, size: u64) {
        self.memory.deallocate(start, size).await;
    }

    /// Puts a message into the queue of one of the task's ports, even if the queue is full.
    pub(crate) fn queue(&self, port: Name) {
        let right = self.space.extract_right(port, Disposition::MakeSendOnce).unwrap();
        let once = self.space.copyout_right(right).unwrap();
        self.write(MOVE_SEND_ONCE, once, Name::NULL, &[]);
        now(self.call(MsgOptions::SEND, 32, Name::NULL)).unwrap();
    }

    /// Calls `mach_msg`: sends `send_size` bytes and receives from a name, as the options say.
    pub(crate) async fn call(&self, options: MsgOptions, send_size: usize, receive_name: Name) -> MsgResult {
        let arguments = MsgArguments {
            address: 0,
            options,
            send_size: send_size as u32,
            receive_size: ROOM as u32,
            receive_name,
            timeout: 0,
            notify: Name::NULL,
        };
        mach_msg(&self.space, &self.memory, &arguments, &self.interruption).await
    }
}

const COPY_SEND: u32 = 19;
const MAKE_SEND_ONCE: u32 = 21;
const MOVE_SEND_ONCE: u32 = 18;

/// Two tasks: a server that waits for requests, and a client that waits for the answers.
pub(crate) struct Pair<M: Machine> {
    pub(crate) server: Task<M>,
    pub(crate) client: Task<M>,
    pub(crate) port: Name,
    pub(crate) sends: Name,
    pub(crate) reply: Name,
}

impl<M: Machine> Pair<M> {
    pub(crate) fn new(server: Task<M>, client: Task<M>) -> Self {
        let port = server.port();
        let sends = server.give(port, &client);
        let reply = client.port();
        Self { server, client, port, sends, reply }
    }

    /// One RPC, with `body` as the body of the request and of the answer. Both tasks wait once.
    pub(crate) fn rpc(&self, body: &[u8]) {
        let both = MsgOptions::SEND | MsgOptions::RECEIVE;
        let size = 32 + body.len();
        let mut request = pin!(self.server.call(MsgOptions::RECEIVE, 0, self.port));
        assert!(poll(request.as_mut()).is_pending());
        self.client.write(COPY_SEND | MAKE_SEND_ONCE << 8, self.sends, self.reply, body);
        let mut answer = pin!(self.client.call(both, size, self.reply));
        assert!(poll(answer.as_mut()).is_pending());
        assert_eq!(poll(request.as_mut()), Poll::Ready(Ok(())));
        let reply = Name(self.server.word(8) as u32);
        self.server.write(MOVE_SEND_ONCE, reply, Name::NULL, body);
        now(self.server.call(MsgOptions::SEND, size, Name::NULL)).unwrap();
        assert_eq!(poll(answer.as_mut()), Poll::Ready(Ok(())));
    }

    /// The client sends itself a message without a reply port, and receives it, in one call.
    pub(crate) fn to_self(&self, own: Name) {
        self.client.write(COPY_SEND, own, Name::NULL, &[]);
        now(self.client.call(MsgOptions::SEND | MsgOptions::RECEIVE, 32, own)).unwrap();
    }
}
