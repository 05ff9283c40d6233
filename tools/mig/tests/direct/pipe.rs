//! A C program whose messages pass through its standard input and output: first the message
//! registers, then each string with its length in front.

use crate::{Memory, programs, with_strings};
use direct::x2::{IpcError, IpcErrorKind, IpcPhase, MessageTag, StringDescriptor, ThreadId};
use direct::{Registers, Transport};
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub(crate) struct Program {
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    registers: Memory,
}

impl Program {
    /// Builds `c/direct_NAME.c` with the C stubs and starts the program.
    pub(crate) fn start(name: &str) -> Program {
        let directory = programs::scratch(&format!("direct-{name}"));
        let tests = programs::tests();
        let mut command = Command::new(env!("CARGO_BIN_EXE_mig"));
        command.arg("-l4-c").arg(directory.join("everything.h")).arg(tests.join("direct/everything.defs"));
        programs::success(command.output().unwrap(), name);
        let program = directory.join(name);
        let mut command = Command::new("gcc");
        command.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"]);
        command.args(["-fsanitize=undefined", "-fno-sanitize-recover=all", "-o"]).arg(&program);
        command.arg("-I").arg(tests.join("c")).arg("-I").arg(&directory);
        command.arg(tests.join(format!("c/direct_{name}.c")));
        programs::success(command.output().unwrap(), name);
        let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        Program { child, input, output, registers: Memory([0; 64]) }
    }

    /// Reads the program's next message; none after the program has ended.
    pub(crate) fn receive(&mut self) -> Option<(MessageTag, Memory, Vec<Vec<u8>>)> {
        let mut bytes = [0; 512];
        self.output.read_exact(&mut bytes).ok()?;
        let words: Vec<u64> =
            bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
        let memory = Memory(words.try_into().unwrap());
        let tag = MessageTag::from_raw(memory.0[0]);
        let mut strings = Vec::new();
        for at in (1 + tag.untyped()..tag.end()).step_by(2) {
            let first = memory.0[at];
            if first & 8 == 0 {
                let mut string = vec![0; StringDescriptor::from_raw(first).length() as usize];
                self.output.read_exact(&mut string).unwrap();
                strings.push(string);
            }
        }
        Some((tag, memory, strings))
    }

    pub(crate) fn send(&mut self, tag: MessageTag, memory: &Memory, strings: &[&[u8]]) {
        let input = self.input.as_mut().unwrap();
        let mut words = memory.0;
        words[0] = tag.raw();
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        strings.iter().for_each(|string| bytes.extend_from_slice(string));
        input.write_all(&bytes).unwrap();
        input.flush().unwrap();
    }

    pub(crate) fn finish(mut self) {
        drop(self.input.take());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Registers for Program {
    fn register(&self, index: usize) -> u64 {
        self.registers.0[index]
    }
    fn set_register(&mut self, index: usize, word: u64) {
        self.registers.0[index] = word;
    }
}

impl Transport for Program {
    fn call(
        &mut self,
        _: ThreadId,
        tag: MessageTag,
        strings: &[&[u8]],
        rooms: &mut [&mut [u8]],
    ) -> Result<MessageTag, IpcError> {
        let tag = with_strings(self, tag, strings);
        let memory = Memory(self.registers.0);
        Program::send(self, tag, &memory, strings);
        let Some((tag, memory, strings)) = self.receive() else {
            return Err(IpcError::new(IpcPhase::Receive, IpcErrorKind::NonExistingPartner));
        };
        for (room, string) in rooms.iter_mut().zip(&strings) {
            room[..string.len()].copy_from_slice(string);
        }
        self.registers = memory;
        Ok(tag)
    }

    fn send(&mut self, _: ThreadId, tag: MessageTag, strings: &[&[u8]]) -> Result<(), IpcError> {
        let tag = with_strings(self, tag, strings);
        let memory = Memory(self.registers.0);
        Program::send(self, tag, &memory, strings);
        Ok(())
    }
}
