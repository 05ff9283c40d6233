//! The bytes between this process and the standard descriptors of a guest's command that are no
//! terminal: each has a Unix socket to QEMU, and a thread.

use super::Kernel;
use super::terminal;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;

/// How many standard descriptors there are.
pub(super) const COUNT: usize = 3;

/// The most bytes that are passed in one step.
const PIECE: usize = 65536;

/// Which of this process's standard descriptors the command gets as streams. The others are
/// terminals, and so are the command's. Debian's own kernel knows no streams.
pub(super) fn wanted(kernel: Kernel) -> [bool; COUNT] {
    terminal::standard().map(|is_terminal| !is_terminal && kernel == Kernel::Macadamia)
}

/// The threads that pass bytes.
#[derive(Default)]
pub(super) struct Streams {
    outputs: Vec<JoinHandle<io::Result<()>>>,
}

impl Streams {
    /// Begins to pass the bytes of this process's standard descriptors, for which `sockets` has
    /// ways to QEMU.
    pub(super) fn of_process(sockets: [Option<UnixStream>; COUNT]) -> io::Result<Streams> {
        let [input, output, errors] = sockets;
        let mut streams = Streams::default();
        if let Some(socket) = input {
            streams.bring(io::stdin().as_fd().try_clone_to_owned().map(File::from)?, socket);
        }
        if let Some(socket) = output {
            streams.take(socket, io::stdout().as_fd().try_clone_to_owned().map(File::from)?);
        }
        if let Some(socket) = errors {
            streams.take(socket, io::stderr().as_fd().try_clone_to_owned().map(File::from)?);
        }
        Ok(streams)
    }

    /// Passes the bytes of `from` to the command's input, whose way to QEMU is `socket`.
    pub(super) fn bring(&mut self, from: impl Read + Send + 'static, socket: UnixStream) {
        // This thread is not waited for: its read may block for ever.
        std::thread::spawn(move || bring(from, &socket));
    }

    /// Passes the bytes of the command's output, whose way from QEMU is `socket`, to `to`.
    pub(super) fn take(&mut self, socket: UnixStream, to: impl Write + Send + 'static) {
        self.outputs.push(std::thread::spawn(move || take(&socket, to)));
    }

    /// Waits until all output of a machine that has ended is written.
    ///
    /// # Errors
    /// Some of it could not be written, and not because nothing reads it.
    pub(super) fn finish(self) -> io::Result<()> {
        for output in self.outputs {
            output.join().unwrap_or_else(|_| Err(io::Error::other("a thread has panicked")))?;
        }
        Ok(())
    }
}

/// Passes bytes to the command's input until there are no more, or QEMU has ended.
fn bring(mut from: impl Read, mut socket: &UnixStream) {
    let mut bytes = vec![0; PIECE];
    loop {
        match from.read(&mut bytes) {
            Ok(count @ 1..) => {
                if socket.write_all(&bytes[..count]).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => break,
        }
    }
    // This direction only: QEMU discards what it has not read yet when a socket is closed. It
    // closes its end after it has read everything.
    let _ = socket.shutdown(Shutdown::Write);
    while let Ok(1..) = socket.read(&mut bytes) {}
}

/// Passes bytes of the command's output until QEMU has ended. If nothing reads them, the socket is
/// closed, so that the command notices.
fn take(mut socket: &UnixStream, mut to: impl Write) -> io::Result<()> {
    let mut bytes = vec![0; PIECE];
    loop {
        let count = match socket.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // QEMU was killed with bytes in its end of the socket.
            Err(_) => return Ok(()),
        };
        if let Err(error) = to.write_all(&bytes[..count]).and_then(|()| to.flush()) {
            let _ = socket.shutdown(Shutdown::Both);
            return if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_values() -> Vec<u8> {
        (0..300_000u32).map(|number| (number + number / 251) as u8).collect()
    }

    #[test]
    fn input_arrives_before_its_end_and_output_is_written_completely() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let mut streams = Streams::default();
        streams.bring(io::Cursor::new(all_values()), near);
        let mut got = Vec::new();
        far.read_to_end(&mut got).unwrap();
        assert_eq!(got, all_values());

        let (near, mut far) = UnixStream::pair().unwrap();
        let (written, mut reader) = UnixStream::pair().unwrap();
        streams.take(near, written);
        let reading = std::thread::spawn(move || {
            let mut got = Vec::new();
            reader.read_to_end(&mut got).map(|_| got)
        });
        far.write_all(&all_values()).unwrap();
        drop(far);
        streams.finish().unwrap();
        assert_eq!(reading.join().unwrap().unwrap(), all_values());
    }

    #[test]
    fn the_socket_is_closed_when_nothing_reads_and_another_error_is_told() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let (written, reader) = UnixStream::pair().unwrap();
        drop(reader);
        let mut streams = Streams::default();
        streams.take(near, written);
        far.write_all(b"x").unwrap();
        assert_eq!(far.read(&mut [0]).unwrap(), 0);
        streams.finish().unwrap();

        let (near, mut far) = UnixStream::pair().unwrap();
        let mut streams = Streams::default();
        streams.take(near, File::options().write(true).open("/dev/full").unwrap());
        far.write_all(b"x").unwrap();
        assert!(streams.finish().is_err());
    }
}
